"""The first build: what `make` and `pip install .` say meanwhile, and if something is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect
import pytest

from tests.testkit.client import HANG
from tests.testkit.server import ROOT, Program, run

sys.path.insert(0, str(ROOT / "core"))

# isort: split
import bootstrap
import progress

#: What is built from.
SOURCE = (
    *("conf", "core", "poorhttp", "proxy"),
    *("LICENSE", "README.md", "pyproject.toml", "setup.cfg", "setup.py"),
)

#: What cargo writes when its bars are on, and it writes to no terminal.
BARS = (
    "    Updating crates.io index\n"
    "       Fetch [=====>            ] 3 complete; 1 pending                     \r"
    "  Downloaded 2 crates (1.2 MB) in 0.5s\n"
    "   Compiling pyo3 v0.30.1\n"
    "    Building [===>              ] 1/4: pyo3, rustls(build.rs)               \r"
    "warning: something\n"
    "    Building [=====>            ] 3/4: poorhttp-python                      \r"
    "    Finished `release` profile [optimized] target(s) in 56.63s\n"
)

#: `cargo` and `rustc` that compile nothing: what they do depends on their environment.
TOOLCHAIN = """\
#!{python} -IS
import json, os, sys, time
words = sys.argv[1:]
fails = os.environ.get("CARGO_FAILS")
if words[:1] in (["--version"], ["-V"]):
    print(os.path.basename(sys.argv[0]), os.environ.get("RUST_VERSION", "1.99.0"))
elif words[:1] in (["-vV"], ["-Vv"]):
    print("rustc 1.99.0\\nrelease: 1.99.0\\nhost: x86_64-unknown-linux-gnu")
elif words[:2] == ["--print", "cfg"]:
    print('target_os="linux"\\ntarget_arch="x86_64"\\ntarget_env="gnu"')
elif fails:
    sys.exit(fails)
elif words[:1] == ["metadata"]:
    print(json.dumps({{"resolve": {{"root": "core"}}, "packages": []}}))
elif words[:1] == ["rustc"]:
    sys.stderr.write({bars!r})
    files = [{built!r}]
    target = {{"kind": ["cdylib"]}}
    print(json.dumps(dict(
        reason="compiler-artifact", package_id="core", target=target, filenames=files
    )))
"""

#: A pip that goes on when it is let, and writes like the real one and like `setup.py`.
PIP = """\
import os, sys, time
with open(os.environ["CORE_BUILD_PROGRESS"], "w") as pipe:
    print("Collecting flask>=3 (from poorhttpd)\\nCollecting werkzeug", flush=True)
    while not os.path.exists("collected"): time.sleep(0.01)
    print("31 of 112 crates, rustls", file=pipe, flush=True)
    while not os.path.exists("compiled"): time.sleep(0.01)
print("ERROR: no space", file=sys.stderr)
sys.exit(os.path.exists("fails"))
"""

#: Runs `bootstrap.py` with lines that come often.
OFTEN = (
    "import sys; sys.path.insert(0, {core!r}); import progress, bootstrap; "
    "progress.LINE_EVERY = 0.02; bootstrap.main(sys.argv[1:])"
)


@pytest.fixture
def tools(tmp_path: Path) -> dict[str, str]:
    """An environment in which the toolchain compiles nothing, and no other one is found."""
    folder = tmp_path / "tools"
    folder.mkdir()
    built = str(next((ROOT / "poorhttp").glob("_core*.so")))
    text = TOOLCHAIN.format(python=sys.executable, bars=BARS, built=built)
    for name in ("cargo", "rustc", "cc"):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {
        "PATH": f"{folder}:/usr/bin:/bin",
        "CARGO_HOME": str(tmp_path / "nothing"),
        "XDG_CACHE_HOME": str(tmp_path / "nothing"),
        "TERM": "xterm",
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with links to the source, beside which a build writes."""
    folder = tmp_path / "source"
    folder.mkdir()
    for name in SOURCE:
        (folder / name).symlink_to(ROOT / name)
    return folder


def test_progress_of_cargo() -> None:
    read, write = os.pipe()
    os.write(write, BARS.encode())
    os.close(write)
    reported: list[str] = []
    others: list[bytes] = []
    progress.read_cargo(read, reported.append, others.append)
    os.close(read)
    assert reported == [
        "updating crates.io index",
        "fetch: 3 complete; 1 pending",
        "downloaded 2 crates (1.2 MB) in 0.5s",
        "1 of 4 crates, pyo3, rustls(build.rs)",
        "3 of 4 crates, poorhttp-python",
    ]
    assert others == [b"warning: something\n"]


