"""`poorhttp dev` as a process, and a project folder whose files tests change."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.testkit.server import Server, command, patched, wait_for

#: Command line of the development server.
DEV = tuple(command("dev"))

#: Starts the server as it would be with a `LONG` that tests have the time for. It is longer than a
#: busy machine takes to import what comes before.
IMPATIENT = patched("poorhttp.plugins.dev.reload.reloader", SLOW_LOADING=2)

#: Two modules that must agree: an answer of half a version would show.
APP = """\
import hashlib, json, os, time
import part

VERSION = {version}

def application(environ, start_response):
    path = environ["PATH_INFO"].strip("/")
    if path.isdecimal():
        time.sleep(int(path) / 1000)
    start_response("200 OK", [("Content-Type", "application/json")])
    told = {{
        "version": str(VERSION),
        "part": str(part.VERSION),
        "pid": os.getpid(),
        "query": environ["QUERY_STRING"],
        "digest": hashlib.sha256(environ["wsgi.input"].read()).hexdigest(),
    }}
    return [json.dumps(told).encode()]
"""
PART = "VERSION = {version}\n"


def answering(body: str, first: str = "") -> str:
    """The text of a module that runs a line first, and whose application answers with a body."""
    return (
        f"{first}def application(environ, start_response):\n"
        f"    start_response('200 OK', [])\n    return [{body}]\n"
    )


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def save(path: Path, text: str) -> None:
    """Save a file as editors do: another one takes its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + "~")
    new.write_text(text)
    new.replace(path)


class Started(Server):
    """A server that another command than `poorhttp serve` starts, on a port of its own choice."""

    def __init__(
        self,
        *words: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        tracebacks: bool = False,
        reloads: bool = True,
    ) -> None:
        env = {"POORHTTP_BIND": "127.0.0.1:0", **(env or {})}
        if not reloads:
            # A watcher, a fork server and a process that stands by take as long as all the rest.
            env["POORHTTP_AUTORELOAD"] = "off"
        self._start(*words, cwd=cwd, env=env, tracebacks=tracebacks)

    @property
    def said(self) -> str:
        """What it has said that it found; empty if nothing."""
        found = re.search("^poorhttp: (found .*)$", self.log(), re.MULTILINE)
        return found[1] if found else ""


class ProjectFolder:
    """A folder with a project that `poorhttp dev` serves, whose files tests save."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.save("part.py", PART.format(version=1))
        self.save("app.py", APP.format(version=1))
        for path in folder.iterdir():
            # Nobody shall take it for a save of this moment.
            os.utime(path, (1_700_000_000, 1_700_000_000))

    def save(self, name: str, text: str) -> None:
        """Save a file of it as editors do."""
        save(self.folder / name, text)

    def save_version(self, version: int) -> None:
        """Save both modules, the one that is imported first."""
        self.save("part.py", PART.format(version=version))
        self.save("app.py", APP.format(version=version))

    @contextmanager
    def develop(
        self, mode: str = "threading", *options: str, target: str = "app:application", **more: Any
    ) -> Iterator[Server]:
        """Serve it with `poorhttp dev`."""
        options = ("--access-log", "off", *options)
        with Server(target, mode, *options, cwd=self.folder, verb="dev", **more) as server:
            yield server


def version(server: Server) -> str:
    return str(server.get("/").json()["version"])


def wait_text(server: Server, text: str, accept: str = "text/plain") -> str:
    """Wait until a request is answered with a text that has this in it, and return it."""
    found = ""

    def has() -> bool:
        nonlocal found
        found = server.get("/", f"Accept: {accept}").body.decode()
        return text in found

    wait_for(has, f"{text!r} in an answer; the log is\n{server.log()}")
    return found
