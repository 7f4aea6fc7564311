"""`poorhttp migrate` and files that do harm, or mean to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poorhttp.config import ini
from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate import gunicorn_file
from poorhttp.plugins.setup.migrate.equivalents.plan import Plan
from tests.commands.test_migrate import check, plan_of
from tests.support.forked_command import run_command
from tests.testkit.client import HANG


def check_options(plan: Plan) -> None:
    """Check that the file of a plan can be read, and has nothing in it but what was planned."""
    sections = ini.parse(plan.text("a test"), "a test")
    assert [section.name for section in sections] == ["http"]
    assert "user" not in [entry.name for entry in sections[0].entries]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file may take a second of the processor, which is longer on a busy machine."""
    monkeypatch.setattr(gunicorn_file, "SECONDS", 1)
    monkeypatch.setattr(gunicorn_file, "PATIENCE", HANG)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "statement",
    [
        "while True: pass",
        "import os; os._exit(3)",
        "raise SystemExit(4)",
        "import sys; sys.setrecursionlimit(10 ** 9); f = lambda: f(); f()",
    ],
)
def test_what_does_not_end_or_ends_the_process(tmp_path: Path, statement: str) -> None:
    text = f"workers = 3\nif True:\n    {statement}\nbind = ':81'\n"
    plan = plan_of(tmp_path, "gunicorn.conf.py", text)
    check(plan, "workers=3 bind=0.0.0.0:81", "gunicorn.conf.py:2: if True: This was not run:")


def test_forged_results_do_no_harm(tmp_path: Path) -> None:
    lines = [
        *("5", "[1]", '{"set": 3}', '{"set": [3], "line": "x"}', '{"statement": "a"}', "{" * 5000),
        '{"set": [{"name": "bind", "value": ":1\\n[http]", "line": 1, "text": "a\\nuser = root"}]}',
    ]
    text = "import os\nfor fd in range(3, 20):\n    try: os.write(fd, forged)\n"
    text = f"forged = {chr(10).join(lines).encode()!r}\n{text}    except OSError: pass\n"
    check_options(plan_of(tmp_path, "gunicorn.conf.py", f"{text}loglevel = 'debug'\n"))


@pytest.mark.parametrize(
    "value",
    [
        "'x\\nuser = root'",
        "'a' * 10 ** 7",
        "'\\ud800'",
        "'# x'",
        "[[[[[[1]]]]]]",
        "object()",
        "10 ** 5000",
        "type('str', (str,), {'__str__': lambda self: 1 / 0})('x')",
        "[str(n) for n in range(10 ** 5)]",
    ],
)
def test_strange_values(tmp_path: Path, value: str) -> None:
    names = ("proc_name", "bind", "workers", "access_log_format", "forwarded_allow_ips", "chdir")
    text = "".join(f"{name} = {value}\n" for name in names)
    check_options(plan_of(tmp_path, "gunicorn.conf.py", text))


ENTITIES = b'<!DOCTYPE a [<!ENTITY x "y">]><uwsgi><module>&x;</module></uwsgi>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gunicorn.conf.py", b"# \xff\nbind = ':80'\n", ":1: is not UTF-8 text"),
        ("uwsgi.ini", b"[uwsgi]\nmodule = \xe9\n", ":2: is not UTF-8 text"),
        ("gunicorn.conf.py", b"#" * (10 * 1024**2), "is larger than 1 MiB"),
        ("uwsgi.ini", b";" * (10 * 1024**2), "is larger than 1 MiB"),
        ("gunicorn.conf.py", b"bind = '\0'\n", "is not a text file"),
        ("gunicorn.conf.py", b"(" * 100_000, "gunicorn.conf.py:1"),
        ("uwsgi.xml", b"<uwsgi><a>&b;</a>", "is not XML"),
        ("uwsgi.json", b"[" * 100_000, "is not JSON"),
        ("uwsgi.xml", ENTITIES, "declares entities"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plan_of(tmp_path, name, content)
    assert message in str(raised.value)


def test_a_named_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gunicorn.conf.py")
    done = run_command("migrate", "gunicorn.conf.py", cwd=tmp_path)
    assert done.returncode == 3
    assert "it is not a regular file" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "ini = :uwsgi\nhttp = :80",
        "ini = %p\nhttp = :80",
        "a = %(b)\nb = %(a)\nmodule = %(a)%(b)\nhttp = :80",
        "a = xxxxxxxxxx\n" + "a = %(a)%(a)%(a)%(a)\n" * 12 + "module = %(a)\nhttp = :80",
        "for = 1 2 3\nfor = 4 5\nhttp = :8%(_)\nendfor =\nendfor =",
        "for = 1 2 3\nhttp = :80",
        "endif =\nendfor =\nhttp = :80",
        "if-env =\nif-file =\nif-dir = %(_)\nif-strange = 1\nhttp = :80",
        "http = :80\n= 5\n=\n%\n$(\n$()\n%()\nx = $(A",
        "http = :80\nprocesses = many\nthreads = \nbuffer-size = x\nchmod-socket = rw\nuid =",
    ],
)
def test_strange_files_of_uwsgi(tmp_path: Path, text: str) -> None:
    plan = plan_of(tmp_path, "uwsgi.ini", f"[uwsgi]\n{text}\n")
    assert ini.parse(plan.text("a test"), "a test")


def test_output_is_no_link_elsewhere(tmp_path: Path) -> None:
    """`--force` replaces a link; it does not write to where it leads."""
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "out.ini").symlink_to("precious")
    words = ("migrate", "-o", "out.ini", "gunicorn", "app:app")
    assert run_command(*words, cwd=tmp_path).returncode == 3
    assert run_command(*words[:3], "--force", *words[3:], cwd=tmp_path).returncode == 0
    assert (tmp_path / "precious").read_text() == "kept"
