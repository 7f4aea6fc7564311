"""The command line: arguments, messages, exit codes; `check` and `compile`."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import pytest

from poorhttp import __version__
from poorhttp.cli import CHECK, CommandLine, main
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import UsageError
from tests.support.forked_command import run_command
from tests.support.nobody import IS_ROOT, Nobody
from tests.testkit.server import Server, run


def read(*words: str) -> CommandLine:
    line = CommandLine()
    line.read(words)
    return line


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (
            "--bind a:1 x:y -c f.ini --bind=b:2 --server-header=",
            {"bind": ["a:1", "b:2"], "target": ["x:y"], "server_header": [""]},
        ),
        # A value may be a dash or begin with one.
        (
            "--access-log - --threads -1 --error-log=--odd",
            {"access_log": ["-"], "threads": ["-1"], "error_log": ["--odd"]},
        ),
        # A switch needs no value.
        (
            "--preload x:y --reuse-port off",
            {"preload": ["on"], "target": ["x:y"], "reuse_port": ["off"]},
        ),
        ("--supervisor=no", {"supervisor": ["no"]}),
        # Behind two dashes stands the target.
        ("--config=f.ini -- --odd:app", {"target": ["--odd:app"]}),
    ],
)
def test_words(words: str, values: dict[str, list[str]]) -> None:
    line = read("serve", *words.split())
    assert line.command == "serve"
    assert line.file == ("f.ini" if "f.ini" in words else None)
    assert line.values == values


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "^no command; write poorhttp serve TARGET"),
        ("serv", r'^unknown command "serv"; did you mean "serve"\?'),
        ("zebra", '^unknown command "zebra"; see .* of this name: poorhttp serve zebra$'),
        ("--threads 4 check x:app", "^the command stands before its options: poorhttp check"),
        ("serve --thread 4", r'^unknown option "--thread"; did you mean "--threads"\?'),
        ("serve --max_body=4", r'^unknown option "--max_body"; did you mean "--max-body"\?'),
        ("serve -q 4", '^unknown option "-q"$'),
        ("serve --target x", '^unknown option "--target"'),
        ("serve --threads", "^--threads: needs a value: --threads N$"),
        ("serve -w", "^-w: needs a value: -w N$"),
        ("serve --no-access-log=off", "^--no-access-log takes no value$"),
        ("serve --threads --mode single", "^--threads: needs a value"),
        ("serve x:y -c", "^-c: needs a value: -c FILE$"),
        ("serve a b", '^serve takes one target, but there are "a" and "b"$'),
    ],
)
def test_mistakes(words: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        read(*words.split())


def test_version() -> None:
    done = run_command("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"poorhttp {__version__}\n", "")


def test_help_of_a_command_names_every_option() -> None:
    done = run_command("serve", "x:y", "--help-all")
    assert done.returncode == 0
    assert [option.name for option in OPTIONS.values() if option.flag not in done.stdout] == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("serve", 2, "there is nothing to serve; name an application, for example:"),
        ("check", 2, "there is nothing to check; name an application, for example:"),
        ("serve --thread 4", 2, 'unknown option "--thread"; did you mean'),
        ("serve x:y --threads many", 2, '--threads: "many" is not a whole number'),
        ("POORHTTP_THREADS=many serve x:y", 3, 'POORHTTP_THREADS: "many" is not a whole number'),
        ("serve -c none.ini", 3, "none.ini: cannot be read: No such file"),
        ("serve x:y --chdir none", 3, '--chdir: "none": No such file'),
    ],
)
def test_one_message_and_the_exit_code(words: str, code: int, message: str) -> None:
    env = dict(word.split("=") for word in words.split() if word.startswith("POORHTTP_"))
    done = run_command(*words.split()[len(env) :], env=env)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"poorhttp: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("place", ["command line", "environment", "file"])
def test_the_log_level_debug_adds_the_traceback(place: str, tmp_path: Path) -> None:
    text = "log_level = debug\n" if place == "file" else ""
    (tmp_path / "x.ini").write_text(f"[http]\n{text}")
    words = ["--log-level", "debug"] if place == "command line" else []
    environ = {"POORHTTP_LOG_LEVEL": "debug"} if place == "environment" else {}
    words = ["check", "x:y", "-c", "x.ini", "--chdir", "none", *words]
    done = run_command(*words, cwd=tmp_path, env=environ)
    assert done.returncode == 3
    assert done.stderr.startswith("poorhttp: --chdir:")
    assert "Traceback" in done.stderr


@pytest.mark.parametrize("level", ["info", "debug"])
def test_a_mistake_of_ours(
    level: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(line: CommandLine) -> int:
        raise LookupError("no such thing")

    monkeypatch.setattr(CHECK, "run", fail)
    assert main(["check", "x:y", "--log-level", level]) == 1
    error = capsys.readouterr().err
    assert error.startswith("poorhttp: internal error: LookupError: no such thing\n")
    assert ("Traceback" in error) == (level == "debug")
    assert ("--log-level debug shows where" in error) == (level == "info")


def test_an_interrupt_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(line: CommandLine) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(CHECK, "run", interrupt)
    assert main(["check", "x:y"]) == 1
    assert capsys.readouterr().err == ""


def test_the_command_stays_small() -> None:
    """Every worker keeps in memory what the command has imported; see also "
    "docs/internals/design/dependencies.md."""
    program = (
        "import sys; from poorhttp import cli; from poorhttp.config import loader as config; "
        "config.load({'bind': ['127.0.0.1:0']}, {}, 'conf/poorhttp.ini'); print(*sys.modules)"
    )
    done = run(sys.executable, "-S", "-c", program)
    assert done.returncode == 0, done.stderr
    heavy = "argparse configparser dataclasses difflib inspect logging re typing"
    assert {*heavy.split()} & {*done.stdout.split()} == set()


