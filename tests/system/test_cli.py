"""The command line: arguments, messages and exit codes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from poorhttp import __version__
from poorhttp.cli import CHECK, CommandLine, main
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import UsageError
from tests.support.forked_command import run_command
from tests.testkit.server import run


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
        ("serve x:y THREADS=many", 3, 'POORHTTP_THREADS: "many" is not a whole number'),
        ("serve -c none.ini", 3, "none.ini: cannot be read: No such file"),
        ("serve x:y --chdir none", 3, '--chdir: "none": No such file'),
    ],
)
def test_one_message_and_the_exit_code(words: str, code: int, message: str) -> None:
    env = {"POORHTTP_THREADS": "many"} if "THREADS" in words else {}
    done = run_command(*words.partition(" THREADS")[0].split(), env=env)
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
