"""Wheels as `make wheels` puts them together, and the name of the distribution: `poorhttpd`."""

from __future__ import annotations

import email
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

from poorhttp import __version__, _core
from tests.testkit.server import ROOT, run

sys.path.insert(0, str(ROOT / "core"))

import wheels

pytestmark = pytest.mark.xdist_group("wheels")

INFO = f"poorhttpd-{__version__}.dist-info"
DATA = f"poorhttpd-{__version__}.data/data"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel for this machine with the extension that the tests run with."""
    folder = tmp_path_factory.mktemp("wheel")
    suffix = Path(_core.__file__).name.removeprefix("_core")
    extensions = {place: ROOT / f"{place}{suffix}" for place in wheels.MODULES}
    # `assemble` replaces all of them; man pages are made with this one.
    needed = {"poorhttp/_core": extensions["poorhttp/_core"]}
    template = wheels.build_template(needed, folder / "template")
    return wheels.assemble(template, extensions, wheels.HERE, wheels.RUNNING, folder)


def test_the_name_and_the_tags_agree(wheel: Path) -> None:
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tags = f"{tag}-{tag}-linux_{wheels.HERE.partition('-')[0]}"
    assert wheel.name == f"poorhttpd-{__version__}-{tags}.whl"
    with ZipFile(wheel) as archive:
        found = email.message_from_bytes(archive.read(f"{INFO}/WHEEL"))
        metadata = email.message_from_bytes(archive.read(f"{INFO}/METADATA"))
    assert found.get_all("Tag") == [tags]
    assert found["Root-Is-Purelib"] == "false"
    assert (metadata["Name"], metadata["Version"]) == ("poorhttpd", __version__)
    assert metadata.get_all("License-File") == ["LICENSE", wheels.NOTICES]


def test_all_of_the_package_is_inside_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        assert archive.testzip() is None
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "poorhttp").rglob("*.py")}
    files = "poorhttp/plugins/setup/deployment/files/"
    present = {name for name in names if name.endswith(".py") and not name.startswith(files)}
    assert present == written
    assert {name for name in names if name.endswith(".so")} == {
        "poorhttp/_core.so",
        "poorhttp/plugins/compression/_codings.so",
        "poorhttp/plugins/asgi/_websocket.so",
        "poorhttp/plugins/tls/_tls.so",
    }
    assert {
        "poorhttp/py.typed",
        "poorhttp/_core.pyi",
        "poorhttp/plugins/compression/_codings.pyi",
        "poorhttp/plugins/tls/_tls.pyi",
        "poorhttp/plugins/setup/options.md",
        "poorhttp/config/other_servers/advice.txt",
        "poorhttp/plugins/monitor/page/page.css",
        f"{files}conf/poorhttp.service",
        f"{files}proxy/nginx/site.conf",
        f"{DATA}/share/man/man1/poorhttp.1",
        f"{DATA}/share/man/man5/poorhttp.ini.5",
        f"{DATA}/share/bash-completion/completions/poorhttp",
        f"{INFO}/licenses/LICENSE",
        f"{INFO}/entry_points.txt",
    } <= names
    assert {name.partition("/")[0] for name in names} == {"poorhttp", INFO, DATA.partition("/")[0]}


def test_the_licences_of_what_is_linked_are_inside(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        text = archive.read(f"{INFO}/licenses/{wheels.NOTICES}").decode()
    for crate in ("aws-lc-sys", "brotli", "pyo3", "rustls", "zlib-rs", "zstd-sys"):
        assert f"\n{crate} " in text
    # Words of the texts of AWS-LC, zstd and rustls.
    for words in ("OpenSSL", "Meta Platforms, Inc. and affiliates", "Joseph Birr-Pixton"):
        assert words in text
    # Those of tests, of the build, and our own are no notices.
    for crate in ("bindgen", "cc", "libfuzzer-sys", "poorhttp-http", "pyo3-macros"):
        assert f"\n{crate} " not in text


def test_pip_installs_it_and_it_runs(wheel: Path, tmp_path: Path) -> None:
    """Its record names what is there, too, and `init` finds its templates."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    done = run(*pip, "--no-compile", "--target", tmp_path, wheel)
    assert done.returncode == 0, done.stderr
    (tmp_path / "app.py").write_text("def application(environ, start_response): ...\n")
    for words, said in ((("--version",), __version__), (("init", "--systemd"), ".service\n")):
        command = (sys.executable, "-S", "-m", "poorhttp", *words)
        done = run(*command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
        assert (done.returncode, said in done.stdout) == (0, True), done.stderr
    (installed,) = importlib.metadata.distributions(name="poorhttpd", path=[str(tmp_path)])
    assert installed.files
    for file in installed.files:
        # Written by pip itself, or moved by `--target`.
        if file.hash is not None and not str(file).startswith(".."):
            assert file.size == Path(str(file.locate())).stat().st_size


#: A command that installs the other project: its name behind a command of an installer in the same
#: line, or at the beginning of the next one.
WRONG_COMMAND = re.compile(
    r"""\b(?:pip3?|pipx|uv)\b[^\n`;|&]*?\b(?:install|add|download|wheel)\b
        (?:[^\n`;|&]*?(?<![\w./@-])|[\ \t]*\n\W*)
        poorhttp(?![\w/-]|\.\w)""",
    re.VERBOSE,
)
#: The other project with an extra of ours.
WRONG_EXTRA = re.compile(r"\bpoorhttp\[(?:dev|forms|gevent|lab|lint|pages|test)\b")

#: Folders that hold nothing of ours.
SKIPPED = {"target", "build", "dist", "node_modules", "results", "__pycache__"}


def texts(folder: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """All text files of the source, but this one."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        hidden = entry.name.startswith(".") and entry.name not in (".ci", ".dockerignore")
        if entry.is_symlink() or hidden or entry.name in SKIPPED:
            continue
        path = Path(entry.path)
        if entry.is_dir():
            yield from texts(path)
        elif path != Path(__file__).resolve():
            try:
                yield path, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def test_no_text_says_to_install_the_other_project() -> None:
    found = {path.relative_to(ROOT).as_posix(): text for path, text in texts()}
    for rule in (WRONG_COMMAND, WRONG_EXTRA):
        wrong = {path: match[0] for path, text in found.items() if (match := rule.search(text))}
        assert wrong == {}
    assert {"README.md", "conf/poorhttp.service", "conf/container/Containerfile"} <= {*found}
