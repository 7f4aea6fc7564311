"""Imports of libraries in the fork server, so that no generation has to repeat them.

In the fork server, `Preimporter.steps` imports modules from outside the project, one a step: first
those that the project's files import, then those that earlier generations have reported. Each
module is tried in an `ImportProbe` first; one that fails there is left to each generation, which
imports it as a fresh process would. In the child that becomes a generation, `prepare_generation`
brings the rest of Python into the state of a fresh process, and `new_imports` lists the modules
that the generation had to import itself.
"""

from __future__ import annotations

import _thread
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

from poorhttp.dev.reload import pyc_loader
from poorhttp.dev.reload.preimport.code_cache import CodeCache
from poorhttp.dev.reload.preimport.discard_output import DiscardOutput
from poorhttp.dev.reload.preimport.import_blocker import ImportBlocker
from poorhttp.dev.reload.preimport.import_probe import ImportProbe
from poorhttp.dev.reload.preimport.import_scan import DJANGO, ImportScan
from poorhttp.dev.reload.preimport.loaded_modules import attributes, folders, since
from poorhttp.dev.reload.preimport.project_imports import ProjectImports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings
    from poorhttp.dev.reload.preimport.import_effects import ImportEffects
    from poorhttp.dev.reload.watch.project import Project

#: Stands for the settings of a Django project while modules are tried. Who asks for it asks for the
#: project's, which must not be in the keeper; else Django would say that there are none, and some
#: modules take that for an answer.
SETTINGS_PLACEHOLDER = "poorhttp_the_settings_of_the_project"

#: Before what a scout says of a module that makes all warmth impossible.
_OBSTACLE_PREFIX = "! "

#: Who replaces parts of the standard library, and where each notes that it has.
_PATCHERS = {"gevent.monkey": "saved", "eventlet.patcher": "already_patched"}
_PATCHED = ":patched"

#: What a fork has to do anew: a module, and its function for that.
_RENEWED_AFTER_FORK = (("gevent", "reinit"), ("numpy.random", "seed"), ("linecache", "clearcache"))

#: Seconds that a step waits for a scout.
_PROBE_WAIT = 0.02


