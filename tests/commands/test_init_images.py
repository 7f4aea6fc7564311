"""The container files of `poorhttp init`, built by buildah.

No registry is asked: the base image has the programs of this machine, and pip finds wheels that are
made here. Those of other packages are empty, as Python finds the packages of this machine.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.commands import wheel
from tests.commands.projects import FILES, init, make
from tests.packages import need
from tests.testkit.server import run

#: Commands of the base image, which stand for those of an image of Python.
PROGRAMS = {
    "pip": f'exec {sys.executable} -m pip "$@"',
    "python": f'exec {sys.executable} "$@"',
    "poorhttp": f'exec {sys.executable} -m poorhttp "$@"',
}

#: Packages of projects.
PACKAGES = {"flask": "flask", "django": "django"}

BASE = """\
FROM scratch
ADD base.tar /
ENV PATH=/programs:/usr/bin:/bin PYTHONPATH=/packages{site} \\
    PIP_TARGET=/packages PIP_NO_INDEX=1 PIP_NO_DEPS=1 PIP_FIND_LINKS=/wheels PIP_NO_COLOR=1 \\
    PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
"""


class Builder:
    """buildah with a storage of its own, a base image, and wheels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        source = folder / "source"
        source.mkdir()
        wheel.build(source).rename(self.wheels / next((source / "dist").glob("*")).name)
        for name in PACKAGES.values():
            wheel.make_empty(self.wheels, name, version(name))
        base = folder / "base"
        base.mkdir()
        self._make_root(base / "base.tar")
        site = "".join(f":{path}" for path in sys.path if path.endswith("site-packages"))
        (base / "Containerfile").write_text(BASE.format(site=site))
        self.run("build", "--tag", "base", str(base))

    def run(self, command: str, *words: str, cwd: Path | None = None) -> str:
        """Run a command of buildah; returns its standard output."""
        places = ("--root", self.folder / "storage", "--runroot", self.folder / "run")
        done = run(
            *("buildah", *places, "--storage-driver", "vfs", command),
            *(["--isolation", "chroot"] if command != "from" else []),
            *(word for path in self._mounted() for word in ("--volume", path)),
            *words,
            cwd=cwd or self.folder,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def _mounted(self) -> list[str]:
        """The folders of this machine that are in an image, and where."""
        site = [path for path in sys.path if path.endswith("site-packages")]
        paths = dict.fromkeys(["/usr", sys.base_prefix, sys.prefix, *site])
        return [*(f"{path}:{path}:ro" for path in paths), f"{self.wheels}:/wheels:ro"]

    def _make_root(self, path: Path) -> None:
        with tarfile.open(path, "w") as root:
            for name in ("usr", "etc", "tmp", "proc", "sys", "dev", "programs"):
                folder = tarfile.TarInfo(name)
                folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
                root.addfile(folder)
            for name in ("bin", "lib", "lib64"):
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
                root.addfile(link)
            for name, text in PROGRAMS.items():
                data = f"#!/bin/sh\n{text}\n".encode()
                file = tarfile.TarInfo(f"programs/{name}")
                file.size, file.mode = len(data), 0o755
                root.addfile(file, io.BytesIO(data))


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    need("buildah")
    if os.geteuid() != 0:
        pytest.skip("images are built by root only")
    folder = tmp_path_factory.mktemp("images")
    yield Builder(folder)
    # Each layer is a copy of those below it.
    shutil.rmtree(folder, ignore_errors=True)


#: Prints who runs it, and what there is.
SHOW = (
    "import os; print(os.getuid(), os.getcwd(), *os.listdir(), *os.listdir('/packages'), sep='\\n')"
)

KINDS = [pytest.param(kind, marks=[] if kind == "flask" else pytest.mark.full) for kind in FILES]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.xdist_group("images")
def test_an_image(kind: str, builder: Builder, tmp_path: Path) -> None:
    """It is built, and what its command would serve can be served."""
    project = make(kind, tmp_path)
    init(project, "--docker")
    (project / ".git").mkdir()
    (project / ".git" / "secret").touch()
    file = f"{'.deploy' if kind == 'static' else 'deploy'}/Containerfile"
    words = ("--build-arg", "PYTHON=localhost/base", "--file", file, "--tag", kind, ".")
    builder.run("build", *words, cwd=project)
    container = builder.run("from", kind).strip()
    options = ("--env", "POORHTTP_ADMIN=off", "--env", "POORHTTP_BIND=127.0.0.1:0")
    said = builder.run(
        "run", *options, container, "poorhttp", "check", "-c", "/etc/poorhttp/poorhttp.ini"
    )
    target = {"flask": "app:app", "django": "site_of_mine.wsgi:application"}
    assert target.get(kind, f"{kind}:.") in said
    found = builder.run("run", container, "python", "-c", SHOW).splitlines()
    assert found[:2] == ["10001", "/srv/app"]
    assert {"poorhttp", file.split("/", maxsplit=1)[0]} <= set(found)
    assert ".git" not in found
