"""Servers that reload, each started for each project as its documentation says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loadtests.programs import ROOT
from loadtests.servers.projects import DJANGO, FLASK, HELLO, LARGE, Kind
from loadtests.servers.registry import Server


@dataclass(frozen=True)
class Contestant:
    """A server and its commands, by project; "" is all others, for which it may have none.

    `polls` says that it looks for changes once a second, and is not told; `settles` is for how many
    seconds it is left alone after it has answered anew. That is enough for no file to be saved
    twice within one second, which is an experiment of its own.
    """

    name: str
    colour: str
    package: str
    commands: Mapping[str, str]
    extra: str = ""
    polls: bool = False
    settles: float = 0.6
    files: tuple[tuple[str, str], ...] = ()

    @property
    def ours(self) -> bool:
        """Whether it is ours."""
        return self.package == "poorhttp"

    def server(self, kind: Kind) -> Server | None:
        """How it is started for a project; None if it is not for such projects."""
        command = self.commands.get(kind.name, self.commands.get("", ""))
        if not command:
            return None
        files = self.files if self.ours else (*self.files, ("sitecustomize.py", _WITHOUT_US))
        return Server(
            self.name, self.colour, command, self.package, self.extra, compared=False, files=files
        )

    def environ(self, kind: Kind, project: str) -> dict[str, str]:
        """What is different in its environment."""
        paths = [project, str(ROOT) if self.ours else "{folder}"]
        environ = {"PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": ""}
        if kind is DJANGO:
            environ["DJANGO_SETTINGS_MODULE"] = "office.settings"
        return environ


# Some watch every folder of sys.path, and where ours is installed as editable, that has this
# repository in it, which is no business of theirs.
_WITHOUT_US = f"import sys\nsys.path[:] = [path for path in sys.path if path != {str(ROOT)!r}]\n"
_RUN_SIMPLE = """\
from werkzeug.serving import run_simple

from app import application

run_simple("127.0.0.1", $port, application, threaded=True, use_reloader=True)
"""
# Those who settle later take what is saved before their first look for what was there.
_MODULE = " {module}:{callable}"


def ours(name: str, colour: str, options: str = "", extra: str = "") -> Contestant:
    """The development server with options."""
    command = "{python} -m poorhttp dev {module}:{callable} --bind 127.0.0.1:{port} " + options
    return Contestant(name, colour, "poorhttp", {"": command.strip()}, extra)


OURS = ours("poorhttp dev", "#0b4f9e")
FULL = ours("poorhttp dev (full)", "#5b8fd0", "--autoreload full")
SERVE = Contestant(
    "poorhttp serve",
    "#8a8f98",
    "poorhttp",
    {"": "{python} -m poorhttp serve {module}:{callable} --bind 127.0.0.1:{port}"},
)
CONTESTANTS = (
    OURS,
    FULL,
    Contestant(
        "flask run --debug",
        "#1f8a70",
        "flask",
        {FLASK.name: "{python} -m flask --app {module} run --debug --host 127.0.0.1 --port {port}"},
        polls=True,
    ),
    Contestant(
        "Werkzeug run_simple",
        "#57b894",
        "werkzeug",
        dict.fromkeys((HELLO.name, LARGE.name), "{python} {folder}/run.py"),
        polls=True,
        files=(("run.py", _RUN_SIMPLE),),
    ),
    Contestant(
        "runserver",
        "#14532d",
        "django",
        {DJANGO.name: "{python} manage.py runserver 127.0.0.1:{port}"},
        polls=True,
    ),
    Contestant(
        "gunicorn --reload",
        "#8c5a2b",
        "gunicorn",
        {
            "": "{python} -m gunicorn --bind 127.0.0.1:{port} --reload --reload-engine poll"
            + _MODULE
        },
        polls=True,
    ),
    Contestant(
        "gunicorn with inotify",
        "#b98a5c",
        "gunicorn",
        {"": "{python} -m gunicorn --bind 127.0.0.1:{port} --reload" + _MODULE},
        extra="inotify",
    ),
    Contestant(
        "uWSGI py-autoreload=1",
        "#3f8f3f",
        "uWSGI",
        {
            "": "{scripts}/uwsgi --http11-socket 127.0.0.1:{port} --master --die-on-term "
            "--enable-threads --threads 8 --py-autoreload 1 --pythonpath . "
            "--module {module}:{callable}"
        },
        polls=True,
        settles=1.2,
    ),
    Contestant(
        "granian --reload",
        "#b57fd0",
        "granian",
        {
            "": "{python} -m granian --interface wsgi --host 127.0.0.1 --port {port} --reload"
            + _MODULE
        },
        extra="watchfiles",
    ),
    Contestant(
        "waitress under hupper",
        "#c03a78",
        "waitress",
        {"": "{scripts}/hupper -m waitress --listen=127.0.0.1:{port}" + _MODULE},
        extra="hupper",
        polls=True,
        settles=1.2,
    ),
)
MODES = tuple(
    ours(f"poorhttp dev ({mode})", colour, f"--mode {mode}{workers}", extra)
    for mode, colour, workers, extra in (
        ("single", "#0b4f9e", "", ""),
        ("forking", "#2ca6c4", " --workers 2", ""),
        ("threading", "#1a7fb8", " --threads 8", ""),
        ("gevent", "#7cc7df", "", "gevent"),
    )
)
