"""Servers that reload, each started for each project as its documentation says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadtests.programs import ROOT
from loadtests.servers.projects import DJANGO, FLASK, HELLO, LARGE, Kind
from loadtests.servers.registry.commands import GRANIAN, GUNICORN, MODULE, UWSGI
from loadtests.servers.registry.server import Server


@dataclass(frozen=True)
class ReloadingServer(Server):
    """A server with its command for every project, and those for some projects in `commands`.

    Without a command it is for no other projects.

    `polls` says that it looks for changes once a second, and is not told; `settles` is for how many
    seconds it is left alone after it has answered anew. That is enough for no file to be saved
    twice within one second, which is an experiment of its own, and for those who take what is saved
    before their first look for what was there.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    polls: bool = False
    settles: float = 0.6

    def server(self, kind: Kind) -> Server | None:
        """The server as it is started for a project; None if it is not for such projects."""
        command = self.commands.get(kind.name, self.command)
        if not command:
            return None
        files = self.files if self.ours else (*self.files, ("sitecustomize.py", _WITHOUT_US))
        return Server(
            self.name, self.colour, command, self.package, self.extra, compared=False, files=files
        )

    def environ(self, kind: Kind, project: str) -> dict[str, str]:
        """Environment variables of the server that differ from the lab's."""
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


def ours(name: str, colour: str, options: str = "", extra: str = "") -> ReloadingServer:
    """The development server with options."""
    command = "{python} -m poorhttp dev {module}:{callable} --bind 127.0.0.1:{port} " + options
    return ReloadingServer(name, colour, command.strip(), "poorhttp", extra)


OURS = ours("poorhttp dev", "#0b4f9e")
FULL = ours("poorhttp dev (full)", "#5b8fd0", "--autoreload full")
SERVE = ReloadingServer(
    "poorhttp serve",
    "#8a8f98",
    "{python} -m poorhttp serve {module}:{callable} --bind 127.0.0.1:{port}",
    "poorhttp",
)
SERVERS = (
    OURS,
    FULL,
    ReloadingServer(
        "flask run --debug",
        "#1f8a70",
        "",
        "flask",
        commands={
            FLASK.name: "{python} -m flask --app {module} run --debug --host 127.0.0.1 "
            "--port {port}"
        },
        polls=True,
    ),
    ReloadingServer(
        "Werkzeug run_simple",
        "#57b894",
        "",
        "werkzeug",
        commands=dict.fromkeys((HELLO.name, LARGE.name), "{python} {folder}/run.py"),
        polls=True,
        files=(("run.py", _RUN_SIMPLE),),
    ),
    ReloadingServer(
        "runserver",
        "#14532d",
        "",
        "django",
        commands={DJANGO.name: "{python} manage.py runserver 127.0.0.1:{port}"},
        polls=True,
    ),
    ReloadingServer(
        "gunicorn --reload",
        "#8c5a2b",
        f"{GUNICORN} --reload --reload-engine poll{MODULE}",
        "gunicorn",
        polls=True,
    ),
    ReloadingServer(
        "gunicorn with inotify",
        "#b98a5c",
        f"{GUNICORN} --reload{MODULE}",
        "gunicorn",
        extra="inotify",
    ),
    ReloadingServer(
        "uWSGI py-autoreload=1",
        "#3f8f3f",
        f"{UWSGI} --http11-socket 127.0.0.1:{{port}} --master --die-on-term --enable-threads "
        "--threads 8 --py-autoreload 1 --pythonpath . --module {module}:{callable}",
        "uWSGI",
        polls=True,
        settles=1.2,
    ),
    ReloadingServer(
        "granian --reload",
        "#b57fd0",
        f"{GRANIAN} --reload{MODULE}",
        "granian",
        extra="watchfiles",
    ),
    ReloadingServer(
        "waitress under hupper",
        "#c03a78",
        "{scripts}/hupper -m waitress --listen=127.0.0.1:{port}" + MODULE,
        "waitress",
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
