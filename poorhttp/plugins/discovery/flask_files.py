"""Reads `.env` and `.flaskenv`, as `flask run` does; again when one of them was saved.

`FLASK_ENV_FILE` names a further file, `FLASK_SKIP_DOTENV` leaves the usual ones out. They are read
by python-dotenv, in a process of its own: the main process stays small.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress

from poorhttp.config.ini import read_file
from poorhttp.errors import ConfigError, visible
from poorhttp.plugins.discovery import child_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The usual names. The variables of a later one take precedence.
NAMES = (".flaskenv", ".env")

#: Set by Flask's own command, which has become this process (`flask dev`).
FLASK_COMMAND = "FLASK_RUN_FROM_CLI"

#: Seconds for reading the files.
TIMEOUT = 60.0

#: Bytes of memory of the process that reads them.
MOST_MEMORY = 1 << 30


class FlaskFiles:
    """The files of this server, and the variables that come from them.

    Attributes:
        is_for_command: Flask's own command has started the server, and its options come from the
            files too.
        paths: the files to be watched, also some that do not exist yet.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        """Take the environment in which the server was started."""
        self.is_for_command = FLASK_COMMAND in environ
        self.paths: list[str] = []
        self._names = frozenset(environ)
        #: Files of other users that were reported.
        self._foreign: set[str] = set()
        self._first_state: list[tuple[str, int, int, int]] | None = None
        self._has_advised = self.is_for_command

    def forget(self, environ: MutableMapping[str, str]) -> None:
        """Remove the variables that were set since the start, before they are set anew."""
        for name in list(environ):
            if name not in self._names:
                del environ[name]

    def read(self, environ: MutableMapping[str, str], folder: str) -> None:
        """Set the variables of the files that are used in a folder, unless they are set.

        Raises:
            ConfigError: a file cannot be read.
        """

        def find() -> Any:
            os.chdir(folder)
            return find_variables()

        try:
            answer: Any = child_answer.ask(find, TIMEOUT)
        except child_answer.NoAnswer as error:
            raise ConfigError(f"the variables of .env and .flaskenv: {error}") from None
        if answer["error"]:
            raise ConfigError(answer["error"])
        self.paths = answer["paths"]
        if self._first_state is None:
            self._first_state = self._state()
        for name, value in answer["variables"].items():
            environ.setdefault(name, value)
        for path, owner in answer["foreign"]:
            if path not in self._foreign:
                self._foreign.add(path)
                print(
                    f"poorhttp: {visible(path)}: not read, because it belongs to user "
                    f"{visible(owner)}; FLASK_ENV_FILE={visible(path)} reads it if you trust it",
                    file=sys.stderr,
                )
        if answer["unread"] and not self._has_advised:
            self._has_advised = True
            names = visible(", ".join(answer["unread"]))
            print(
                f"poorhttp: {names}: not read, without python-dotenv: pip install python-dotenv",
                file=sys.stderr,
            )

    def changes(self) -> str:
        """Return a text that differs after each change of the files; empty before the first one."""
        state = self._state()
        return "" if self._first_state in (None, state) else str(state)

    def _state(self) -> list[tuple[str, int, int, int]]:
        state = []
        for path in self.paths:
            with suppress(OSError):
                found = os.stat(path)
                state.append((path, found.st_ino, found.st_mtime_ns, found.st_size))
        return state


def find_variables() -> dict[str, Any]:
    """Return the variables of the files that `flask run` reads in the current folder, as JSON.

    `paths` are the files to be watched; `unread` those that would need python-dotenv; `foreign`
    those that were found and belong to another user, with that user: the folders above, such as
    /tmp, may be anybody's. `error` says why a file cannot be read.
    """
    further = os.environ.get("FLASK_ENV_FILE", "")
    skip = os.environ.get("FLASK_SKIP_DOTENV", "").lower()
    names = NAMES if skip in ("", "0", "false", "no") else ()
    found: dict[str, Any] = {"variables": {}, "paths": [], "unread": [], "foreign": [], "error": ""}
    try:
        import dotenv
    except ImportError:
        found["unread"] = [name for name in (*names, further) if name and os.path.isfile(name)]
        return found
    paths = []
    for name in names:
        if path := dotenv.find_dotenv(name, usecwd=True):
            if owner := _other_owner(path):
                found["foreign"].append((path, owner))
            else:
                paths.append(path)
    if further and os.path.isfile(further):
        paths.append(further)
    for path in filter(os.path.isfile, paths):
        try:
            # Not by its name: another user may have put a named pipe in its place.
            text = read_file(path).decode()
            with _limited_memory():
                read = dotenv.dotenv_values(stream=io.StringIO(text))
        except (OSError, ValueError) as error:
            found["error"] = f"{os.path.abspath(path)} cannot be read: {error}"
            return found
        except MemoryError:
            found["error"] = (
                f"{os.path.abspath(path)}: with each other's values in them, the variables are "
                f"larger than {MOST_MEMORY >> 20} MiB"
            )
            return found
        for name, value in read.items():
            if "=" in name or "\0" in name + (value or ""):
                found["error"] = (
                    f"{os.path.abspath(path)}: {name!r} cannot be a variable of the environment: "
                    "a name without =, and no null bytes"
                )
                return found
            if value is not None:
                found["variables"][name] = value
    wanted = [*paths, *names, *([further] if further else [])]
    found["paths"] = list(dict.fromkeys(os.path.abspath(path) for path in wanted))
    return found


def _other_owner(path: str) -> str:
    """Return the owner of a file, or of a link to it; empty: who may decide what is run here.

    Those are root, this process's user, and the owner of the current folder, whose code is run.
    """
    with suppress(OSError):
        for found in (os.lstat(path), os.stat(path)):
            if found.st_uid not in (0, os.geteuid(), os.stat(".").st_uid):
                from poorhttp.process.privileges import user_name

                return user_name(found.st_uid)
    return ""


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Limit the memory of this process to `MOST_MEMORY`; a MemoryError says that it is not enough.

    A value may name others several times, and those others in turn.
    """
    import resource  # takes memory, here only in a child

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > MOST_MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def started_with(pid: str = "self") -> set[str]:
    """Return the names of the variables with which a process was started."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return {os.fsdecode(word.partition(b"=")[0]) for word in file.read().split(b"\0")}
