"""All settings of a server: the options that are declared in `poorhttp.config.options`.

The command line, the ini file, the environment, the types that mypy sees, `--help` and the
reference page are made from the class `Settings`. A default is written as a person would write it,
and goes through the same parser.

`python -m poorhttp.config.help` prints the reference page, docs/options.md.
"""

from __future__ import annotations

import os

from poorhttp.config import address
from poorhttp.config.options.content import CgiPrograms, Mounts, StaticFiles, TemplatePages
from poorhttp.config.options.development import Development
from poorhttp.config.options.limits import SizeLimits, TimeLimits
from poorhttp.config.options.logs import Logs
from poorhttp.config.options.option import Option
from poorhttp.config.options.proxies import Proxies, Responses
from poorhttp.config.options.server import Application, Listening, Processes, Workers
from poorhttp.config.suggestions import option_suggestion
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Settings(
    Application,
    Listening,
    Workers,
    Processes,
    TimeLimits,
    SizeLimits,
    Proxies,
    Logs,
    Responses,
    Mounts,
    StaticFiles,
    CgiPrograms,
    TemplatePages,
    Development,
):
    """The settings of one server: an attribute for each option.

    Built by `poorhttp.config.loader.load` from the command line, the environment and a file, or
    directly by a program: `Settings(bind="127.0.0.1:8080", threads=4, max_body="16M")`. Values may
    be written as text, as everywhere else, or be numbers, paths and addresses; a repeatable option
    takes one or a list of them.

    Attributes:
        service: its name, if there are several; otherwise empty.
        hosts: what is different for some hosts, whole settings by the name: in lower case, without
            a port, `*.example.org` for all below that.

    Raises:
        ConfigError: an argument is not an option, or its value is wrong.
    """

    service = ""

    def __init__(self, **overrides: object) -> None:
        self.hosts: dict[str, Settings] = {}
        self._given: dict[str, Sequence[tuple[str, str]]] = {}
        for name, value in overrides.items():
            option = OPTIONS.get(name)
            if option is None:
                meant = option_suggestion(name, {name: name for name in OPTIONS})
                raise ConfigError(f'unknown setting "{name}"{meant}')
            values: Sequence[object] = [value]
            if option.repeatable and isinstance(value, (list, tuple)):
                values = value
            try:
                self.set(option, [(name, _text(name, item)) for item in values])
            except ValueError as error:
                raise ConfigError(str(error)) from None

    def set(self, option: Option[Any], texts: Sequence[tuple[str, str]]) -> None:
        """Give `option` the value of what was written; raises as `Option.read` does."""
        self.__dict__[option.name] = option.read(texts)
        self._given[option.name] = texts

    def copy_option(self, name: str, other: Settings) -> None:
        """Have the value of an option that `other` has, be it the default."""
        self.__dict__.pop(name, None)
        self._given.pop(name, None)
        if other.is_set(name):
            self.set(OPTIONS[name], other._given[name])

    def origin(self, name: str, number: int = 0) -> str:
        """Return where the option was set, as `poorhttp.ini:3: threads` or `--threads`.

        Of a repeatable option, where its value with this number was.
        """
        texts = self._given.get(name, ())
        return texts[number][0] if number < len(texts) else name

    def written(self, name: str) -> list[str]:
        """Return what was written for the option, or nothing if nobody set it."""
        return [text for _, text in self._given.get(name, ())]

    def is_set(self, name: str) -> bool:
        """Tell whether anybody set the option, be it to its default."""
        return name in self._given

    def changed(self) -> list[str]:
        """Return the names of the options that do not have their default value."""
        return [name for name, option in OPTIONS.items() if getattr(self, name) != option.default]

    def is_enabled(self, name: str) -> bool:
        """Tell whether an option that can be off is not."""
        return getattr(self, name) not in (None, False, 0, "off")

    @property
    def serves(self) -> bool:
        """Whether they name anything to serve."""
        return bool(self.target or self.mount or self.static or self.hosts)

    @property
    def worker_count(self) -> int:
        """Number of worker processes, with 0 replaced by what it stands for in this mode."""
        if self.workers:
            return self.workers
        return max(2, len(os.sched_getaffinity(0))) if self.mode == "forking" else 1


#: Every option by its name, in the order of their declaration.
OPTIONS: dict[str, Option[Any]] = {
    name: option
    for declared in Settings.__bases__
    for name, option in vars(declared).items()
    if isinstance(option, Option)
}


def _text(name: str, value: object) -> str:
    """Return the written form of a value that a program gave."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (str, int, float, address.Address)):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise ValueError(f"{name}: {value!r} is not a text, a number, a path or an address")
