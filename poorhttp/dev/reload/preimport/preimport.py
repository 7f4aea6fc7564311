"""What the keeper has imported, so that no version has to.

In the keeper `Warmth.steps` imports, one module a step, what lies outside of the project: first
what a reading of the project's files finds, then what versions have told that they needed. Each
module is tried in a `Scout` before, and what does not go well there is left to each version, which
does it as a fresh process would. In the child that is a version, `begin_version` makes the rest of
Python as it is in a fresh process, and `news` says what the version had to import itself.
"""

from __future__ import annotations

import _thread
import os
import sys
from importlib import import_module

from poorhttp.dev.reload import pyc_loader
from poorhttp.dev.reload.preimport.code_cache import KeptFinder
from poorhttp.dev.reload.preimport.discard_output import Silence
from poorhttp.dev.reload.preimport.import_blocker import Guard
from poorhttp.dev.reload.preimport.import_probe import Scout
from poorhttp.dev.reload.preimport.import_scan import DJANGO, Scan
from poorhttp.dev.reload.preimport.loaded_modules import attributes, folders, since
from poorhttp.dev.reload.preimport.project_imports import Origins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from poorhttp.config.settings import Settings
    from poorhttp.dev.reload.preimport.import_effects import Traces
    from poorhttp.dev.reload.watch.project import Project

#: Stands for the settings of a Django project while modules are tried. Who asks for it asks for the
#: project's, which must not be in the keeper; else Django would say that there are none, and some
#: modules take that for an answer.
NOBODY = "poorhttp_the_settings_of_the_project"

#: Before what a scout says of a module that makes all warmth impossible.
_OBSTACLE = "! "

#: Who replaces parts of the standard library, and where each notes that it has.
_PATCHERS = {"gevent.monkey": "saved", "eventlet.patcher": "already_patched"}
_PATCHED = ":patched"

#: What a fork has to do anew: a module, and its function for that.
_RENEWED = (("gevent", "reinit"), ("numpy.random", "seed"), ("linecache", "clearcache"))

#: Seconds that a step waits for a scout.
_PAUSE = 0.02


