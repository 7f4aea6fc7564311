"""Servers with reload on save, for the study `develop`: a command for each project."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from loadtests.programs import ROOT
from loadtests.python_path import lab_folder
from loadtests.servers.projects import DJANGO, Kind
from loadtests.servers.registry import commands
from loadtests.servers.registry.commands import LOOPBACK
from loadtests.servers.registry.listed import listed
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


def _ours(name: str, colour: str, options: str = "") -> ReloadingServer:
    command = f"{{python}} -m poorhttp dev {{module}}:{{callable}} --bind {LOOPBACK} {options}"
    extra = "gevent" if "gevent" in options else ""
    return ReloadingServer(f"poorhttp {name}", colour, command.strip(), "poorhttp", extra)


def _others() -> Iterator[ReloadingServer]:
    for one, own in listed("develop.ini"):
        runs = [("run.py", _RUN_SIMPLE)] if "run.py" in one.command else []
        yield ReloadingServer(
            **{**vars(one), "files": (*runs, ("sitecustomize.py", _WITHOUT_US))},
            only=tuple(own.get("only", "").split()),
            polls=own.getboolean("polls", True),
            settles=own.getfloat("settles", ReloadingServer.settles),
        )


OURS = _ours("dev", "#0b4f9e")
_COMMAND = OURS.command.replace(" dev ", " serve ")
SERVE = replace(OURS, name="poorhttp serve", colour="#8a8f98", command=_COMMAND)
SERVERS = (OURS, _ours("dev (full)", "#5b8fd0", "--autoreload full"), *_others())
MODES = tuple(
    _ours(f"dev ({mode.split()[0]})", colour, f"--mode {mode}")
    for mode, colour in commands.MODES.items()
)
EVERYONE = (*SERVERS, *MODES, SERVE)
