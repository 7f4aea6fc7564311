"""Servers with reload on save, for the study `develop`: a command for each project."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from loadtests.programs import ROOT
from loadtests.python_path import lab_folder
from loadtests.servers.projects import DJANGO, FLASK, HELLO, LARGE, Kind
from loadtests.servers.registry.commands import GRANIAN, GUNICORN, LOOPBACK, MODULE, UWSGI
from loadtests.servers.registry.server import Server


@dataclass(frozen=True)
class ReloadingServer(Server):
    """A server for the projects of some kinds, or for all if none are named in `only`.

    `polls` says that it looks for changes once a second, and is not told; `settles` is for how many
    seconds it is left alone after it has answered anew. That is enough for no file to be saved
    twice within one second, which is an experiment of its own, and for those who take what is saved
    before their first look for what was there.
    """

    only: tuple[str, ...] = ()
    polls: bool = False
    settles: float = 0.6

    def environ(self, kind: Kind, project: str) -> dict[str, str]:
        """Environment variables of the server that differ from the lab's."""
        paths = [project, lab_folder() if self.ours else "{folder}"]
        environ = {"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": ""}
        if kind is DJANGO:
            environ["DJANGO_SETTINGS_MODULE"] = "office.settings"
        return environ


# Some watch every folder of sys.path, and where ours is installed as editable, that has this
# repository in it, which is no business of theirs. Flask loads the command that ours adds to it, so
# the package itself stays importable.
_WITHOUT_US = f"""\
import contextlib
import sys

with contextlib.suppress(ImportError):
    import poorhttp
sys.path[:] = [path for path in sys.path if path != {str(ROOT)!r}]
"""
_RUN_SIMPLE = """\
from werkzeug.serving import run_simple

from app import application

run_simple("127.0.0.1", $port, application, threaded=True, use_reloader=True)
"""


def _ours(name: str, colour: str, options: str = "", extra: str = "") -> ReloadingServer:
    command = f"{{python}} -m poorhttp dev {{module}}:{{callable}} --bind {LOOPBACK} {options}"
    return ReloadingServer(f"poorhttp {name}", colour, command.strip(), "poorhttp", extra)


def _other(
    name: str, colour: str, package: str, command: str, *files: tuple[str, str], **more: Any
) -> ReloadingServer:
    files = (*files, ("sitecustomize.py", _WITHOUT_US))
    return ReloadingServer(name, colour, command, package, files=files, **{"polls": True, **more})


OURS = _ours("dev", "#0b4f9e")
_COMMAND = OURS.command.replace(" dev ", " serve ")
SERVE = replace(OURS, name="poorhttp serve", colour="#8a8f98", command=_COMMAND)
SERVERS = (
    OURS,
    _ours("dev (full)", "#5b8fd0", "--autoreload full"),
    _other(
        "flask run --debug",
        "#1f8a70",
        "flask",
        "{python} -m flask --app {module} run --debug --host 127.0.0.1 --port {port}",
        only=(FLASK.name,),
    ),
    _other(
        "Werkzeug run_simple",
        "#57b894",
        "werkzeug",
        "{python} {folder}/run.py",
        ("run.py", _RUN_SIMPLE),
        only=(HELLO.name, LARGE.name),
    ),
    _other(
        "runserver",
        "#14532d",
        "django",
        f"{{python}} manage.py runserver {LOOPBACK}",
        only=(DJANGO.name,),
    ),
    _other(
        "gunicorn --reload",
        "#8c5a2b",
        "gunicorn",
        f"{GUNICORN} --reload --reload-engine poll{MODULE}",
    ),
    _other(
        "gunicorn with inotify",
        "#b98a5c",
        "gunicorn",
        f"{GUNICORN} --reload{MODULE}",
        extra="inotify",
        polls=False,
    ),
    _other(
        "uWSGI py-autoreload=1",
        "#3f8f3f",
        "uWSGI",
        f"{UWSGI} --http11-socket {LOOPBACK} --master --die-on-term --enable-threads "
        "--threads 8 --py-autoreload 1 --pythonpath . --module {module}:{callable}",
        settles=1.2,
    ),
    _other(
        "granian --reload",
        "#b57fd0",
        "granian",
        f"{GRANIAN} --reload{MODULE}",
        extra="watchfiles",
        polls=False,
    ),
    _other(
        "waitress under hupper",
        "#c03a78",
        "waitress",
        f"{{scripts}}/hupper -m waitress --listen={LOOPBACK}{MODULE}",
        extra="hupper",
        settles=1.2,
    ),
)
MODES = tuple(
    _ours(f"dev ({mode})", colour, f"--mode {mode}{workers}", extra)
    for mode, colour, workers, extra in (
        ("single", "#0b4f9e", "", ""),
        ("forking", "#2ca6c4", " --workers 2", ""),
        ("threading", "#1a7fb8", " --threads 8", ""),
        ("gevent", "#7cc7df", "", "gevent"),
    )
)
EVERYONE = (*SERVERS, *MODES, SERVE)
