"""Puts the lab's source into the wheel of `poorhttp-lab`, and its programs in C, compiled.

    pip wheel --no-deps ./loadtests

`--config-settings=--build-option=--plat-name=...` names another platform than `linux_*`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
#: Where the folders lie: in a source distribution, or in a clone.
SOURCE = HERE / "source" if (HERE / "source").is_dir() else HERE.parent
FOLDERS = ("loadtests", "apps", "proxy")
#: What the lab does not need to run: results of ours, sites that are made, what building leaves.
LEFT_OUT = (
    *("__pycache__", "*.so", "*.egg-info", "build", "dist", "poorhttp_lab-*"),
    *("results", "public", "poorlab", "setup.py"),
)
LIBRARIES = {"tls": ("ssl", "crypto")}
PRELOADED = ("clock",)
"""Libraries for LD_PRELOAD among the programs in C."""


def copy_source(target: Path) -> None:
    """Copies what the lab has of the source."""
    for name in FOLDERS:
        ignored = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(SOURCE / name, target / name, ignore=ignored)
    shutil.copy(SOURCE / "LICENSE", target)


class BuildLab(build_py):
    """Copies the source, and compiles each program beside its text."""

    def run(self) -> None:
        """Copy and compile, unless the source itself is installed."""
        super().run()
        if self.editable_mode:
            return
        lab = Path(self.build_lib) / "poorlab" / "lab"
        shutil.rmtree(lab, ignore_errors=True)
        copy_source(lab)
        sys.path.insert(0, str(SOURCE))
        from loadtests.clients.native import compiled
        from loadtests.errors import LabError

        for source in sorted(lab.rglob("*.c")):
            libraries = LIBRARIES.get(source.stem, ())
            target = compiled.shipped(source)
            if source.stem in PRELOADED:
                compiled.build(source, target, preloaded=True)
                continue
            try:
                # So that it runs with every C library; OpenSSL's licence would have to be here.
                compiled.build(source, target, *libraries, static=not libraries)
            except LabError as error:
                self.warn(f"not linked statically: {error}")
                compiled.build(source, target, *libraries)


class SourceLab(sdist):
    """A source distribution with the folders of the clone."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Fill the folder of which the archive is made."""
        super().make_release_tree(base_dir, files)
        copy_source(Path(base_dir) / "source")


class Wheel(bdist_wheel):
    """A wheel for every Python of this platform: the programs are no extension modules."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class OfPlatform(Distribution):
    """What is built here is for this platform."""

    def has_ext_modules(self) -> bool:
        return True


setup(
    cmdclass={"build_py": BuildLab, "sdist": SourceLab, "bdist_wheel": Wheel},
    distclass=OfPlatform,
    # Not in the source, which tools would read there a second time.
    options={"build": {"build_base": str(SOURCE / "build" / "lab")}},
)
