"""Messages at the start: ASGI applications, `manage.py`, other servers' options, no access log."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import poorhttp
from poorhttp.errors import ApplicationError
from tests.support.each_value import each_value
from tests.support.failure import says
from tests.support.forked_command import run_command
from tests.testkit.client import HANG
from tests.testkit.server import command, environment

ASGI = {
    "function": "async def app(scope, receive, send): ...\n",
    "plain function": "def app(scope, receive, send): ...\n",
    "instance": "class App:\n    async def __call__(self, a, b, c): ...\napp = App()\n",
    "class": "class app:\n    def __init__(self, scope, receive, send): ...\n",
    "partial": "from functools import partial\n"
    "async def run(n, a, b, c): ...\napp = partial(run, 1)\n",
    "Django": "import django.conf\ndjango.conf.settings.configure()\n"
    "from django.core.asgi import get_asgi_application\napp = get_asgi_application()\n",
}

WSGI = {
    "function": "def app(environ, start_response): ...\n",
    "variable": "def app(*arguments): ...\n",
    "class": "class app:\n    def __init__(self, environ, start_response): ...\n",
    "wrapped": "from functools import wraps\nasync def asgi(scope, receive, send): ...\n"
    "@wraps(asgi)\ndef app(environ, start_response): ...\n",
    "partial": "from functools import partial\ndef run(n, e, s): ...\napp = partial(run, 1)\n",
    "Flask": "from flask import Flask\napp = Flask('x')\n@app.get('/')\nasync def index(): ...\n",
}


@pytest.mark.parametrize(("kind", "verb"), each_value(ASGI, ["check", "serve"]))
def test_asgi_is_refused(kind: str, verb: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(ASGI[kind])
    words = ("shop:app", "--bind", "127.0.0.1:0", "--mode", "threading")
    why = "an ASGI application, which only mode = asyncio serves"
    assert says(4, verb, *words, cwd=tmp_path) == f"poorhttp: shop:app is {why}\n"


@pytest.mark.parametrize("kind", ASGI)
def test_mode_of_asgi(kind: str, tmp_path: Path) -> None:
    """It is found in the source, also of an application that another module makes."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "main.py").write_text(ASGI[kind])
    (tmp_path / "run.py").write_text("from shop.main import app as application  # of asgi\n")
    for target in ("shop.main:app", "shop/main.py", "run"):
        done = run_command("check", target, "--bind", "127.0.0.1:0", cwd=tmp_path)
        assert "(asyncio, 1 worker)" in done.stdout, done.stderr


