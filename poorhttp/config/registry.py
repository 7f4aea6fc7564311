"""All targets, modes, commands and options of plug-ins: a table of ours, entry points of others.

A plug-in is a distribution with entry points in some of the groups `GROUPS`. Those of this
distribution stand in `OURS`, so that no metadata is read and only what is used is imported.

Plug-ins of others run in the main process, so they are looked for, and imported, on the path with
which the interpreter was started: never in the current folder, nor in what `chdir` and `pythonpath`
name. A server that root starts uses only those that the option `plugins` names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module

from poorhttp.errors import ApplicationError, ConfigError, Failure, Stopped, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import Distribution
    from typing import Any

#: Version of the contract. A plug-in names its own by an entry point of the group
#: `poorhttp.contract`.
CONTRACT = "1"

#: Ours: by group and name, the place of the object, `module:attribute` in `poorhttp`.
OURS: Mapping[str, Mapping[str, str]] = {
    "targets": {
        "cgi": "plugins.apps.cgi.target:TARGET",
        "dispatch": "plugins.apps.dispatch.target:TARGET",
        "paste": "plugins.paste.target:TARGET",
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
        "asyncio": "plugins.asgi.mode",
    },
    "transports": {"https": "plugins.tls.certificates:Certificates"},
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
        "plugins": "plugins.setup.commands:PLUGINS",
    },
    "options": {
        "autoscaling": "plugins.autoscaling.options:Autoscaling",
        "compression": "plugins.compression.options:Compression",
        "http2": "plugins.http2.options:Http2",
        "tls": "plugins.tls.options:Tls",
        "discovery": "plugins.discovery.options:Discovery",
        "monitor": "plugins.monitor.options:Monitoring",
        "asgi": "plugins.asgi.options:Asgi",
        "log_config": "plugins.log_config.options:LogConfig",
        "cgi": "plugins.apps.cgi.options:CgiPrograms",
        "pages": "plugins.apps.pages.options:TemplatePages",
        "dev": "plugins.dev.options:Development",
        "preload": "plugins.preload.options:Preloading",
    },
    "components": {
        "systemd": "plugins.systemd.component:Systemd",
        "tls": "plugins.tls.component:Renewal",
        "autoscaling": "plugins.autoscaling.component:Autoscaler",
        "monitor": "plugins.monitor.component:Monitor",
        "dev": "plugins.dev.component:DevServer",
        "preload": "plugins.preload.component:Preload",
        "saturation": "plugins.monitor.saturation:Saturation",
    },
    "worker_hooks": {
        "asgi": "plugins.asgi.worker_hooks:HOOKS",
        "discovery": "plugins.discovery.worker_hooks:HOOKS",
        "asgi_mode": "plugins.discovery.asgi_mode:HOOKS",
        "monitor": "plugins.monitor.worker_hooks:HOOKS",
        "traces": "plugins.monitor.otel.worker_hooks:HOOKS",
        "systemd": "plugins.systemd.worker_hooks:HOOKS",
        "dev": "plugins.dev.worker_hooks:HOOKS",
        "preload": "plugins.preload.worker_hooks:HOOKS",
        "autoscaling": "plugins.autoscaling.worker_hooks:HOOKS",
        "compression": "plugins.compression.worker_hooks:HOOKS",
        "http2": "plugins.http2.worker_hooks:HOOKS",
        "websocket": "plugins.websocket.worker_hooks:HOOKS",
        "log_config": "plugins.log_config.worker_hooks:HOOKS",
    },
    "log_sinks": {
        "terminal": "plugins.dev.terminal_sink:SINK",
        "log_config": "plugins.log_config.sink:SINK",
    },
    "metrics": {},
}

#: What a plug-in can add; each is a group of entry points, `poorhttp.targets` and so on.
GROUPS = tuple(OURS)

#: The class of what a plug-in of others adds, by its group; components and transports are classes
#: derived from it, and a target may be a function. Its name, because most of these modules are not
#: imported.
CLASSES = {
    "targets": "targets.target.Target",
    "transports": "net.transport.Transport",
    "commands": "config.command.Command",
    "components": "supervisor.component.Component",
    "worker_hooks": "worker.plugin_hooks.WorkerHooks",
    "log_sinks": "logs.sink.LogSink",
    "metrics": "supervisor.metric.Metric",
}

#: When components and hooks of ours are used, and transports also without an address: with one of
#: these options, or for one of these commands. Those of others are used whenever their plug-in is
#: named.
USED: Mapping[str, Sequence[str]] = {
    "https": (
        *("tls_certificate", "tls_key", "tls_ocsp", "tls_client_ca", "redirect_to_https", "hsts"),
    ),
    "tls": ("tls_certificate",),
    "autoscaling": ("threads=auto", "workers=auto"),
    "compression": ("compress",),
    "http2": ("http2",),
    "asgi": ("mode=asyncio",),
    "discovery": ("django", "debug"),
    "monitor": ("admin", "statsd", "otel", "tracemalloc"),
    "traces": ("otel",),
    "preload": ("preload", "refork_after"),
    "log_config": ("log_config",),
    "dev": ("autoreload", "debug", "live", "profile", "https", "open", "access_log=terminal"),
}

#: Or with one of these variables of the environment.
USED_BY_VARIABLE: Mapping[str, Sequence[str]] = {
    "systemd": ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"),
}

#: Ours that are used in any case, unless they were left out of an installation; and what they
#: import later.
UNASKED: Mapping[str, Sequence[str]] = {"saturation": ("plugins.monitor.unread",), "asgi_mode": ()}

#: The hooks that find a target if none is named.
FINDER = "discovery"

#: The hooks that offer the connection of a request for another protocol to the application. They
#: are loaded when a client sends one.
UPGRADER = "websocket"

ASGI_MODE = "asyncio"  # the mode that serves ASGI applications, too

#: As many links as the kernel follows in one path (path_resolution(7)).
MOST_LINKS = 40

#: A server that root has started uses only named plug-ins, also in workers with fewer rights.
STARTED_BY_ROOT = os.geteuid() == 0


def _start_folders() -> Iterator[str]:
    """Return the path with which the interpreter was started, without the current folder."""
    here = {"", os.environ.get("PWD", "")}
    with suppress(OSError):
        here.add(os.getcwd())
        # The interpreter has made them absolute.
        for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep):
            if not os.path.isabs(folder):
                here.add(os.path.abspath(folder))
    # A folder has several names: links, `..`, and mounts of it at other places.
    same = {_identity(folder) for folder in here if folder}
    for folder in sys.path:
        # A relative folder begins in the current one.
        is_here = not os.path.isabs(folder) or folder in here or _identity(folder) in same
        if not (is_here or _depends_on_process(folder)):
            yield folder


def _identity(folder: str) -> tuple[int, int] | str:
    """Return what all names of a folder have in common; its name if it does not exist."""
    try:
        found = os.stat(folder)
    except OSError:
        return folder
    return found.st_dev, found.st_ino


def _depends_on_process(path: str) -> bool:
    """Tell whether a path leads through a link of proc(5), such as /proc/self/cwd or /dev/fd/3."""
    if os.path.realpath(path) == path:
        return False
    try:
        procfs = os.stat("/proc/self").st_dev
        names, place, links = path.split("/")[::-1], "/", 0
        while names and links <= MOST_LINKS:
            place = os.path.join(place, name) if (name := names.pop()) != ".." else place
            if name == "..":
                place = os.path.dirname(place)
            elif os.path.islink(place):
                if os.lstat(place).st_dev == procfs:
                    return True
                links += 1
                target = os.readlink(place)
                names += target.split("/")[::-1]
                place = "/" if target.startswith("/") else os.path.dirname(place)
    except OSError:
        return False
    return links > MOST_LINKS


#: Where plug-ins of others are looked for.
PATH = tuple(_start_folders())


class LeftOut(ConfigError):
    """A plug-in of ours is not there: somebody has removed its modules."""


class Entry:
    """What a plug-in adds: its group, its name, and how it is loaded.

    Attributes:
        place: of the object, `module:attribute`.
        plugin: name of the distribution that adds it; empty for ours.
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
        return visible(f"plug-in {self.name}{by} (poorhttp.{self.group})")

    def load(self) -> Any:
        """Return the object, which is imported for the first call.

        Raises:
            LeftOut: it is one of ours, and its module is missing.
            ConfigError: it cannot be imported, or is no object of its group.
        """
        if self._object is None:
            module, _, attribute = self.place.partition(":")
            try:
                found = self._import(module, attribute)
            except (KeyboardInterrupt, Stopped):
                raise
            except BaseException as error:
                if isinstance(error, ConfigError) and not self.plugin:
                    # It says itself what is to be done.
                    self.failure = str(error)
                    raise
                self.failure = f"cannot be loaded: {type(error).__name__}: {error}"
                missing = error.name if isinstance(error, ModuleNotFoundError) else None
                if missing and not self.plugin and f"{module}.".startswith(f"{missing}."):
                    self.failure = "is left out of this installation"
                    raise LeftOut(f"{self} {self.failure}") from error
                raise ConfigError(f"{self} {self.failure}") from error
            if self.plugin:
                self._check(found)
            self._object = found
        return self._object

    def named(self, found: object) -> Any:
        """Return an object of the plug-in; if it is of others, its exceptions name the plug-in."""
        return _OfOthers(self, found) if self.plugin else found

    def is_there(self) -> bool:
        """Tell whether a plug-in of ours was not left out of this installation."""
        try:
            self.load()
        except LeftOut:
            return False
        except ConfigError:
            pass
        return True

    def _import(self, module: str, attribute: str) -> Any:
        calling = registry.calling(f"{self}: import") if self.plugin else nullcontext()
        with calling, _start_path() if self.plugin else nullcontext():
            found: Any = import_module(module)
            for part in attribute.split(".") if attribute else ():
                found = getattr(found, part)
        return found

    def _check(self, found: Any) -> None:
        """Raise a ConfigError if the object is not what its group has."""
        try:
            self.failure = self._fault(found)
        except Exception as error:
            # Attributes of an object of others may raise anything.
            self.failure = f"cannot be used: {type(error).__name__}: {error}"
        if self.failure:
            raise ConfigError(f"{self} {self.failure}")

    def _fault(self, found: Any) -> str:
        """Return why the object is not what its group has; mostly empty."""
        wanted = f"poorhttp.{CLASSES[self.group]}" if self.group in CLASSES else ""
        derived = self.group in ("components", "transports")
        kind = found if derived else type(found)
        bases = [f"{each.__module__}.{each.__qualname__}" for each in getattr(kind, "__mro__", ())]
        if self.group == "options" and not isinstance(found, type):
            return f"is no class with options, but {found!r}"
        if self.group == "modes" and not callable(getattr(found, "run", None)):
            return f"is no mode, which has a function run: {found!r}"
        if not wanted or wanted in bases:
            return ""
        if self.group == "targets":
            return "" if callable(found) else f"is not a function: {found!r}"
        return f"is no {'class derived from' if derived else 'object of'} {wanted}, but {found!r}"


