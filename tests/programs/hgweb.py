"""Mercurial's web server hgweb, with `hg` as its client: clone, push, pull, archives."""

from __future__ import annotations

import hashlib
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.programs.running.application import Application, Steps

CONFIGURATION = """
[paths]
/ = {}/repositories/*
[web]
allow-archive = gz, zip, bz2
allow-push = *
push_ssl = no
"""


class Hgweb(Application):
    requirements = ("mercurial==7.2.4",)
    wsgi = """
from mercurial.hgweb import hgweb
application = hgweb(b"hgweb.conf")
"""
    environ = ("HGRCPATH=", "HGPLAIN=1", "HGUSER=somebody")

    def prepare(self) -> None:
        Path("hgweb.conf").write_text(CONFIGURATION.format(Path.cwd()))
        files = Path("repositories/files")
        self.run("hg", "init", files.parent / "heads")
        self.run("hg", "-R", files.parent / "heads", "debugbuilddag", ".:f" + " *f" * 300)
        self.run("hg", "init", files)
        for number in range(30):
            # More than is sent at once.
            (files / f"{number}.txt").write_text("".join(map(str, range(number, 4_000))))
        self.run("hg", "-R", files, "commit", "-A", "-m", "files", "-d", "0 0")

    def drive(self) -> Steps:
        self.run("hg", "clone", f"{self.url}/files", "clone")
        yield "clone", self.run("hg", "-R", "clone", "log", "-T", "{node} {desc}\n")
        self.run("hg", "clone", "--pull", "-U", f"{self.url}/heads", "heads")
        yield "heads", self.run("hg", "-R", "heads", "heads", "-T", "{node}\n")
        Path("clone/new.bin").write_bytes(bytes(range(256)) * 20_000)
        self.run("hg", "-R", "clone", "commit", "-A", "-m", "new", "-d", "0 0")
        yield "push", self.run("hg", "-R", "clone", "push").splitlines()[1:]
        self.run("hg", "clone", f"{self.url}/files", "again")
        yield "clone what was pushed", self.run("hg", "-R", "again", "manifest", "--debug")
        yield "incoming", self.run("hg", "-R", "heads", "pull")[-300:].splitlines()[1:]
        for name in ("tip.zip", "tip.tar.gz", "tip.tar.bz2"):
            urllib.request.urlretrieve(f"{self.url}/files/archive/{name}", name)
            yield name, sorted(members(Path(name)))
        with urllib.request.urlopen(f"{self.url}/files/file/tip") as page:
            yield "page", [page.status, page.headers["Content-Type"], page.read().decode()]


def members(archive: Path) -> Iterator[tuple[str, str]]:
    """The files in an archive: names, and digests of their contents."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            assert zipped.testzip() is None
            for name in zipped.namelist():
                yield name, hashlib.sha256(zipped.read(name)).hexdigest()
        return
    with tarfile.open(archive) as tape:
        for entry in tape:
            if content := tape.extractfile(entry):
                yield entry.name, hashlib.sha256(content.read()).hexdigest()
