"""The command line: arguments, messages and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from poorhttp import __version__
from poorhttp.cli import CHECK, CommandLine, main
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import UsageError
from tests.support.forked_command import run_command
from tests.testkit.server import ROOT, run

APPLICATION = "def application(environ, start_response): return []\n"


def poorhttp(*words: str, cwd: Path = ROOT, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return run_command(*words, cwd=cwd, env=environ)


def read(*words: str) -> CommandLine:
    line = CommandLine()
    line.read(words)
    return line


def test_words() -> None:
    line = read("serve", "--bind", "a:1", "x:y", "-c", "f.ini", "--bind=b:2", "--server-header=")
    assert line.command == "serve"
    assert line.file == "f.ini"
    assert line.values == {"bind": ["a:1", "b:2"], "target": ["x:y"], "server_header": [""]}


def test_a_value_may_be_a_dash_or_begin_with_one() -> None:
    line = read("serve", "--access-log", "-", "--threads", "-1", "--error-log=--odd")
    assert line.values == {"access_log": ["-"], "threads": ["-1"], "error_log": ["--odd"]}


def test_a_switch_needs_no_value() -> None:
    line = read("serve", "--preload", "x:y", "--reuse-port", "off", "--supervisor=no")
    assert line.values == {
        "preload": ["on"],
        "target": ["x:y"],
        "reuse_port": ["off"],
        "supervisor": ["no"],
    }


def test_behind_two_dashes_stands_the_target() -> None:
    assert read("check", "--config=f", "--", "--odd:app").values == {"target": ["--odd:app"]}


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
    done = poorhttp("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"poorhttp {__version__}\n", "")


def test_help_of_a_command_names_every_option() -> None:
    done = poorhttp("serve", "x:y", "--help-all")
    assert done.returncode == 0
    assert [option.name for option in OPTIONS.values() if option.flag not in done.stdout] == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["serve"], 2, "poorhttp: there is nothing to serve; name an application, for example:"),
        (["check"], 2, "poorhttp: there is nothing to check; name an application, for example:"),
        (["serve", "--thread", "4"], 2, 'poorhttp: unknown option "--thread"; did you mean'),
        (["serve", "x:y", "--threads", "many"], 2, 'poorhttp: --threads: "many" is not a whole'),
        (["serve", "-c", "none.ini"], 3, "poorhttp: none.ini: cannot be read: No such file"),
        (["serve", "x:y", "--chdir", "none"], 3, 'poorhttp: --chdir: "none": No such file'),
    ],
)
def test_one_message_and_the_exit_code(words: list[str], code: int, message: str) -> None:
    done = poorhttp(*words)
    assert done.returncode == code
    assert done.stdout == ""
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_a_wrong_variable() -> None:
    done = poorhttp("serve", "x:y", POORHTTP_THREADS="many")
    assert done.returncode == 3
    assert done.stderr.startswith('poorhttp: POORHTTP_THREADS: "many" is not a whole number')


@pytest.mark.parametrize("place", ["command line", "environment", "file"])
def test_the_log_level_debug_adds_the_traceback(place: str, tmp_path: Path) -> None:
    (tmp_path / "x.ini").write_text(
        "[http]\nlog_level = debug\n" if place == "file" else "[http]\n"
    )
    words = ["--log-level", "debug"] if place == "command line" else []
    environ = {"POORHTTP_LOG_LEVEL": "debug"} if place == "environment" else {}
    done = poorhttp(
        "check", "x:y", "-c", "x.ini", "--chdir", "none", *words, cwd=tmp_path, **environ
    )
    assert done.returncode == 3
    assert done.stderr.startswith("poorhttp: --chdir:")
    assert "Traceback" in done.stderr


def test_check(tmp_path: Path) -> None:
    (tmp_path / "x.ini").write_text("[http]\nmode = single\nbind = 127.0.0.1:0\nchdir = app\n")
    (tmp_path / "app").mkdir()
    (tmp_path / "app/mine.py").write_text(APPLICATION)
    done = poorhttp("check", "-c", "x.ini", "mine:application", "--threads", "4", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    what, _, details = done.stdout.partition("\n")
    assert what == (
        f"poorhttp {__version__} would serve mine:application on http://127.0.0.1:0 "
        "(single, 1 worker)"
    )
    assert [line.split() for line in details.splitlines()[2:]] == [
        ["chdir", "=", "app", "from", "x.ini:4:", "chdir"],
        ["bind", "=", "127.0.0.1:0", "from", "x.ini:3:", "bind"],
        ["mode", "=", "single", "from", "x.ini:2:", "mode"],
        ["threads", "=", "4", "from", "--threads"],
    ]


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
