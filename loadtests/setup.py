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

SOURCE = Path(__file__).resolve().parent.parent
FOLDERS = ("loadtests", "apps", "proxy")
#: What the lab does not need to run: results of ours, sites that are made, what builds the wheel.
LEFT_OUT = ("__pycache__", "*.so", "*.egg-info", "results", "public", "poorlab", "setup.py")
LIBRARIES = {"tls": ("ssl", "crypto")}


class BuildLab(build_py):
    """Copies the source, and compiles each program beside its text."""

    def run(self) -> None:
        """Copy and compile, unless the source itself is installed."""
        super().run()
        if self.editable_mode:
            return
        lab = Path(self.build_lib) / "poorlab" / "lab"
        shutil.rmtree(lab, ignore_errors=True)
        for name in FOLDERS:
            ignored = shutil.ignore_patterns(*LEFT_OUT)
            shutil.copytree(SOURCE / name, lab / name, ignore=ignored)
        shutil.copy(SOURCE / "LICENSE", lab)
        sys.path.insert(0, str(SOURCE))
        from loadtests.clients.native import compiled
        from loadtests.errors import LabError

        for source in sorted(lab.rglob("*.c")):
            libraries = LIBRARIES.get(source.stem, ())
            target = compiled.shipped(source)
            try:
                # So that it runs with every C library; OpenSSL's licence would have to be here.
                compiled.build(source, target, *libraries, static=not libraries)
            except LabError as error:
                self.warn(f"not linked statically: {error}")
                compiled.build(source, target, *libraries)


class Wheel(bdist_wheel):
    """A wheel for every Python of this platform: the programs are no extension modules."""

    def get_tag(self) -> tuple[str, str, str]:
        """The tag of the platform only."""
        return "py3", "none", super().get_tag()[2]


class OfPlatform(Distribution):
    """What is built here is for this platform."""

    def has_ext_modules(self) -> bool:
        """Whether it has something compiled."""
        return True


setup(
    cmdclass={"build_py": BuildLab, "bdist_wheel": Wheel},
    distclass=OfPlatform,
    # Not in the source, which tools would read there a second time.
    options={"build": {"build_base": str(SOURCE / "build" / "lab")}},
)