NOBODY = pwd.getpwnam("nobody")

MAIN = "from poorhttp.cli import main; import sys; sys.exit(main())"

#: Says who loads it.
APPLICATION = """
import os
print("loaded by", os.geteuid(), os.getegid(), os.getgroups(), os.environ.get("USER"))
def application(environ, start_response):
    start_response("200 OK", [])
    return [b"hello"]
"""


@pytest.fixture
def public(folder: Path) -> Path:
    """A folder that everybody may read, and nobody may write."""
    folder.chmod(0o755)
    if IS_ROOT:
        os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    (folder / "app.py").write_text(APPLICATION)
    return folder


def user() -> str:
    """Whom the tests may become."""
    return "nobody" if IS_ROOT else str(os.getuid())


def test_check_loads_as_the_user(nobody: Nobody, public: Path) -> None:
    options = ("--bind", "127.0.0.1:0", "--chdir", str(public), "--user", user())
    done = nobody.as_root(MAIN, "check", "app.py", *options)
    assert done.returncode == 0, done.stderr
    if IS_ROOT:
        assert f"loaded by {NOBODY.pw_uid} {NOBODY.pw_gid} " in done.stdout
        assert "] nobody\n" in done.stdout
    assert "would serve app.py on " in done.stdout
    # Started by a process that waits for no child.
    ignoring = f"import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); {MAIN}"
    done = nobody.as_root(ignoring, "check", "app.py", *options)
    assert done.returncode == 0, done.stderr


def test_compile_writes_as_the_user(nobody: Nobody, public: Path) -> None:
    (public / "pages").mkdir()
    (public / "pages" / "index.html").write_text("hello")
    options = ("--user", user(), "--pages-modules", str(public / "modules"))
    done = nobody.as_root(MAIN, "compile", f"pages:{public}/pages", *options)
    assert done.returncode == 0, done.stderr
    assert "1 page compiled" in done.stdout
    owners = {path.stat().st_uid for path in (public / "modules").rglob("*")}
    assert owners == {NOBODY.pw_uid if IS_ROOT else os.getuid()}


def files_of(folder: Path) -> list[object]:
    """What the socket and the pidfile in a folder are known by."""
    found = [(folder / name).stat() for name in ("socket", "pid")]
    return [(each.st_ino, each.st_mode, each.st_uid, each.st_ctime_ns) for each in found]


@pytest.mark.parametrize("options", [(), ("--reuse-port",), ("--user", user())])
def test_check_beside_a_server(nobody: Nobody, public: Path, options: tuple[str, ...]) -> None:
    """Its sockets and its pidfile stay as they are."""
    files = ("--pidfile", f"{public}/pid", "--socket-mode", "0666", *options)
    app = str(public / "app.py")
    binds = ("127.0.0.1:0", f"unix:{public}/socket", f"unix:@{public}")
    with Server(app, "threading", *files, bind=binds, env=nobody.env, cwd=public) as server:
        before = files_of(public)
        again = (f"127.0.0.1:{server.port}", *binds[1:])
        words = [word for bind in again for word in ("--bind", bind)]
        done = run_command("check", app, *words, *files, env=nobody.env, cwd=public)
        assert done.returncode == 0, done.stderr
        for bind in again:
            note = f"{bind} was not opened: a server of poorhttp listens there, "
            assert note + f"{server.process.pid}\n" in done.stdout
        assert files_of(public) == before
        assert server.get("/").body == b"hello"


def test_check_looks_for_what_traces_need(public: Path) -> None:
    words = ("check", "app.py", "--bind", "127.0.0.1:0", "--otel", "traces")
    done = run_command(*words, cwd=public, env={"OTEL_TRACES_EXPORTER": "telegraph"})
    assert done.returncode == 3
    assert 'OpenTelemetry has no exporter "telegraph" of traces here' in done.stderr


def test_what_check_prints(public: Path) -> None:
    (public / "x.ini").write_text("[http]\nmode = forking\nbind = 127.0.0.1:0\nchdir = app\n")
    (public / "app").mkdir()
    (public / "app/mine.py").write_text("def application(environ, start_response): return []\n")
    options = ("--mount", "/x=mine.py", "--static", f"/f={public}", "--workers", "2")
    done = run_command("check", "-c", "x.ini", "mine:application", *options, cwd=public)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"poorhttp {__version__} would serve mine:application on http://127.0.0.1:0 "
        "(forking, 2 workers)",
        "",
        "Routes:",
        "  /                             mine:application, from TARGET",
        "  /x/                           mine.py, from --mount",
        f"  /f/                           the files of {public}, from --static",
        "",
        "Not the default:",
        "  chdir = app                   from x.ini:4: chdir",
        "  bind = 127.0.0.1:0            from x.ini:3: bind",
        "  mode = forking                from x.ini:2: mode",
        "  workers = 2                   from --workers",
    ]
