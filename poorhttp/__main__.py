"""`python -m poorhttp` is the command `poorhttp`."""

from __future__ import annotations

import sys

from poorhttp.cli import main

if __name__ == "__main__":
    sys.exit(main())
