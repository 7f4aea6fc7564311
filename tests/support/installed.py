"""What an installation of ours declares, for programs that look for it, and its examples."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

from poorhttp import __version__
from tests.testkit.server import ROOT


def examples(name: str, language: str) -> list[str]:
    """The blocks of a guide in a language."""
    page = (ROOT / f"docs/guides/{name}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def installed(folder: Path) -> dict[str, str]:
    """The environment of a program that finds the entry points of setup.cfg; `folder` is new."""
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    points = declared["options.entry_points"]
    metadata = folder / f"poorhttpd-{__version__}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: poorhttpd\nVersion: {__version__}\n"
    )
    (metadata / "entry_points.txt").write_text(
        "".join(f"[{group}]{points[group]}\n" for group in points)
    )
    # pytest rewrites `assert` in all modules of an installation that has a plugin.
    files = (path.relative_to(ROOT) for path in (ROOT / "poorhttp").rglob("*.py"))
    (metadata / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    return {"PYTHONPATH": f"{ROOT}:{folder}"}
