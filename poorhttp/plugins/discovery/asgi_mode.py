"""Chooses mode `asyncio` where no mode is set and the source of a target makes an ASGI application.

Source is read and not run, in a process of its own. It is not if the file of the target says that
its application is one of WSGI, or if nothing for ASGI is installed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from poorhttp.config.registry import ASGI_MODE
from poorhttp.config.settings import Settings
from poorhttp.process.safe_open import open_regular
from poorhttp.targets import wsgi
from poorhttp.worker.plugin_hooks import WorkerHooks

#: Words in the source of applications of ASGI, and of WSGI.
ASGI_WORDS = (b"asgi", b"ASGI", b"receive, send", b"FastAPI", b"Starlette")
WSGI_WORDS = (b"wsgi", b"WSGI", b"start_response", b"flask", b"bottle")

#: A package of each framework of ASGI, or one that the framework needs.
PACKAGES = ("starlette", "litestar", "quart", "sanic", "blacksheep", "socketio")

#: Seconds for reading the source, and bytes of a file of which words are looked for.
TIMEOUT = 10.0
LONGEST = 1 << 20


class ModeHooks(WorkerHooks):
    """Used by every server: costs a small file and a part of a millisecond where no mode is set."""

    def complete(self, services: Sequence[Settings]) -> None:
        """Set the mode of services with an ASGI application."""
        for settings in services:
            if not settings.is_set("mode") and any(
                _is_asgi(settings, *each) for each in _targets(settings)
            ):
                for each in (settings, *settings.hosts.values()):
                    each.set("mode", [(settings.origin("target"), ASGI_MODE)])


HOOKS = ModeHooks()


def _targets(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Return root folder, file and expression of each target that is a callable of a file."""
    for each in (settings, *settings.hosts.values()):
        for target in (each.target, *(target for _, target in each.mount)):
            place, _, expression = wsgi.split(target)
            for folder in (*_folders(settings), *sys.path):
                stem = os.path.join(folder, place.replace(".", "/"))
                files = f"{stem}.py", os.path.join(stem, "__init__.py"), os.path.join(folder, place)
                file = next(filter(os.path.isfile, files), "") if place else ""
                if file.endswith(".py"):
                    yield folder, file, expression
                    break


def _folders(settings: Settings) -> list[str]:
    """Return where modules of the project are looked for."""
    return [os.path.join(settings.chdir, each) for each in ("", *settings.pythonpath)]


def _is_asgi(settings: Settings, root: str, file: str, expression: str) -> bool:
    """Tell whether a callable of a file is an ASGI application."""
    try:
        with open(open_regular(file), "rb") as opened:
            content = opened.read(LONGEST)
    except OSError:
        return False
    if not any(word in content for word in ASGI_WORDS) and (
        any(word in content for word in WSGI_WORDS)
        or not (
            b"async def" in content
            or any(os.path.isdir(os.path.join(at, each)) for at in sys.path for each in PACKAGES)
        )
    ):
        return False
    # Parsing takes memory that each process of the server would have.
    from poorhttp.plugins.discovery import child_answer

    def look() -> bool:
        from poorhttp.plugins.discovery.candidates import is_asgi
        from poorhttp.plugins.discovery.source.python import Sources

        sources = Sources([root, *_folders(settings)])
        source = sources.read(file)
        names = [expression] if expression else [*filter(source.has, wsgi.DEFAULTS)][:1]
        return any(is_asgi(sources, source, name) for name in names)

    try:
        return child_answer.ask(look, TIMEOUT) is True
    except (child_answer.NoAnswer, OSError):
        return False
