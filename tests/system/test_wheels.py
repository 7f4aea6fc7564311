"""Wheels as `make wheels` puts them together: name, tags, content, licences; crates of sdist."""

from __future__ import annotations

import email
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from poorhttp import __version__, _core
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, environment

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
    subprocess.run(
        [*pip, "--no-compile", "--target", str(tmp_path), str(wheel)], check=True, timeout=HANG
    )
    (tmp_path / "app.py").write_text("def application(environ, start_response): ...\n")
    for words, said in ((("--version",), __version__), (("init", "--systemd"), ".service\n")):
        done = subprocess.run(
            [sys.executable, "-S", "-m", "poorhttp", *words],
            env=environment({**os.environ, "PYTHONPATH": str(tmp_path)}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG,
        )
        assert said in done.stdout
    (installed,) = importlib.metadata.distributions(name="poorhttpd", path=[str(tmp_path)])
    assert installed.files is not None
    for file in installed.files:
        # Written by pip itself, or moved by `--target`.
        if file.hash is not None and not str(file).startswith(".."):
            assert file.size == Path(str(file.locate())).stat().st_size
