"""Extension modules for TLS and content codings: loaded for options, named if missing."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.support.certificate import certificate
from tests.support.nobody import link
from tests.testkit.server import ROOT, Server, run

#: The modules that a plain server does without.
OTHERS = ("_codings", "_tls")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A certificate and its key in one file."""
    path = tmp_path / "site.pem"
    certificate().write(path)
    path.chmod(0o600)
    return path


def loaded(server: Server) -> set[str]:
    """The extension modules of the server that the process has in memory."""
    maps = Path(f"/proc/{server.process.pid}/maps").read_text(encoding="utf-8")
    return {name for name in ("_core", *OTHERS) if f"/{name}." in maps}


def test_a_server_loads_what_its_options_need(site: Path) -> None:
    tls = ("--tls-certificate", str(site))
    for options, address, expected in (
        ((), "127.0.0.1:0", {"_core"}),
        (("--compress", "static"), "127.0.0.1:0", {"_core", "_codings"}),
        (tls, "https://127.0.0.1:0", {"_core", "_tls"}),
    ):
        words = (*options, "--supervisor", "off")
        with Server("tests/apps/echo.py", "single", *words, bind=(address,)) as server:
            assert loaded(server) == expected


@pytest.mark.parametrize("is_clone", [True, False])
def test_a_missing_module_is_named_with_the_command_that_builds_it(
    is_clone: bool, site: Path, tmp_path: Path
) -> None:
    ignored = shutil.ignore_patterns(*(f"{name}.*so" for name in OTHERS))
    shutil.copytree(ROOT / "poorhttp", tmp_path / "poorhttp", ignore=ignored, copy_function=link)
    if is_clone:
        (tmp_path / "Makefile").touch()
    how = f"run `make modules` in {tmp_path}" if is_clone else "install the server again"
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    files = ("static:.", "--supervisor", "off")
    for words, option, module in (
        (("serve", *files, "--compress", "on"), "--compress", "compression._codings"),
        (
            ("serve", *files, "--bind", "https://127.0.0.1:0", "--tls-certificate", str(site)),
            "--bind: https://127.0.0.1:0",
            "tls._tls",
        ),
        (("dev", "static:.", "--bind", "127.0.0.1:0", "--https"), "--https", "tls._tls"),
    ):
        done = run(sys.executable, "-m", "poorhttp", *words, cwd=tmp_path, env=env)
        sentence = f"{option}: the extension module poorhttp.plugins.{module} is not built; {how}"
        assert (done.returncode, sentence in done.stderr) == (3, True), done.stderr
        assert done.stderr.count("\n") == 1
