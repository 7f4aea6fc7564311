"""Adds to an installation the templates of `poorhttp init`, completion for shells, and man pages.

Adds the crates to the source distribution, so that it builds without a network. All else is
in setup.cfg and pyproject.toml.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup  # before distutils, which is part of it

# isort: split
from distutils.command.install_data import install_data

from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools_rust import build_rust

ROOT = Path(__file__).resolve().parent

#: Folders that an installation has in `poorhttp/plugins/setup/deployment/files`.
TEMPLATES = ("conf", "proxy")

#: Files below `sys.prefix` where shells and man look for them, and the arguments of `poorhttp` that
#: print them.
PRINTED = {
    "share/man/man1/poorhttp.1": ("man", "1"),
    "share/man/man5/poorhttp.ini.5": ("man", "5"),
    "share/bash-completion/completions/poorhttp": ("completion", "bash"),
    "share/zsh/site-functions/_poorhttp": ("completion", "zsh"),
    "share/fish/vendor_completions.d/poorhttp.fish": ("completion", "fish"),
}

#: What a source distribution adds to the settings of cargo.
VENDORED = """
[source.crates-io]
replace-with = "vendored"

[source.vendored]
directory = "core/vendor"
"""


class BuildPackages(build_py):
    """Copies the templates beside the module that reads them."""

    def run(self) -> None:
        """Copy the packages, and the templates unless the source itself is installed."""
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "poorhttp/plugins/setup/deployment/files"
            shutil.rmtree(target, ignore_errors=True)
            for name in TEMPLATES:
                ignore = shutil.ignore_patterns("*.py", "__pycache__")
                shutil.copytree(ROOT / name, target / name, ignore=ignore)


class BuildCore(build_rust):
    """Compiles the extension modules, all or those of a variable, and reports how far that is."""

    def run(self) -> None:
        """Run cargo; what it lacks is said in words."""
        sys.path.insert(0, str(ROOT / "core"))
        import compiling

        chosen = os.environ.get(compiling.MODULES, "").split()
        self.extensions = [
            each
            for each in self.extensions
            if not chosen or any(name.rpartition(".")[2] in chosen for name in each.target.values())
        ]
        with compiling.reported():
            super().run()


class InstallPages(install_data):
    """Has the command that was built print its completion and its man pages."""

    def run(self) -> None:
        """Write the files; none where the command was built for another machine."""
        built = os.path.abspath(self.get_finalized_command("build").build_lib)
        if not os.path.isdir(os.path.join(built, "poorhttp")):
            return  # the source itself is installed
        for name, arguments in PRINTED.items():
            done = subprocess.run(
                [sys.executable, "-m", "poorhttp", *arguments],
                cwd=built,
                env={**os.environ, "PYTHONPATH": built, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                check=False,
            )
            if done.returncode:
                self.warn(f"{name} is left out: {done.stderr.decode(errors='replace')}")
                continue
            path = Path(self.install_dir, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(done.stdout)
            self.outfiles.append(str(path))


class VendorCrates(sdist):
    """Puts the crates into `core/vendor`, and has cargo take them from there."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Fill the folder of which the archive is made; needs cargo."""
        super().make_release_tree(base_dir, files)
        folder = os.path.join(base_dir, "core/vendor")
        subprocess.run([sys.executable, str(ROOT / "core/crates.py"), folder], check=True)
        config = Path(base_dir, ".cargo/config.toml")
        text = config.read_text(encoding="utf-8")
        # The file may be a link to that of the source.
        config.unlink()
        config.write_text(text + VENDORED, encoding="utf-8")


setup(
    cmdclass={
        "build_py": BuildPackages,
        "build_rust": BuildCore,
        "install_data": InstallPages,
        "sdist": VendorCrates,
    },
    # Not empty, so that `install_data` is run.
    data_files=[("share/poorhttp", [])],
)
