"""What completion and man pages list for each command: its own words, or options common to all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from poorhttp.config.command_line import (
    FILE_FLAGS,
    HELP_ALL_FLAG,
    HELP_FLAGS,
    VERSION_FLAGS,
    known_commands,
)
from poorhttp.config.options.option import Option
from poorhttp.config.registry import registry
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import ConfigError, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Command, Words

# What a word can be completed with, if its values are not known one by one.
NOTHING, FILE, FOLDER, TARGET = "nothing", "file", "folder", "target"

#: What the values of these placeholders are.
PLACES = {"FILE": FILE, "FOLDER": FOLDER}

#: What the argument of a command is, by its placeholder.
ARGUMENTS = {**PLACES, "TARGET": TARGET, "": NOTHING}

#: Schemes of targets that name a folder, `SCHEME:FOLDER`.
FOLDER_SCHEMES = ("cgi", "dispatch", "pages", "static")


class Switch:
    """An option of a command.

    Attributes:
        names: `--like-this`, and others that mean the same.
        summary: what it does: one sentence, without markup.
        metavar: placeholder of its value; empty if it takes none.
        choices: the values that it takes; empty if there are too many.
        optional: whether the value may be missing; if not, it stands behind `=`.
        repeatable: whether it may be given several times.
        off: `--no-like-this`, which is the value `off`; may be empty.
        aliases: names of other servers for it, which are not offered.
    """

    def __init__(
        self,
        names: Sequence[str],
        summary: str,
        metavar: str = "",
        *,
        choices: Sequence[str] = (),
        optional: bool = False,
        repeatable: bool = False,
        off: str = "",
        aliases: Sequence[str] = (),
    ) -> None:
        self.names = list(map(visible, names))
        self.summary = plain(summary)
        self.metavar = visible(metavar)
        self.choices = list(map(visible, choices))
        self.optional = optional
        self.repeatable = repeatable
        self.off = off
        self.aliases = list(map(visible, aliases))

    @property
    def place(self) -> str:
        """`FILE` or `FOLDER` if its value is one, else `NOTHING`."""
        return PLACES.get(self.metavar, NOTHING)


class Word:
    """A command, or a subcommand of one.

    Attributes:
        name: of the command.
        summary: what it does: one sentence, without markup.
        switches: its options.
        argument: what its argument can be completed with: `TARGET`, `FILE`, `FOLDER` or `NOTHING`.
        choices: the values that its argument takes; empty if there are too many.
        words: its subcommands.
    """

    def __init__(
        self,
        name: str,
        summary: str,
        switches: Sequence[Switch] = (),
        *,
        argument: str = NOTHING,
        choices: Sequence[str] = (),
        words: Sequence[Word] = (),
    ) -> None:
        self.name = visible(name)
        self.summary = plain(summary)
        self.switches = list(switches)
        self.argument = argument
        self.choices = list(map(visible, choices))
        self.words = list(words)


def plain(text: str) -> str:
    """Return a text of a declaration without its markup, and without control characters."""
    return visible(text.replace("`", ""))


def commands() -> list[Word]:
    """Return all commands, in the order of the help."""
    registry.add_installed()
    switches = [*_general(), *map(_switch, _flagged())]
    return [
        _own_words(name, command)
        if command.own_words
        else Word(name, command.summary, switches, argument=TARGET)
        for name, command in known_commands().items()
    ]


def _own_words(name: str, command: Command) -> Word:
    """Return a command that parses its own words, as it describes them."""
    entry = registry.known("commands", name)
    try:
        return _described_words(name, command, command.words() if command.words is not None else {})
    except Exception as error:
        if entry is None or not entry.plugin:
            raise
        raise ConfigError(f"{entry}: words: {type(error).__name__}: {error}") from error


def _described_words(name: str, command: Command, words: Words) -> Word:
    return Word(
        name,
        command.summary,
        [_described(*option) for option in words.get("options", ())],
        argument=ARGUMENTS[words.get("argument", "")],
        choices=words.get("choices", ()),
        words=[
            Word(subcommand, summary, choices=choices)
            for subcommand, (summary, choices) in words.get("subcommands", {}).items()
        ],
    )


def _described(text: str, summary: str) -> Switch:
    """Return an option that is written as in a help: `-o, --output FILE`."""
    *before, last = text.split(", ")
    name, _, metavar = last.partition(" ")
    return Switch([*before, name], summary, metavar)


def _general() -> list[Switch]:
    return [
        Switch(FILE_FLAGS, "Read an ini file.", "FILE"),
        Switch(HELP_FLAGS, "Show the most important options."),
        Switch([HELP_ALL_FLAG], "Show all options."),
        Switch(VERSION_FLAGS, "Show the version."),
    ]


def _flagged() -> Iterator[Option[object]]:
    return (option for option in OPTIONS.values() if option.flag)


def _switch(option: Option[object]) -> Switch:
    parse = getattr(option, "item", option.parse)
    return Switch(
        [*([f"-{option.short}"] if option.short else []), option.flag],
        option.summary,
        option.metavar,
        choices=option.words or getattr(parse, "choices", ()),
        optional=bool(option.words),
        repeatable=option.repeatable,
        off=f"--no-{option.flag[2:]}" if option.words else "",
        aliases=[f"--{name}" for name in (*option.aliases, *option.fixed)],
    )


def alike(commands: Sequence[Word]) -> list[list[Word]]:
    """Return the commands in groups, each of those that have the same options."""
    groups: dict[tuple[int, ...], list[Word]] = {}
    for command in commands:
        groups.setdefault(tuple(map(id, command.switches)), []).append(command)
    return list(groups.values())