@pytest.mark.parametrize("kind", WSGI)
def test_wsgi_is_not(kind: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(WSGI[kind])
    done = run_command("check", "shop:app", "--bind", "127.0.0.1:0", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_asgi_of_a_mount(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "asgi.py").write_text(ASGI["function"])
    options = ("--bind", "127.0.0.1:0", "--mode", "threading")
    message = says(4, "check", "--mount", "/x=shop/asgi.py:app", *options, cwd=tmp_path)
    assert "--mount: shop/asgi.py:app is an ASGI application, which only mode = as" in message


def test_asgi_of_a_program() -> None:
    async def application(scope: object, receive: object, send: object) -> None: ...

    told = r"^the application is an ASGI application, which"
    for use in (poorhttp.Server, poorhttp.serve):
        with pytest.raises(ApplicationError, match=told):
            use(application)  # type: ignore[arg-type]


#: Its message has control characters.
BROKEN = r"""def fail():
    raise ValueError("no \x1b[2J\x9b31m\u202e database")
fail()
"""

OWN_FRAMES = r"""Traceback (most recent call last):
      File "{0}", line 3, in <module>
        fail()
      File "{0}", line 2, in fail
        raise ValueError("no \x1b[2J\x9b31m\u202e database")
    ValueError: no \x1b[2J\x9b31m\u202e database
"""


@pytest.mark.parametrize("options", [(), ("--preload",), ("--supervisor", "off")])
def test_failure_is_in_the_error_log(tmp_path: Path, options: tuple[str, ...]) -> None:
    app, log = tmp_path / "app.py", tmp_path / "error.log"
    app.write_text(BROKEN)
    words = ("serve", "app.py", "--bind", "127.0.0.1:0", "--error-log", str(log), *options)
    message = says(4, *words, cwd=tmp_path)
    assert r"app.py cannot be imported: ValueError: no \x1b[2J\x9b31m\u202e database" in message
    text = log.read_text()
    assert f"error: the server does not start: {app} cannot be imported: ValueError: " in text
    # Newer Pythons mark places below a line.
    lines = [line for line in text.splitlines(keepends=True) if line.strip(" ~^\n")]
    assert OWN_FRAMES.format(app) in "".join(lines)
    assert text.count('File "') == 2


@pytest.mark.parametrize(
    ("options", "is_told"),
    [((), True), (("--access-log", "-"), False), (("--access-log", "file"), False)],
)
def test_who_sees_no_requests_is_told_how(
    tmp_path: Path, options: tuple[str, ...], is_told: bool
) -> None:
    """On a terminal; a test's server has none."""
    (tmp_path / "app.py").write_text("def application(environ, start_response): ...\n")
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command("serve", "app.py", "--bind", "127.0.0.1:0", *options),
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"listening" not in shown or not shown.endswith(b"\n"):
        shown += os.read(ours, 4096)
    process.terminate()
    assert process.wait(HANG) == 0
    os.close(ours)
    assert (b"poorhttp logs no requests here; --access-log - shows them" in shown) is is_told


MANAGE = """\
import os, sys
def main():
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("settings", "module"),
    [('WSGI_APPLICATION = "shop.web.wsgi.entry"\n', "shop.web.wsgi:entry"), ("", "shop.wsgi:app")],
)
def test_manage_py(tmp_path: Path, settings: str, module: str) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "manage.py").write_text(MANAGE)
    for name, text in (("__init__", ""), ("settings", settings), ("wsgi", "")):
        (tmp_path / "shop" / f"{name}.py").write_text(text)
    meant = module.replace(":app", ":application")
    it_is = f"; the application of this Django project is {meant}"
    message = says(4, "serve", "manage.py", "--bind", "127.0.0.1:0", cwd=tmp_path)
    assert message.endswith(f"{it_is}\n")
    message = says(4, "serve", f"{tmp_path}/manage.py", "--bind", "127.0.0.1:0")
    assert message.endswith(f"{it_is} --chdir {tmp_path}\n")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("reload", 'here it is "{}autoreload"'),
        ("timeout", 'here it is "{}request_timeout"'),
        ("certfile", 'here it is "{}tls_certificate"'),
        ("daemon", "the server stays in the foreground; "),
        ("thread", 'did you mean "{}threads"?'),
    ],
)
def test_options_of_other_servers(tmp_path: Path, word: str, meant: str) -> None:
    """In a file, in the environment and in a program; for the command line see tests/commands."""
    (tmp_path / "x.ini").write_text(f"[http]\n{word} = 1\n")
    assert f"; {meant.format('')}" in says(3, "serve", "x:y", "-c", str(tmp_path / "x.ini"))
    with pytest.raises(poorhttp.errors.ConfigError) as caught:
        poorhttp.Server(print, **{word: 1})  # type: ignore[arg-type]
    assert f"; {meant.format('')}" in str(caught.value)
    with pytest.raises(poorhttp.errors.ConfigError) as caught:
        poorhttp.config.loader.load({}, {f"POORHTTP_{word.upper()}": "1"})
    name = meant.partition("{}")[2].rstrip('"?')
    variable = meant.replace("{}" + name, f"POORHTTP_{name.upper()}") if name else meant
    assert f"; {variable}" in str(caught.value)
