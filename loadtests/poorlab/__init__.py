"""The command `poorlab` of the installed lab.

The wheel has the folders `loadtests`, `apps` and `proxy` of the source in a folder `lab` of this
package, so that site-packages gets no package `loadtests`, which is a usual name in other projects.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Runs one command of the lab; returns the exit code."""
    lab = Path(__file__).with_name("lab")
    # Without that folder the source itself is installed (`pip install -e loadtests`).
    sys.path.insert(0, str(lab if lab.is_dir() else Path(__file__).parents[2]))
    from loadtests import __main__ as command

    return command.main()