def test_plain_lines_of_make(tmp_path: Path, tools: dict[str, str]) -> None:
    (tmp_path / "modules/pip").mkdir(parents=True)
    (tmp_path / "modules/pip/__init__.py").touch()
    (tmp_path / "modules/pip/__main__.py").write_text(PIP)
    words = (sys.executable, "-c", OFTEN.format(core=str(ROOT / "core")), "install", ".")
    env = {**tools, "PYTHONPATH": str(tmp_path / "modules")}
    for fails in (False, True):
        with Program(*words, cwd=tmp_path, env=env) as program:
            program.wait_log("compiling: 2 packages found, werkzeug, ")
            (tmp_path / "collected").touch()
            program.wait_log("compiling: 31 of 112 crates, rustls, ")
            (tmp_path / "compiled").touch()
            assert program.wait() == fails
            first, second, *_ = program.log().splitlines()
            assert first == f"toolchain: Rust 1.99 ({tmp_path}/tools/cargo)"
            assert second.startswith("compiling: the core, in Rust: ")
            assert "\r" not in program.log()
            assert ("ERROR: no space" in program.log()) == fails
            assert ("compiling: done in " in program.log()) != fails
            assert ("pip could not install .: see above why." in program.log()) == fails
        for name in ("collected", "compiled"):
            (tmp_path / name).unlink()
        (tmp_path / "fails").touch()


def test_uv_installs_from_where_pip_would() -> None:
    index, other = "https://index.example/simple", "https://other.example"
    listed = {
        "": {},
        ":env:.default-timeout='9'\nglobal.cert='/ca.pem'\n": {"SSL_CERT_FILE": "/ca.pem"},
        f":env:.index-url='{other}'\nglobal.index-url='{index}'": {"UV_DEFAULT_INDEX": other},
        "install.find-links='\\n/here\\n/there'": {"UV_FIND_LINKS": "/here,/there"},
        f"global.index-url='{index}'\nglobal.extra-index-url='{other}'": None,
        ":env:.no-index='1'": None,
    }
    assert {text: bootstrap.uv_settings(text) for text in listed} == listed


def test_the_line_on_a_terminal() -> None:
    code = (
        "import sys; sys.path.insert(0, 'core'); from progress import Step\n"
        "with Step('compiling', 'the core') as step: step.report('1 of 2 crates'); input()"
    )
    env = {**os.environ, "TERM": "xterm"}
    terminal = pexpect.spawn(
        sys.executable, ["-c", code], cwd=ROOT, env=env, encoding="utf-8", timeout=HANG
    )
    terminal.expect_exact("compiling: the core\r\n")
    for _ in range(2):
        terminal.expect(r"\r\x1b\[Kcompiling: 1 of 2 crates, \d+ s")
    terminal.sendline()
    terminal.expect(r"\r\x1b\[Kcompiling: done in \d+ s\r\n")
    terminal.close()


def test_a_build_says_on_its_terminal_what_it_needs(source: Path, tools: dict[str, str]) -> None:
    """Though its parent, as pip does, keeps what it writes."""
    build = [sys.executable, "setup.py", "--quiet", "build_rust"]
    parent = f"import subprocess; raise SystemExit(subprocess.run({build}, capture_output=True)"
    terminal = pexpect.spawn(
        sys.executable,
        ["-c", f"{parent}.returncode)"],
        cwd=source,
        env={**os.environ, **tools},
        encoding="utf-8",
        timeout=HANG,
        dimensions=(24, 200),
    )
    crates = r"Rust 1\.99 \(.*/tools/cargo\), a C compiler, crates from crates\.io"
    terminal.expect(rf"compiling: the core of poorhttp: about \d+ minutes? with .*{crates}")
    terminal.expect(r"compiling: done in \d+ s")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (
            {"CARGO_FAILS": "error: failed to get `libc` as a dependency\n[7] Could not connect"},
            "cargo cannot fetch the crates",
        ),
        ({"CARGO_FAILS": "error: could not compile (signal: 9, SIGKILL: kill)"}, "little memory"),
        ({"CARGO_FAILS": "No space left on device (os error 28)"}, "The disk is full"),
        ({"RUST_VERSION": "1.60.0"}, "needs Rust {floor} or newer: Rust 1.60 is too old"),
        ({"PATH": "/nowhere"}, "No C compiler"),
    ],
)
def test_what_is_missing_is_said_in_words(
    env: dict[str, str], words: str, source: Path, tools: dict[str, str]
) -> None:
    build = (sys.executable, "setup.py", "--quiet", "build_rust")
    done = run(*build, cwd=source, env={**tools, **env})
    assert done.returncode == 1
    floor = bootstrap.dotted(bootstrap.rust_floor())
    assert words.format(floor=floor) in done.stderr, done.stderr
    assert env.get("CARGO_FAILS", "") in done.stderr
    assert "Traceback" not in done.stderr