class Preimporter:
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
        self._pending: dict[str, tuple[bool, bool]] = {}
        self._project_imports: ProjectImports | None = None
        self._probe: ImportProbe | None = None
        self._effects: ImportEffects | None = None
        self._code_cache = CodeCache()
        # In a version: how many modules are known to the keeper, or told already.
        self._seen = 0
        self._patched: set[str] = set()

    def steps(self) -> Iterator[str]:
        """Import what is known of, one module a step; once more after `add`.

        Each tells which module the next one is about; empty while the project is read.

        A step takes as long as the import of one module, or waits `_PROBE_WAIT` for a probe. A
        module that hangs does so in the probe, which is killed after `import_probe.IMPORT_TIMEOUT`;
        the fork server hangs only with a module that hangs the second time.
        """
        if self._project_imports is None:
            self._project_imports = ProjectImports(self._project, self._services)
            self._compare_modes()
            scan = ImportScan(self._project_imports)
            for _ in scan.steps():
                yield ""
            for name, certain in scan.found.items():
                self._add(name, certain, quiet=self.quiet)
        try:
            while self._pending and not self.obstacle:
                yield from self._import_probed(list(self._pending))
            for name in list(self.failed):
                self._code_cache.add(name, self._project.owns)
                yield ""
        finally:
            if self._probe is not None:
                self._probe.end()
            # Here, since whoever does it touches every name, and a version has its pages to itself.
            self._seen = len(sys.modules)

    def fileno(self) -> int:
        """What can be read when a step has something to do; -1 if it has something anyway."""
        probe = self._probe
        return -1 if probe is None or probe.finished else probe.fileno()

    def add(self, names: Iterable[str]) -> None:
        """Take the `new_imports` of a version: what else is to be imported."""
        for name in names:
            if name.endswith(_PATCHED):
                self._set_obstacle(
                    f"{name.removesuffix(_PATCHED)} has patched the standard library, and must do "
                    "so before anything else is imported (mode = gevent does)"
                )
            else:
                self._add(name, certain=True, quiet=True)

    def prepare_generation(self) -> None:
        """Make Python, in a fork of the keeper, what it is in a process that was just started.

        `random` seeds itself after a fork. The collector is the keeper's business, and so is what a
        mode does before anything is imported (`modes.prepare`).
        """
        if self._probe is not None:
            self._probe.end()
        pyc_loader.install(self._project)
        sys.meta_path.insert(0, self._code_cache)
        for name, renew in _RENEWED_AFTER_FORK:
            function = attributes(sys.modules.get(name)).get(renew)
            if function is not None:
                function()
        self._patched = _active_patchers()
        self._seen = len(sys.modules)

    def new_imports(self) -> list[str]:
        """What this version has imported from outside since it was last asked, in that order.

        Costs next to nothing if there is nothing new. No module is touched, lazy ones stay so.
        """
        if len(sys.modules) == self._seen:
            return []
        names = since(self._seen)
        self._seen = len(sys.modules)
        new_imports = [name for name in names if name not in self.failed and self._is_outside(name)]
        patched = _active_patchers() - self._patched
        self._patched |= patched
        return new_imports + [name + _PATCHED for name in patched]

    def folders(self) -> set[str]:
        """The folders of all modules that are loaded now, but for the standard library.

        Each is meant without those that are in it: theirs are told too.
        """
        return folders(list(sys.modules))

    def _add(self, name: str, certain: bool, quiet: bool) -> None:
        if name and name not in self.failed and name not in sys.modules:
            self._pending.setdefault(name, (certain, quiet))

    def _set_obstacle(self, why: str) -> None:
        self.obstacle = self.obstacle or why

    def _compare_modes(self) -> None:
        """See whether one process can be what all services begin with."""
        from poorhttp import modes

        loaded = {settings.mode: modes.load(settings) for settings in self._services}
        if len(loaded) > 1 and any(hasattr(mode, "prepare") for mode in loaded.values()):
            self._set_obstacle(
                f"the modes {' and '.join(loaded)} of the services exclude each other"
            )

    def _import_probed(self, names: list[str]) -> Iterator[str]:
        """Import names, up to the first that is not good."""
        good = 0
        probe = self._probe = ImportProbe(names, self._probe_import)
        while not probe.finished:
            yield names[min(good, len(names) - 1)]
            for _ in range(probe.receive(_PROBE_WAIT)):
                self._import(names[good])
                good += 1
                yield names[min(good, len(names) - 1)]
        if good < len(names) and probe.failure:
            name = names[good]
            del self._pending[name]
            if probe.failure.startswith(_OBSTACLE_PREFIX):
                whose, _, what = probe.failure.removeprefix(_OBSTACLE_PREFIX).partition(" ")
                self.failed[name] = what
                self._set_obstacle(f"{whose} {what} when it is imported")
            else:
                self.failed[name] = probe.failure

    def _probe_import(self, name: str) -> str:
        """Import one, in a scout; return what is wrong with it."""
        if self._effects is None:
            from poorhttp.dev.reload.preimport.import_effects import ImportEffects

            os.environ[DJANGO] = SETTINGS_PLACEHOLDER
            self._effects = ImportEffects()
        assert self._project_imports is not None
        known = set(sys.modules)
        blocker = ImportBlocker(self._project_imports, SETTINGS_PLACEHOLDER)
        with blocker:
            why = _imported(name, self._pending[name][0])
        if blocker.refused == SETTINGS_PLACEHOLDER:
            return "needs the settings of the project"
        if blocker.refused:
            return f"needs the project's own {blocker.refused}"
        whose, obstacle = self._effects.obstacle()
        if obstacle:
            return f"{_OBSTACLE_PREFIX}{whose or name} {obstacle}"
        for new in set(sys.modules) - known:
            if self._is_owned(new):
                return f"imports the project's own {new}"
        return why or ("changes sys.path" if blocker.path_changed else self._effects.change())

    def _import(self, name: str) -> None:
        """Import one that is good."""
        certain, quiet = self._pending.pop(name)
        if name in sys.modules:
            return
        assert self._project_imports is not None
        blocker = ImportBlocker(self._project_imports, SETTINGS_PLACEHOLDER)
        with blocker:
            if quiet:
                with DiscardOutput():
                    why = _imported(name, certain)
            else:
                why = _imported(name, certain)
        if blocker.refused:
            why = f"needs the project's own {blocker.refused}"
        elif _thread._count() and "gevent" not in sys.modules:
            why = "starts a thread"
        if why:
            # It does not do the same each time, so nobody knows what is left of it here.
            self.failed[name] = why
            self._set_obstacle(f"{name} {why} when it is imported for the second time")

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


def _active_patchers() -> set[str]:
    return {name for name, note in _PATCHERS.items() if attributes(sys.modules.get(name)).get(note)}
