"""Writes the web sites of two benchmark studies, Uniserve and KLone: pages and images.

python apps/site/make_site.py                   into apps/site/public
python apps/site/make_site.py FOLDER --klone    elsewhere, with a page of 1.5 KB and a file of 10 MB
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# The generator is the load lab's, which measures servers with these sites.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from loadtests.apps.study_sites import make


def main() -> None:
    """Read the command line."""
    description, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(description=description)
    default = Path(__file__).with_name("public")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=default, help="default: %(default)s"
    )
    parser.add_argument("--klone", action="store_true", help="also a page of 1.5 KB and 10 MB")
    arguments = parser.parse_args()
    make(arguments.folder, klone=arguments.klone)


if __name__ == "__main__":
    main()
