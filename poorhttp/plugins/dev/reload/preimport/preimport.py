"""The class `Preimporter`: imports libraries in the fork server, and keeps the list of them.

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

from poorhttp.plugins.dev.reload import pyc_loader
from poorhttp.plugins.dev.reload.preimport.code_cache import CodeCache
from poorhttp.plugins.dev.reload.preimport.discard_output import DiscardOutput
from poorhttp.plugins.dev.reload.preimport.import_blocker import ImportBlocker
from poorhttp.plugins.dev.reload.preimport.import_probe import ImportProbe
from poorhttp.plugins.dev.reload.preimport.import_scan import DJANGO, ImportScan
from poorhttp.plugins.dev.reload.preimport.loaded_modules import attributes, folders, since
from poorhttp.plugins.dev.reload.preimport.project_imports import ProjectImports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings
    from poorhttp.plugins.dev.reload.preimport.import_effects import ImportEffects
    from poorhttp.plugins.dev.reload.watch.project import WatchedProject

#: `DJANGO_SETTINGS_MODULE` while modules are tried. A module that imports it needs the project's
#: settings and is refused. Without it Django would say that there are no settings, and some modules
#: go on without.
SETTINGS_PLACEHOLDER = "poorhttp_the_settings_of_the_project"

#: Prefix of a probe's result that makes preimporting impossible.
_OBSTACLE_PREFIX = "! "

#: Modules that patch the standard library, and the attribute of each that says so.
_PATCHERS = {"gevent.monkey": "saved", "eventlet.patcher": "already_patched"}
_PATCHED = ":patched"

#: Modules with a function that must be called after a fork.
_RENEWED_AFTER_FORK = (("gevent", "reinit"), ("numpy.random", "seed"), ("linecache", "clearcache"))

#: Seconds that a step waits for a probe.
_PROBE_WAIT = 0.02


class Preimporter:
    """The modules that one fork server has imported, will import, or cannot import.

    Attributes:
        failed: modules left to each generation, and why.
        obstacle: why the process cannot be forked for generations at all; empty if it can.
    """

    def __init__(self, project: WatchedProject, services: Sequence[Settings]) -> None:
        """Take the project; `steps` does the work."""
        self.failed: dict[str, str] = {}
        self.obstacle = ""
        self._project = project
        self._services = services
        # Names to be imported: whether each certainly is a module, whether to discard its output.
        self._pending: dict[str, tuple[bool, bool]] = {}
        self._project_imports: ProjectImports | None = None
        self._probe: ImportProbe | None = None
        self._effects: ImportEffects | None = None
        self._code_cache = CodeCache()
        # In a generation: how many modules the fork server has imported, or knows of.
        self._seen = 0
        self._patched: set[str] = set()

    def steps(self) -> Iterator[str]:
        """Import the known modules, one a step; again after `add`.

        Yields the module of the next step; an empty name while the project is read.

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
                self._add(name, certain, quiet=False)
        try:
            while self._pending and not self.obstacle:
                yield from self._import_probed(list(self._pending))
            for name in list(self.failed):
                self._code_cache.add(name, self._project.owns)
                yield ""
        finally:
            if self._probe is not None:
                self._probe.end()
            # Counted here: in a generation, it would copy shared pages.
            self._seen = len(sys.modules)

    def add(self, names: Iterable[str]) -> None:
        """Add the `new_imports` of a generation to the modules to be imported."""
        for name in names:
            if name.endswith(_PATCHED):
                self._set_obstacle(
                    f"{name.removesuffix(_PATCHED)} has patched the standard library, and must do "
                    "so before anything else is imported (mode = gevent does)"
                )
            else:
                self._add(name, certain=True, quiet=True)

    def prepare_generation(self) -> None:
        """Bring Python, in a fork of the fork server, into the state of a fresh process.

        `random` seeds itself after a fork. The caller sets the collector, and has called
        `mode.prepare` before the first import.
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
        """Return library modules that this generation has imported since the last call, in order.

        Cheap if there are none. Lazy modules are not loaded by it.
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
        """Return the folders of all loaded modules, except the standard library's."""
        return folders(list(sys.modules))

    def _add(self, name: str, certain: bool, quiet: bool) -> None:
        if name and name not in self.failed and name not in sys.modules:
            self._pending.setdefault(name, (certain, quiet))

    def _set_obstacle(self, why: str) -> None:
        self.obstacle = self.obstacle or why

    def _compare_modes(self) -> None:
        """Set an obstacle if the services' modes need different processes."""
        from poorhttp.worker import mode

        loaded = {settings.mode: mode.load(settings) for settings in self._services}
        if len(loaded) > 1 and any(hasattr(each, "prepare") for each in loaded.values()):
            self._set_obstacle(
                f"the modes {' and '.join(loaded)} of the services exclude each other"
            )

    def _import_probed(self, names: list[str]) -> Iterator[str]:
        """Import names after a probe, up to the first that is not good."""
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
        """Import a module in a probe; return what is wrong with it."""
        if self._effects is None:
            from poorhttp.plugins.dev.reload.preimport.import_effects import ImportEffects

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
        """Import a module that was good in a probe."""
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
            # The module behaves differently each time, so its effects here are unknown.
            self.failed[name] = why
            self._set_obstacle(f"{name} {why} when it is imported for the second time")

    def _is_outside(self, name: str) -> bool:
        """Whether a name in `sys.modules` is a library module that can be imported by this name."""
        spec = attributes(sys.modules.get(name)).get("__spec__")
        if attributes(spec).get("name") != name:
            # Aliases (`os.path`), lazy and hand-made modules, the program itself.
            return False
        if spec is None or (spec.loader is None and not spec.submodule_search_locations):
            return False
        return not self._is_owned(name)

    def _is_owned(self, name: str) -> bool:
        module = sys.modules.get(name)
        if module is sys.modules.get("__main__"):
            # Under any name: `multiprocessing` has another one for it.
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
