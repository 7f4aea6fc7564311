"""What `poorhttp dev` serves where nobody says it, or says no more than a folder or a file.

The search reads source and runs none of it (`poorhttp/dev/discovery/search.py`). It happens in a
process of its own: what Python takes to read Python would stay in every process of the server.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence

from poorhttp.config.settings import OPTIONS
from poorhttp.errors import UsageError
from poorhttp.process import fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.config.settings import Settings

#: Where an option was set that is given here.
ORIGIN = "found by dev"


class FoundTarget:
    """What was found.

    Attributes:
        target: to be served; may be empty, if something is mounted.
        mount: `/PREFIX=TARGET` each.
        folder: to go to, as `chdir` does; may be empty.
        pythonpath: folders in which its modules are.
        environment: variables that it wants, unless they are set.
        sentence: what was found, and how.
    """

    def __init__(
        self,
        target: str,
        sentence: str,
        *,
        mount: Sequence[str] = (),
        folder: str = "",
        pythonpath: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        self.target = target
        self.sentence = sentence
        self.mount = list(mount)
        self.folder = folder
        self.pythonpath = list(pythonpath)
        self.environment = environment or {}

    def apply(self, settings: Settings, environ: MutableMapping[str, str]) -> None:
        """Give settings and environment what was found."""
        place = settings.origin("target") if settings.target else ORIGIN
        if self.target:
            settings.set(OPTIONS["target"], [(place, self.target)])
        if self.mount:
            settings.set(OPTIONS["mount"], [(ORIGIN, text) for text in self.mount])
        if self.folder:
            chdir = os.path.join(settings.chdir, self.folder)
            settings.set(OPTIONS["chdir"], [(place, chdir)])
        if self.pythonpath:
            given = [
                (settings.origin("pythonpath", number), text)
                for number, text in enumerate(settings.written("pythonpath"))
            ]
            found = [(ORIGIN, folder) for folder in self.pythonpath]
            settings.set(OPTIONS["pythonpath"], [*given, *found])
        for name, value in self.environment.items():
            environ.setdefault(name, value)


class Discovery:
    """Finds it once: what was found stays the same when the configuration is read again."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str], FoundTarget | None] = {}

    def complete(self, services: Sequence[Settings]) -> None:
        """Put in what was not said, and say on standard error what was found.

        Raises:
            UsageError: nothing was found, or more than one thing.
        """
        for settings in services:
            # What describes several services says what each serves.
            if not settings.service and (settings.target or not settings.serves):
                self._complete(settings)

    def _complete(self, settings: Settings) -> None:
        if settings.target and not _may_be_found(settings.target, settings.chdir):
            return
        asked = settings.chdir, settings.target
        if asked not in self._answers:
            self._answers[asked] = found = _search(*asked)
            if found is not None:
                print(f"poorhttp: {found.sentence}", file=sys.stderr)
        found = self._answers[asked]
        if found is not None:
            found.apply(settings, os.environ)


def _may_be_found(target: str, chdir: str) -> bool:
    """Tell whether a target names a folder, a file or a module, and nothing in it."""
    return ":" not in target or os.path.exists(os.path.join(chdir, target))


def _search(chdir: str, target: str) -> FoundTarget | None:
    """Search in a process of its own.

    Raises:
        UsageError: as the search.
    """
    read, write = os.pipe()

    def run() -> None:
        os.close(read)
        from poorhttp.dev.discovery import search

        try:
            found = search.search(chdir, target)
            words: Any = ("found", vars(found)) if found else ("named",)
        except UsageError as failure:
            words = ("failed", str(failure))
        except OSError as error:
            words = ("failed", f"{error.filename}: {error.strerror}; name what is to be served")
        with open(write, "wb") as pipe:
            pipe.write(marshal.dumps(words))
        os._exit(0)

    pid = fork.fork(lambda: _report_exceptions(run))
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    if not answer:
        raise UsageError(
            "what is to be served cannot be found; name it: poorhttp dev package.module:application"
        )
    words = marshal.loads(answer)
    if words[0] == "failed":
        raise UsageError(words[1])
    return FoundTarget(**words[1]) if words[0] == "found" else None


def _report_exceptions(run: Callable[[], None]) -> None:
    """Have a fault of ours told by the process that will end by it."""
    try:
        run()
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
