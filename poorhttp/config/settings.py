"""The class `Settings`: the value of each option, of the server and of its plug-ins.

The command line, the ini file, the environment, the types that mypy checks, `--help` and the
page docs/reference/options.md are derived from `OPTIONS`. A default is a text that the parser
reads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from poorhttp.config import address, resources
from poorhttp.config.options.content import Mounts, RequestBodies, StaticFiles
from poorhttp.config.options.hooks import IN_OWN_PROCESS, Hooks
from poorhttp.config.options.limits import SizeLimits, TimeLimits
from poorhttp.config.options.logs import Logs
from poorhttp.config.options.option import Option
from poorhttp.config.options.proxies import Proxies, Responses
from poorhttp.config.options.server import Application, Listening, Processes, Workers
from poorhttp.config.registry import LeftOut, calling_plugin, registry
from poorhttp.config.suggestions import nearest, plain
from poorhttp.errors import ConfigError, Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

#: Variable by which platforms, such as Heroku, name the port to listen on.
PLATFORM_PORT = "PORT"


class Settings(
    Application,
    Listening,
    Workers,
    Processes,
    Hooks,
    TimeLimits,
    SizeLimits,
    Proxies,
    Logs,
    Responses,
    Mounts,
    RequestBodies,
    StaticFiles,
):
    """The settings of one server: an attribute for each option of the server itself.

    Those of a plug-in are attributes of what `of` returns.

    Created by `poorhttp.config.loader.load` from the command line, the environment and a file, or
    by a program: `Settings(bind="127.0.0.1:8080", threads=4, max_body="16M")`. Values may be
    texts, numbers, paths and addresses; a repeatable option takes one or a list of them.

    Attributes:
        service: name of the service, if there are several; otherwise empty.
        hosts: complete settings of virtual hosts, by their names: in lower case, without a port,
            `*.example.org` for subdomains.
        variable_files: files with variables of the environment: a part of the configuration.

    Raises:
        ConfigError: an argument is not an option, or its value is wrong.
    """

    service = ""
    variable_files: Sequence[str] = ()

    def __init__(self, **overrides: object) -> None:
        self.hosts: dict[str, Settings] = {}
        self._given: dict[str, Sequence[tuple[str, str]]] = {}
        # Counted once, because a quota may change while the server runs.
        self._usable_cpus: int | None = None
        # First `plugins`: others may be options of these.
        for name in sorted(overrides, key=lambda name: name != "plugins"):
            value = overrides[name]
            if not is_option(name):
                raise ConfigError(f'unknown setting "{name}"{option_suggestion(name)}')
            values: Sequence[object] = [value]
            if OPTIONS[name].repeatable and isinstance(value, (list, tuple)):
                values = value
            self.set(name, [(name, _text(name, item)) for item in values])

    def of(self, options: type[T]) -> T:
        """Return the values of a plug-in's options, typed by the class that declares them."""
        values = object.__new__(options)
        # The same dictionary: also what is set later.
        values.__dict__ = self.__dict__
        return values

    def value(self, name: str) -> Any:
        """Return the value of an option by its name; `None` if its plug-in is missing."""
        option = OPTIONS.get(name)
        return self.__dict__.get(name, option.default if option is not None else None)

    def set(
        self, name: str, texts: Sequence[tuple[str, str]], error: type[Failure] = ConfigError
    ) -> None:
        """Set an option from pairs of place and text, as of `Option.read`; else raise `error`."""
        option = OPTIONS[name]
        try:
            if option.plugin:
                place = texts[0][0] if texts else name
                what = f"{option.plugin}: option {name}"
                with calling_plugin(what, ConfigError, place, expected=ValueError):
                    self.__dict__[name] = option.read(texts)
            else:
                self.__dict__[name] = option.read(texts)
        except ValueError as wrong:
            raise error(str(wrong)) from None
        self._given[name] = texts
        if name == "plugins":
            registry.use(texts, error)

    def copy_option(self, name: str, other: Settings) -> None:
        """Copy an option from `other`, or its default if it is not set there."""
        self.__dict__.pop(name, None)
        self._given.pop(name, None)
        if other.is_set(name):
            self.set(name, other._given[name])

    def listen_nowhere(self) -> None:
        """Have no address at all, also where there are inherited sockets."""
        self.__dict__["bind"] = self._given["bind"] = ()

    def origin(self, name: str, number: int = 0) -> str:
        """Return where the option was set, such as `poorhttp.ini:3: threads` or `--threads`.

        `number` is the index of a value of a repeatable option.
        """
        texts = self._given.get(name, ())
        return texts[number][0] if number < len(texts) else name

    def written(self, name: str) -> list[str]:
        """Return the texts of the option; empty if it is not set."""
        return [text for _, text in self._given.get(name, ())]

    def is_set(self, name: str) -> bool:
        """Tell whether the option was set, even if to its default."""
        return name in self._given

    def changed(self) -> list[str]:
        """Return the names of the options that do not have their default value."""
        return [name for name, option in OPTIONS.items() if self.value(name) != option.default]

    def is_enabled(self, name: str) -> bool:
        """Tell whether an option has another value than off, 0 or none.

        Or whether it has one value: `access_log=terminal`.
        """
        name, equals, value = name.partition("=")
        if equals:
            return str(self.value(name)) == value
        return self.value(name) not in (None, False, 0, "off", "", ())

    @property
    def serves(self) -> bool:
        """Whether an option names content to serve."""
        return bool(self.target or self.mount or self.static or self.hosts)

    @property
    def has_hooks(self) -> bool:
        """Whether a hook is set that runs in the process of the hooks."""
        return any(getattr(self, name) for name in IN_OWN_PROCESS)

    @property
    def worker_count(self) -> int:
        """Number of worker processes; `workers` 0 is replaced by the number for the mode."""
        if self.workers:
            return int(self.workers)
        if self.mode != "forking":
            return 1
        if self._usable_cpus is None:
            self._usable_cpus = resources.usable_cpus()
        return max(2, self._usable_cpus)