@contextmanager
def _start_path() -> Iterator[None]:
    """Import from the path of the start: in a worker, that of the application stands before it."""
    path = sys.path
    sys.path = list(PATH)
    try:
        yield
    finally:
        sys.path = path


class Plugin:
    """A plug-in of others that is installed.

    Attributes:
        name: of the distribution.
        version: of the distribution.
        folder: where it is installed.
        entries: what it adds.
        contracts: the versions of the contract that it is for; empty if it names none.
        failure: why its entry points cannot be read; mostly empty.
        used: its entries are in the registry.
    """

    def __init__(self, distribution: Distribution) -> None:
        self.name: str = distribution.name
        self.version: str = distribution.version
        self.folder = str(distribution.locate_file(""))
        self.failure = ""
        try:
            points = list(distribution.entry_points)
        except Exception as error:
            points = []
            self.failure = f"{type(error).__name__}: {error}"
        # Extras, which only installers need, are no part of the place.
        self.entries = [
            Entry(group, point.name, "".join(point.value.partition("[")[0].split()), self.name)
            for group in GROUPS
            for point in points
            if point.group == f"poorhttp.{group}"
        ]
        self.contracts = [point.name for point in points if point.group == "poorhttp.contract"]
        self.used = False

    def has(self, group: str, name: str) -> bool:
        """Tell whether it adds something of this name."""
        return any(entry.group == group and entry.name == name for entry in self.entries)

    def declares(self, option: str) -> bool:
        """Tell whether it adds an option."""
        for entry in self.entries:
            # For one that cannot be loaded, which `poorhttp plugins` shows, the word is unknown.
            with suppress(ConfigError):
                if entry.group == "options" and hasattr(entry.load(), option):
                    return True
        return False


