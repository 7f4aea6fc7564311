"""Registry of plug-ins: what each adds to the server, ours by a table, others by entry points.

A plug-in is a distribution with entry points in some of the groups `GROUPS`. Those of this
distribution stand in `OURS`, so that no metadata is read and only what is used is imported. The
modules of all are imported from the path with which the interpreter was started: never from the
current folder, nor from what `chdir` and `pythonpath` name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module

from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint
    from typing import Any

#: Version of the contract. A plug-in for another one says so by `POORHTTP_CONTRACT` in its modules.
CONTRACT = 1

#: What a plug-in can add; each is a group of entry points, `poorhttp.targets` and so on.
GROUPS = (
    *("targets", "modes", "commands", "options"),
    *("components", "worker_hooks", "log_sinks", "metrics"),
)

#: Ours: by group and name, the place of the object, `module:attribute` in `poorhttp`.
OURS: Mapping[str, Mapping[str, str]] = {
    "targets": {
        "cgi": "plugins.apps.cgi.target:TARGET",
        "dispatch": "plugins.apps.dispatch.target:TARGET",
        "paste": "targets.paste:TARGET",
        "static": "targets.static:TARGET",
        "tcp": "targets.tcp:TARGET",
        "pages": "plugins.apps.pages.target:TARGET",
        "wsgi": "targets.wsgi:TARGET",
    },
    "modes": {
        "single": "modes.single",
        "forking": "modes.forking",
        "threading": "modes.threading",
        "gevent": "modes.gevent",
    },
    "commands": {
        "serve": "cli:SERVE",
        "dev": "plugins.dev.commands:DEV",
        "check": "cli:CHECK",
        "compile": "plugins.apps.pages.commands:COMPILE",
        "ctl": "plugins.monitor.commands:CTL",
        "top": "plugins.monitor.commands:TOP",
        "init": "plugins.setup.commands:INIT",
        "completion": "plugins.setup.commands:COMPLETION",
        "man": "plugins.setup.commands:MAN",
        "migrate": "plugins.setup.commands:MIGRATE",
        "plugins": "cli:PLUGINS",
    },
    "options": {
        "discovery": "plugins.discovery.options:Discovery",
        "monitor": "plugins.monitor.options:Monitoring",
        "cgi": "plugins.apps.cgi.options:CgiPrograms",
        "pages": "plugins.apps.pages.options:TemplatePages",
        "dev": "plugins.dev.options:Development",
    },
    "components": {
        "monitor": "plugins.monitor.component:Monitor",
        "dev": "plugins.dev.component:DevServer",
    },
    "worker_hooks": {
        "discovery": "plugins.discovery.worker_hooks:HOOKS",
        "monitor": "plugins.monitor.worker_hooks:HOOKS",
        "traces": "plugins.monitor.otel.worker_hooks:HOOKS",
        "dev": "plugins.dev.worker_hooks:HOOKS",
    },
    "log_sinks": {"terminal": "plugins.dev.terminal_sink:SINK"},
    "metrics": {},
}

#: When components and hooks of ours are used: with one of these options, or for one of these
#: commands. Those of others are used whenever their plug-in is named.
USED: Mapping[str, Sequence[str]] = {
    "discovery": ("django",),
    "monitor": ("admin", "statsd", "otel", "tracemalloc"),
    "traces": ("otel",),
    "dev": ("autoreload", "debug", "live", "profile", "https", "open", "access_log=terminal"),
}

#: The hooks that find a target if none is named.
FINDER = "discovery"

#: The path with which the interpreter was started, without the current folder.
PATH = tuple(each for each in sys.path if each not in ("", os.curdir, os.environ.get("PWD")))


class Entry:
    """What a plug-in adds: its group, its name, and how it is loaded.

    Attributes:
        plugin: the distribution that adds it, with its version; empty for ours.
        failure: why it could not be loaded, or is not used any more; empty if nothing is wrong.
    """

    def __init__(self, group: str, name: str, place: str, plugin: str = "") -> None:
        self.group = group
        self.name = name
        self.place = place
        self.plugin = plugin
        self.failure = ""
        self._object: Any = None

    def __str__(self) -> str:
        by = f" of {self.plugin}" if self.plugin else ""
        return f"plug-in {self.name}{by} (poorhttp.{self.group})"

    def load(self) -> Any:
        """Return the object, which is imported for the first call.

        Raises:
            ConfigError: it cannot be imported, or is for another version of the contract.
        """
        if self._object is None:
            module, _, attribute = self.place.partition(":")
            try:
                with _start_path() if self.plugin else nullcontext():
                    found: Any = import_module(module)
                wanted = getattr(found, "POORHTTP_CONTRACT", CONTRACT)
                if wanted != CONTRACT:
                    self.failure = (
                        f"is for version {wanted} of the contract of plug-ins, and this server has "
                        f"version {CONTRACT}: install a version of one that fits the other"
                    )
                    raise ConfigError(f"{self} {self.failure}")
                for part in attribute.split(".") if attribute else ():
                    found = getattr(found, part)
            except ConfigError:
                raise
            except Exception as error:
                self.failure = f"cannot be loaded: {type(error).__name__}: {error}"
                raise ConfigError(f"{self} {self.failure}") from error
            self._object = found
        return self._object


@contextmanager
def _start_path() -> Iterator[None]:
    """Import from the path of the start: in a worker, that of the application stands before it."""
    path = sys.path
    sys.path = list(PATH)
    try:
        yield
    finally:
        sys.path = path


class Registry:
    """All plug-ins that this process knows.

    Attributes:
        entries: of each group, what is known by its name: ours, and what named plug-ins of others
            add.
    """

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Entry]] = {
            group: {
                name: Entry(group, name, f"poorhttp.{place}") for name, place in OURS[group].items()
            }
            for group in GROUPS
        }
        self._others: list[Distribution] | None = None
        self._added: set[str] = set()
        #: Called with the classes of options that a plug-in of others adds.
        self.on_options: Callable[[type], object] = lambda options: None

    def names(self, group: str) -> list[str]:
        """Return the names of a group that are known without a search."""
        return list(self.entries[group])

    def known(self, group: str, name: str) -> Entry | None:
        """Return an entry without a search."""
        return self.entries[group].get(name)

    def find(self, group: str, name: str) -> Entry | None:
        """Return an entry; looks for plug-ins of others that nobody has named, but not as root."""
        entry = self.known(group, name)
        if entry is None and os.geteuid() != 0:
            for distribution in self.installed():
                if any(point.name == name for point in _points(distribution, group)):
                    self.add(distribution)
                    return self.known(group, name)
        return entry

    def used(self, group: str, is_set: Callable[[str], bool]) -> list[Entry]:
        """Return the components or hooks to use: ours by their options, those of named plug-ins.

        `is_set` tells whether an option is set to something else than off.
        """
        return [
            entry
            for name, entry in self.entries[group].items()
            if entry.plugin or self.uses(name, is_set)
        ]

    def uses(self, name: str, is_set: Callable[[str], bool]) -> bool:
        """Tell whether components and hooks of ours with this name are used."""
        return any(map(is_set, USED.get(name, ())))

    def installed(self) -> list[Distribution]:
        """Return the distributions of others that have an entry point for this server."""
        if self._others is None:
            from importlib.metadata import distributions  # slow and large

            self._others = [
                each
                for each in distributions(path=list(PATH))
                if each.name != "poorhttpd" and any(_points(each, group) for group in GROUPS)
            ]
        return self._others

    def use(self, names: Sequence[tuple[str, str]]) -> None:
        """Add the plug-ins that the option `plugins` names, as pairs of place and name.

        Raises:
            ConfigError: one is not installed.
        """
        for where, name in names:
            if name.lower() in self._added:
                continue
            found = next(
                (each for each in self.installed() if each.name.lower() == name.lower()), None
            )
            if found is None:
                there = ", ".join(sorted(each.name for each in self.installed())) or "none"
                raise ConfigError(
                    f'{where}: no plug-in "{name}" is installed; a plug-in has the name of its '
                    f"distribution, and these are installed: {there}"
                )
            self.add(found)

    def is_added(self, distribution: Distribution) -> bool:
        """Tell whether a plug-in of others is used."""
        return distribution.name.lower() in self._added

    def add(self, distribution: Distribution) -> None:
        """Add all that a plug-in of others adds.

        Raises:
            ConfigError: its options cannot be loaded, or have names that are taken.
        """
        if self.is_added(distribution):
            return
        self._added.add(distribution.name.lower())
        for group in GROUPS:
            for point in _points(distribution, group):
                taken = self.entries[group].get(point.name)
                if taken is not None:
                    raise ConfigError(
                        f"plug-in {distribution.name} adds {point.name} (poorhttp.{group}), which "
                        f"{taken.plugin or 'the server'} has already"
                    )
                plugin = f"{distribution.name} {distribution.version}"
                self.entries[group][point.name] = Entry(group, point.name, point.value, plugin)
        for name in [point.name for point in _points(distribution, "options")]:
            self.on_options(self.entries["options"][name].load())

    def add_for_option(self, name: str) -> bool:
        """Add the plug-in of others that declares an option, but not as root.

        Returns:
            Whether there is one.
        """
        if os.geteuid() == 0:
            return False
        for distribution in self.installed():
            if self.is_added(distribution):
                continue
            for point in _points(distribution, "options"):
                entry = Entry("options", point.name, point.value, distribution.name)
                try:
                    options = entry.load()
                except ConfigError:
                    # `poorhttp plugins` shows it. The word is only unknown.
                    continue
                if hasattr(options, name):
                    self.add(distribution)
                    return True
        return False


def _points(distribution: Distribution, group: str) -> list[EntryPoint]:
    return [each for each in distribution.entry_points if each.group == f"poorhttp.{group}"]


registry = Registry()