#: Every option by its name, in the order of their declaration.
OPTIONS: dict[str, Option[object]] = {}


def is_option(name: str) -> bool:
    """Tell whether an option has this name; looks for plug-ins of others, but not for root.

    Raises:
        ConfigError: the plug-in that has it cannot be used.
    """
    return name in OPTIONS or registry.add_for_option(name)


def in_file() -> dict[str, Option[object]]:
    """Return all options by their names in an ini file, of which some have two."""
    return {each.ini_name or each.name: each for each in OPTIONS.values()} | OPTIONS


def option_suggestion(word: str, spellings: Mapping[str, str] | None = None) -> str:
    """Return `; did you mean "X"?` for an unknown option, or an empty text.

    For a name of another server, what to write or to do instead.

    Args:
        word: the unknown name, without a prefix.
        spellings: the name of each option in the same source, by its name in `OPTIONS`; by
            default the same.
    """
    from poorhttp.config.other_servers.advice import advice  # needed only after an error

    spellings = spellings or {name: name for name in OPTIONS}
    for name, option in OPTIONS.items():
        if any(plain(other) == plain(word) for other in (*option.aliases, *option.fixed)):
            return f'; here it is "{spellings.get(name, name)}"'
    if instead := advice(word):
        return f"; {instead}"
    near = nearest(word, spellings)
    meant = f'; did you mean "{spellings[near]}"?' if near else ""
    left_out = [name for name, entry in registry.entries["options"].items() if entry.failure]
    if left_out:
        meant += f"; this installation has no plug-in {', '.join(left_out)}"
    unnamed = registry.unnamed_options()
    return f"{meant}; {unnamed}" if unnamed else meant


def add_options(declared: type, plugin: str = "") -> None:
    """Add the options of a class, of a `plugin` of others by its name in messages.

    A ConfigError: one has the name of another one.
    """
    added = {name: each for name, each in vars(declared).items() if isinstance(each, Option)}
    for name, option in added.items():
        if name in OPTIONS:
            raise ConfigError(f"{declared.__module__} declares {name}, which is an option already")
        option.plugin = plugin
    OPTIONS.update(added)


for each in Settings.__bases__:
    add_options(each)
for entry in registry.entries["options"].values():
    # A plug-in may have been left out of an installation; any other error is a fault of ours.
    with suppress(LeftOut):
        add_options(entry.load())
registry.on_options = add_options


def _text(name: str, value: object) -> str:
    """Return the text of a value that a program has set."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (str, int, float, address.Address)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise ConfigError(f"{name}: {value!r} is not a text, a number, a path or an address")