class Registry:
    """All plug-ins that this process knows.

    Attributes:
        entries: of each group, what is known by its name: ours, and what plug-ins of others add
            that are used.
        on_options: called with each class of options that a plug-in of others adds, and what
            names it in messages.
        calling: surrounds each call of code of others that is no method of a component; the main
            process notices there what does not return.
    """

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Entry]] = {
            group: {name: Entry(group, name, f"poorhttp.{place}") for name, place in ours.items()}
            for group, ours in OURS.items()
        }
        self.on_options: Callable[[type, str], object] = lambda options, plugin: None
        self.calling: Callable[[str], AbstractContextManager[object]] = nullcontext
        self._others: list[Plugin] | None = None

    def names(self, group: str) -> list[str]:
        """Return the names of a group that are known without a search."""
        return list(self.entries[group])

    def known(self, group: str, name: str) -> Entry | None:
        """Return an entry without a search."""
        return self.entries[group].get(name)

    def find(self, group: str, name: str) -> Entry | None:
        """Return an entry; looks for plug-ins of others that nobody has named, but not for root.

        Raises:
            ConfigError: the plug-in that has it cannot be used.
        """
        if name not in self.entries[group]:
            self._add_one(lambda plugin: plugin.has(group, name), name)
        return self.known(group, name)

    def _add_one(self, is_wanted: Callable[[Plugin], bool], name: str) -> bool:
        """Add the plug-in of others with a name, but not for root, if only one has it."""
        having = [] if STARTED_BY_ROOT else [*filter(is_wanted, self.installed())]
        if len(having) > 1:
            raise ConfigError(
                f"{' and '.join(plugin.name for plugin in having)} are plug-ins that add "
                f"{name}: name the one to use, as in --plugins {having[0].name}"
            )
        for plugin in having:
            self.add(plugin)
        return bool(having)

    def unnamed(self, group: str, name: str) -> str:
        """Return what root has to write to use this entry of an installed plug-in; mostly empty."""
        for plugin in self.installed():
            if plugin.has(group, name) and not plugin.used:
                return (
                    f"the plug-in {plugin.name} adds it, which root has to name: "
                    f"--plugins {plugin.name}, or POORHTTP_PLUGINS={plugin.name}"
                )
        return ""

    def unnamed_options(self) -> str:
        """Return which plug-ins may declare an unknown option, but are not used; mostly empty."""
        names = [
            plugin.name
            for plugin in self.installed()
            if not plugin.used and any(entry.group == "options" for entry in plugin.entries)
        ]
        if not names:
            return ""
        return f"root has to name plug-ins whose options are used: --plugins {' '.join(names)}"

    def used(self, group: str, is_set: Callable[[str], bool]) -> list[Entry]:
        """Return the components or hooks to use: ours by their options, those of named plug-ins.

        `is_set` tells whether an option is set to something else than off.
        """
        return [
            entry
            for name, entry in self.entries[group].items()
            if entry.plugin or self.uses(name, is_set) or (name in UNASKED and entry.is_there())
        ]

    def uses(self, name: str, is_set: Callable[[str], bool]) -> bool:
        """Tell whether components and hooks of ours with this name are used."""
        variables = USED_BY_VARIABLE.get(name, ())
        return any(map(is_set, USED.get(name, ()))) or any(each in os.environ for each in variables)

    def installed(self, *, again: bool = False) -> list[Plugin]:
        """Return the plug-ins of others that are installed; `again`: also since the last time."""
        if self._others is None or again:
            from importlib.metadata import distributions  # slow and large

            # Those that are known stay as they are: some are used.
            found = {_plain(plugin.name): plugin for plugin in self._others or ()}
            for distribution in distributions(path=list(PATH)):
                # What other distributions have in their metadata is not our concern.
                with suppress(Exception):
                    if not _may_be_plugin(distribution):
                        continue
                    plugin = Plugin(distribution)
                    if (plugin.entries or plugin.failure) and plugin.name != "poorhttpd":
                        found.setdefault(_plain(plugin.name), plugin)
            self._others = list(found.values())
        return self._others

    def use(self, texts: Sequence[tuple[str, str]], error: type[Failure] = ConfigError) -> None:
        """Add the plug-ins that the option `plugins` names, by pairs of place and text.

        Raises `error` if one is not installed, or cannot be used.
        """
        for where, text in texts:
            for name in text.replace(",", " ").split():
                if name != "off":
                    self._use(where, name, error)

    def _use(self, where: str, name: str, error: type[Failure]) -> None:
        wanted = _plain(name)
        for again in (False, True):  # it may be newer than the server that is reloaded
            found = [each for each in self.installed(again=again) if _plain(each.name) == wanted]
            if found:
                break
        else:
            there = ", ".join(sorted(plugin.name for plugin in self.installed())) or "none"
            raise error(
                f'{where}: no plug-in "{name}" is installed; a plug-in has the name of its '
                f"distribution, and these are installed: {there}"
            )
        try:
            self.add(found[0])
        except ConfigError as why:
            raise error(f"{where}: {why}") from why

    def add(self, plugin: Plugin) -> None:
        """Add all that a plug-in of others adds.

        Raises:
            ConfigError: it is for another version of the contract, has names that are taken, or its
                options cannot be loaded.
        """
        if plugin.used:
            return
        if plugin.failure:
            raise ConfigError(
                f"plug-in {plugin.name} {plugin.version}: its entry points cannot be read: "
                f"{plugin.failure}"
            )
        if plugin.contracts and CONTRACT not in plugin.contracts:
            raise ConfigError(
                f"plug-in {plugin.name} {plugin.version} is for version "
                f"{' and '.join(plugin.contracts)} of the contract of plug-ins, and this server "
                f"has version {CONTRACT}: install a version of one that fits the other"
            )
        first: dict[tuple[str, str], Entry] = {}
        for entry in plugin.entries:
            taken = self.known(entry.group, entry.name)
            same = first.setdefault((entry.group, entry.name), entry)
            if same.place != entry.place:
                raise ConfigError(
                    f"plug-in {plugin.name} adds {entry.name} (poorhttp.{entry.group}) twice: "
                    f"{same.place} and {entry.place}"
                )
            if taken is not None:
                raise ConfigError(
                    f"plug-in {plugin.name} adds {entry.name} (poorhttp.{entry.group}), which "
                    f"{taken.plugin or 'the server'} has already"
                )
        for entry in plugin.entries:
            if entry.group == "options":
                self.on_options(entry.load(), str(entry))
        for entry in plugin.entries:
            self.entries[entry.group][entry.name] = entry
        plugin.used = True

    def add_installed(self) -> None:
        """Add all plug-ins of others that can be used, to show what they add; but not for root."""
        for plugin in self.installed() if not STARTED_BY_ROOT else ():
            # `poorhttp plugins` shows why.
            with suppress(ConfigError):
                self.add(plugin)

    def add_for_option(self, name: str) -> bool:
        """Add the plug-in of others that declares an option, if one does; errors as of `find`."""
        return self._add_one(lambda plugin: not plugin.used and plugin.declares(name), name)


