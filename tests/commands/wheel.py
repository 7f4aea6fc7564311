"""Wheels: that of the server, whose core is not built again, and empty ones of other packages."""

from __future__ import annotations

import shutil
import sys
import zipfile
from pathlib import Path

from tests.testkit.server import ROOT, run

#: What is built from.
SOURCE = (
    "conf",
    "poorhttp",
    "proxy",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
)


def build(folder: Path) -> Path:
    """Build the wheel of the server in an empty folder."""
    for name in SOURCE:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.pyc", "*.so")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    setup = (sys.executable, "-W", "ignore", "setup.py", "--quiet")
    done = run(*setup, "build_py", cwd=folder)
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "build").glob("lib*")
    for module in (ROOT / "poorhttp").rglob("*.so"):
        shutil.copy(module, built / module.relative_to(ROOT))
    done = run(*setup, "bdist_wheel", "--skip-build", cwd=folder)
    assert done.returncode == 0, done.stderr
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def make_empty(folder: Path, name: str, version: str) -> None:
    """Make a wheel of another package, with nothing in it."""
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
