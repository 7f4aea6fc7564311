"""Mercurial over HTTP: the real hgweb and `hg`, archives by `write()`, pulls with long heads."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testkit.server import Server, run

#: `hg` takes its time: what it makes is made once for all modes.
pytestmark = pytest.mark.xdist_group("mercurial")

APP = "tests/apps/mercurial_site.py"
CONFIGURATION = "[paths]\n/ = {}/*\n[web]\nallow-archive = gz, zip, bz2\n"


class Hg:
    """`hg` without the configuration of whoever runs the tests."""

    def attempt(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        env = {"HGRCPATH": "", "HGPLAIN": "1", "HGUSER": "a", "no_proxy": "*"}
        return run(Path(sys.executable).with_name("hg"), *words, env=env)

    def __call__(self, *words: str | Path) -> str:
        done = self.attempt(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def hg() -> Hg:
    return Hg()


@pytest.fixture(scope="module")
def repositories(hg: Hg, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of hgweb, and one with files."""
    top = tmp_path_factory.mktemp("repositories")
    (top / "hgweb.conf").write_text(CONFIGURATION.format(top))
    hg("init", top / "files")
    for number in range(30):
        # More than is sent at once.
        (top / f"files/{number}.txt").write_text("".join(map(str, range(number, 4_000))))
    hg("-R", top / "files", "commit", "-A", "-m", "files")
    return top


@pytest.fixture
def start(mode: str, repositories: Path) -> Callable[..., Server]:
    extra = {"REPOSITORIES": str(repositories)}
    return lambda *options: Server(APP, mode, "--log-level", "info", *options, env=extra)


def unpacked(name: str, archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The files in an archive: names without the folder, and contents."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            assert zipped.testzip() is None
            for member in zipped.namelist():
                yield member.partition("/")[2], zipped.read(member)
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as tape:
        for entry in tape:
            content = tape.extractfile(entry)
            assert content
            yield entry.name.partition("/")[2], content.read()


@pytest.fixture(scope="module")
def archived(hg: Hg, repositories: Path) -> dict[str, bytes]:
    """What each archive has in it: the files, and `.hg_archival.txt`."""
    path = repositories / "tip.zip"
    hg("-R", repositories / "files", "archive", path)
    return dict(unpacked(path.name, path.read_bytes()))


def test_archives_are_whole(start: Callable[..., Server], archived: dict[str, bytes]) -> None:
    assert len(archived) == 31
    with start() as server:
        for name in ("tip.tar.gz", "tip.zip", "tip.tar.bz2"):
            response = server.get(f"/files/archive/{name}")
            assert response.status == 200
            assert dict(unpacked(name, response.body)) == archived


def test_clone_and_pull_of_many_heads(
    start: Callable[..., Server], hg: Hg, repositories: Path, tmp_path: Path
) -> None:
    """A pull names the heads of both sides in header fields of 1 KiB.

    Of 1,500 they are more than 64 KiB; here the limit is lower, and `hg` is quicker.
    """
    source, clone = repositories / "heads", tmp_path / "clone"
    hg("init", source)
    hg("-R", source, "debugbuilddag", ".:f" + " *f" * 500)
    with start() as server:
        hg("clone", "-U", f"http://127.0.0.1:{server.port}/heads", clone)
        assert len(hg("-R", clone, "heads", "-T", "x")) == 500
        (source / "a.txt").write_text("a")
        hg("-R", source, "update", "0")
        hg("-R", source, "commit", "-A", "-m", "more")
        pull = ("-R", clone, "pull", f"http://127.0.0.1:{server.port}/heads")
        hg(*pull)
        assert "more" in hg("-R", clone, "log", "-r", "tip")
    with start("--max-request-header-size", "16K") as server:
        done = hg.attempt(*pull[:-1], f"http://127.0.0.1:{server.port}/heads")
        assert "HTTP Error 431" in done.stderr
        server.wait_log("(a header section over the limit: 16384 bytes, max_request_header_size)")