def _may_be_plugin(distribution: Distribution) -> bool:
    """Tell whether entry points may be ours; there may be thousands of distributions."""
    try:
        return "poorhttp." in (distribution.read_text("entry_points.txt") or "")
    except UnicodeDecodeError:
        return True


@contextmanager
def calling_plugin(
    what: str,
    failure: type[Failure],
    place: str = "",
    *,
    expected: type[Exception] = Failure,
    is_watched: bool = True,
) -> Iterator[None]:
    """Surround a call of a plug-in's code, which may raise anything, and of others may not return.

    Exceptions become a `failure` that names `what` was called, with `place` before that; but not
    a Failure, nor those that are `expected`. Not `is_watched`: the plug-in is ours.
    """
    try:
        with registry.calling(what) if is_watched else nullcontext():
            yield
    except (Failure, Stopped, expected):
        raise
    except BaseException as error:
        # Also `SystemExit`, and what interrupts a method that does not return. Before there is a
        # main process, the user may have pressed Ctrl-C.
        if isinstance(error, KeyboardInterrupt) and registry.calling is nullcontext:
            raise
        where = f"{place}: " if place else ""
        raise failure(f"{where}{what}: {type(error).__name__}: {error}") from error


class _OfOthers:
    """An object of a plug-in of others: an exception of a method names the plug-in."""

    def __init__(self, entry: Entry, of_others: object) -> None:
        self._entry = entry
        self._object = of_others

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._object, name)
        if not callable(found):
            return found

        def call(*arguments: object) -> object:
            with calling_plugin(f"{self._entry}: {name}", ApplicationError):
                return found(*arguments)

        return call


def _plain(name: str) -> str:
    """Return the name of a distribution as all its spellings are the same (PEP 503)."""
    import re  # takes memory

    return re.sub(r"[-_.]+", "-", name).lower()


registry = Registry()

#: What stood in `poorhttp.api`, and other programs import from there.
MOVED = {
    "serve_paste": Entry("commands", "serve_paste", "poorhttp.plugins.paste.runner:serve_paste")
}