class Warmth:
    """What one keeper knows.

    Attributes:
        failed: the modules that are left to each version, and why.
        obstacle: why nothing can be kept warm; empty as long as nothing speaks against it. The
            keeper itself is unharmed by what a scout has met; what was met is in `failed` as well.
        quiet: nobody shall hear what modules print when they are imported, warnings too, since
            somebody else tells it. Of those that versions have told of nobody does anyway.
    """

    def __init__(self, project: Project, services: Sequence[Settings]) -> None:
        """Take the project. Nothing is looked for yet."""
        self.failed: dict[str, str] = {}
        self.obstacle = ""
        self.quiet = False
        self._project = project
        self._services = services
        # Names that are to be imported: whether it certainly is a module, whether it is quiet.
        self._wanted: dict[str, tuple[bool, bool]] = {}
        self._origins: Origins | None = None
        self._scout: Scout | None = None
        self._traces: Traces | None = None
        self._kept = KeptFinder()
        # In a version: how many modules are known to the keeper, or told already.
        self._seen = 0
        self._patched: set[str] = set()

    def steps(self) -> Iterator[str]:
        """Import what is known of, one module a step; once more after `learn`.

        Each tells which module the next one is about; empty while the project is read.

        A step takes as long as one module takes. Where a scout is under way it waits for that, but
        not for long: who has other things to do waits for `fileno` as well, and then takes a step.
        A module that hangs does so in a scout, which is ended after `scout.PATIENCE`; the keeper
        would hang only with one that hangs the second time.
        """
        if self._origins is None:
            self._origins = Origins(self._project, self._services)
            self._compare_modes()
            scan = Scan(self._origins)
            for _ in scan.steps():
                yield ""
            for name, certain in scan.found.items():
                self._want(name, certain, quiet=self.quiet)
        try:
            while self._wanted and not self.obstacle:
                yield from self._bring(list(self._wanted))
            for name in list(self.failed):
                self._kept.keep(name, self._project.owns)
                yield ""
        finally:
            if self._scout is not None:
                self._scout.end()
            # Here, since whoever does it touches every name, and a version has its pages to itself.
            self._seen = len(sys.modules)

    def fileno(self) -> int:
        """What can be read when a step has something to do; -1 if it has something anyway."""
        scout = self._scout
        return -1 if scout is None or scout.finished else scout.fileno()

    def learn(self, names: Iterable[str]) -> None:
        """Take the `news` of a version: what else is to be imported."""
        for name in names:
            if name.endswith(_PATCHED):
                self._hinder(
                    f"{name.removesuffix(_PATCHED)} has patched the standard library, and must do "
                    "so before anything else is imported (mode = gevent does)"
                )
            else:
                self._want(name, certain=True, quiet=True)

    def begin_version(self) -> None:
        """Make Python, in a fork of the keeper, what it is in a process that was just started.

        `random` seeds itself after a fork. The collector is the keeper's business, and so is what a
        mode does before anything is imported (`modes.prepare`).
        """
        if self._scout is not None:
            self._scout.end()
        pyc_loader.install(self._project)
        sys.meta_path.insert(0, self._kept)
        for name, renew in _RENEWED:
            function = attributes(sys.modules.get(name)).get(renew)
            if function is not None:
                function()
        self._patched = _patchers()
        self._seen = len(sys.modules)

    def news(self) -> list[str]:
        """What this version has imported from outside since it was last asked, in that order.

        Costs next to nothing if there is nothing new. No module is touched, lazy ones stay so.
        """
        if len(sys.modules) == self._seen:
            return []
        names = since(self._seen)
        self._seen = len(sys.modules)
        news = [name for name in names if name not in self.failed and self._is_outside(name)]
        patched = _patchers() - self._patched
        self._patched |= patched
        return news + [name + _PATCHED for name in patched]

    def folders(self) -> set[str]:
        """The folders of all modules that are loaded now, but for the standard library.

        Each is meant without those that are in it: theirs are told too.
        """
        return folders(list(sys.modules))

    def _want(self, name: str, certain: bool, quiet: bool) -> None:
        if name and name not in self.failed and name not in sys.modules:
            self._wanted.setdefault(name, (certain, quiet))

    def _hinder(self, why: str) -> None:
        self.obstacle = self.obstacle or why

    def _compare_modes(self) -> None:
        """See whether one process can be what all services begin with."""
        from poorhttp import modes

        loaded = {settings.mode: modes.load(settings) for settings in self._services}
        if len(loaded) > 1 and any(hasattr(mode, "prepare") for mode in loaded.values()):
            self._hinder(f"the modes {' and '.join(loaded)} of the services exclude each other")

    def _bring(self, names: list[str]) -> Iterator[str]:
        """Import names, up to the first that is not good."""
        good = 0
        scout = self._scout = Scout(names, self._attempt)
        while not scout.finished:
            yield names[min(good, len(names) - 1)]
            for _ in range(scout.hear(_PAUSE)):
                self._import(names[good])
                good += 1
                yield names[min(good, len(names) - 1)]
        if good < len(names) and scout.mishap:
            name = names[good]
            del self._wanted[name]
            if scout.mishap.startswith(_OBSTACLE):
                whose, _, what = scout.mishap.removeprefix(_OBSTACLE).partition(" ")
                self.failed[name] = what
                self._hinder(f"{whose} {what} when it is imported")
            else:
                self.failed[name] = scout.mishap

    def _attempt(self, name: str) -> str:
        """Import one, in a scout; return what is wrong with it."""
        if self._traces is None:
            from poorhttp.dev.reload.preimport.import_effects import Traces

            os.environ[DJANGO] = NOBODY
            self._traces = Traces()
        assert self._origins is not None
        known = set(sys.modules)
        guard = Guard(self._origins, NOBODY)
        with guard:
            why = _imported(name, self._wanted[name][0])
        if guard.refused == NOBODY:
            return "needs the settings of the project"
        if guard.refused:
            return f"needs the project's own {guard.refused}"
        whose, obstacle = self._traces.obstacle()
        if obstacle:
            return f"{_OBSTACLE}{whose or name} {obstacle}"
        for new in set(sys.modules) - known:
            if self._is_owned(new):
                return f"imports the project's own {new}"
        return why or ("changes sys.path" if guard.moved else self._traces.change())

    def _import(self, name: str) -> None:
        """Import one that is good."""
        certain, quiet = self._wanted.pop(name)
        if name in sys.modules:
            return
        assert self._origins is not None
        guard = Guard(self._origins, NOBODY)
        with guard:
            if quiet:
                with Silence():
                    why = _imported(name, certain)
            else:
                why = _imported(name, certain)
        if guard.refused:
            why = f"needs the project's own {guard.refused}"
        elif _thread._count() and "gevent" not in sys.modules:
            why = "starts a thread"
        if why:
            # It does not do the same each time, so nobody knows what is left of it here.
            self.failed[name] = why
            self._hinder(f"{name} {why} when it is imported for the second time")

    def _is_outside(self, name: str) -> bool:
        """Whether a name in `sys.modules` is that of a module that anybody could import by it."""
        spec = attributes(sys.modules.get(name)).get("__spec__")
        if attributes(spec).get("name") != name:
            # Aliases (`os.path`), lazy ones, what was made by hand, the program itself.
            return False
        if spec is None or (spec.loader is None and not spec.submodule_search_locations):
            return False
        return not self._is_owned(name)

    def _is_owned(self, name: str) -> bool:
        module = sys.modules.get(name)
        if module is sys.modules.get("__main__"):
            # By whatever name: `multiprocessing` has one of its own for it.
            return False
        own = attributes(module)
        file = own.get("__file__")
        if isinstance(file, str):
            return self._project.owns(file)
        spec = own.get("__spec__")
        parts = getattr(spec, "submodule_search_locations", None) or ()
        return any(self._project.owns(os.path.join(part, "any.py")) for part in parts)


def _imported(name: str, certain: bool) -> str:
    """Import a module; return what is wrong with it, empty if nothing is."""
    try:
        package, _, leaf = name.rpartition(".")
        if package and leaf in vars(import_module(package)) and not certain:
            return ""
        import_module(name)
    except SystemExit as end:
        return f"calls sys.exit({end.code!r})"
    except ModuleNotFoundError as error:
        return f"needs {error.name}, which is not there"
    except BaseException as error:
        text = f": {error}" if str(error) else ""
        return f"raises {type(error).__name__}{text}"
    return ""


def _patchers() -> set[str]:
    return {name for name, note in _PATCHERS.items() if attributes(sys.modules.get(name)).get(note)}
