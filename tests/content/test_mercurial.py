"""Archives of Mercurial's hgweb, which `write()` sends; `make programs` has clones and pushes."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.testkit.server import Server, run

APP = "tests/apps/mercurial_site.py"
CONFIGURATION = "[paths]\n/ = {}/*\n[web]\nallow-archive = gz, zip, bz2\n"

#: More than is sent at once.
FILES = {f"{number}.txt": "".join(map(str, range(number, 4_000))).encode() for number in range(30)}


def hg(*words: str | Path) -> None:
    """Run `hg` without the configuration of whoever runs the tests."""
    env = {"HGRCPATH": "", "HGPLAIN": "1", "HGUSER": "a"}
    done = run(Path(sys.executable).with_name("hg"), *words, env=env)
    assert done.returncode == 0, done.stderr


def unpacked(name: str, archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The files in an archive: names without the folder, and contents."""
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            for member in zipped.namelist():
                yield member.partition("/")[2], zipped.read(member)
        return
    with tarfile.open(fileobj=io.BytesIO(archive)) as tape:
        for entry in tape:
            content = tape.extractfile(entry)
            assert content
            yield entry.name.partition("/")[2], content.read()


def test_archives_are_whole(mode: str, tmp_path: Path) -> None:
    (tmp_path / "hgweb.conf").write_text(CONFIGURATION.format(tmp_path))
    hg("init", tmp_path / "files")
    for name, content in FILES.items():
        (tmp_path / "files" / name).write_bytes(content)
    hg("-R", tmp_path / "files", "commit", "-A", "-m", "files")
    with Server(APP, mode, env={"REPOSITORIES": str(tmp_path)}) as server:
        for name in ("tip.tar.gz", "tip.zip", "tip.tar.bz2"):
            response = server.get(f"/files/archive/{name}")
            assert response.status == 200
            found = dict(unpacked(name, response.body))
            assert found.pop(".hg_archival.txt")
            assert found == FILES
