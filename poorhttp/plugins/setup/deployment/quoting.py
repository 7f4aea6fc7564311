"""Quotes values in the grammar of each file that `init` writes; refuses what no quoting allows.

Names of folders and modules come from whoever has made the project, and the files are read by
programs of root: a value must not become a line, a directive or a command of its own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from poorhttp.errors import ConfigError, visible
from poorhttp.plugins.setup.deployment.arguments import PATTERNS
from poorhttp.plugins.setup.deployment.plan import Plan, server_command

#: Addresses that configurations of web servers and units name as they are.
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+(\.[0-9]+){0,3}")

#: Characters that `systemd` reads in different ways in different settings.
AMBIGUOUS = "\"'\\"

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(plan: Plan, kinds: Sequence[str]) -> None:
    """Check all that goes into the files of these kinds, and into poorhttp.ini.

    Raises:
        ConfigError: a value cannot be written, or means something else where it would stand.
    """
    for what, value in _values(plan):
        if not value.isprintable():
            raise ConfigError(
                f"{what} is {visible(value)}: a line end, another control character, or what is "
                "no UTF-8 goes into no file; rename it"
            )
    for name in plan.environment:
        if not VARIABLE.fullmatch(name):
            raise ConfigError(f'the environment variable "{name}" has no name that can be written')
    if plan.socket and not re.fullmatch(PATTERNS["bind"][0], plan.bind):
        raise ConfigError(
            f'bind: "{plan.bind}" cannot be written into the other files; choose a path of '
            "letters, digits and . _ - /"
        )
    if not HOST.fullmatch(plan.host):
        raise ConfigError(f'bind: "{plan.host}" is no host that the other files can name')
    if "systemd" in kinds:
        words = (("the folder", plan.folder), ("the path of the server", server_command()[0]))
        for what, path in words:
            if path != path.strip() or set(path) & set(AMBIGUOUS):
                raise ConfigError(
                    f"{what} is {path}: a unit of systemd cannot hold quotes, backslashes, or a "
                    "space at its end everywhere; rename it"
                )


def _values(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield everything that is written, with what it is."""
    yield "the folder", plan.folder
    yield "the name", plan.name
    yield "the address", plan.bind
    for name, values in plan.served.items():
        for value in values:
            yield name, value
    for name, value in plan.environment.items():
        yield "an environment variable", name
        yield f"the environment variable {name}", value
    for word in server_command():
        yield "the path of the server", word


def of_systemd(word: str, *, expands: bool = False) -> str:
    """Return a word as a setting of systemd reads it (systemd.syntax(7), systemd.service(5)).

    Args:
        word: without `AMBIGUOUS` characters if the setting is one that retains escapes.
        expands: variables are replaced in it: the arguments of a command, but not its path.
    """
    word = word.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
    if expands:
        word = word.replace("$", "$$")
    return f'"{word}"' if set(word) & set(" '\";") else word


def of_containerfile(value: str) -> str:
    """Return the value of an ENV instruction."""
    if shlex.quote(value) == value:
        return value
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


def of_shell(words: Sequence[str]) -> str:
    """Return words of a command of a shell."""
    return " ".join(map(shlex.quote, words))
