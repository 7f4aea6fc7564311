"""Parses options, which are the same for `serve`, `check` and `dev`; prints `--help` of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from poorhttp.config.options.option import Option
from poorhttp.config.registry import LeftOut, registry
from poorhttp.config.settings import OPTIONS, option_suggestion
from poorhttp.config.suggestions import suggestion
from poorhttp.config.version import VERSION
from poorhttp.errors import ConfigError, UsageError, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Command

SEE_HELP = "see poorhttp --help"
HELP_FLAGS = ("-h", "--help")
#: Shows all options; the above show the most important ones.
HELP_ALL_FLAG = "--help-all"
VERSION_FLAGS = ("-v", "--version")
FILE_FLAGS = ("-c", "--config")
PLUGINS_FLAG = "--plugins"
#: Files of other servers that `-c` names there.
FOREIGN_FILES = (".py", ".toml", ".yaml", ".yml", ".xml")


class Arguments:
    """The parsed command line; after an error, the part before it.

    Not argparse: that module, its `re` and `gettext` would cost 0.8 MiB in every worker, the option
    table already has the same information, and an error can suggest the right option.

    Attributes:
        command: name of the subcommand.
        file: argument of `-c`.
        values: the texts of each option that was given, by its name.
        flags: what was written for each of these texts, such as `-w`, for messages.
        notes: what was left out and why, to be printed before the command is run.
        words: the words behind a command that parses its own.
        information: output of `--help` or `--version`; then no command is run.
    """

    def __init__(self) -> None:
        self.command = ""
        self.file: str | None = None
        self.values: dict[str, list[str]] = {}
        self.flags: dict[str, list[str]] = {}
        self.notes: list[str] = []
        self.words: list[str] = []
        self.information = ""
        #: The last value of each alias and short form, as it was written.
        self._given: dict[str, str] = {}

    def read(self, words: Sequence[str]) -> None:
        """Parse the arguments of the command.

        Raises:
            UsageError: with a suggestion if a name is misspelt.
        """
        if not words:
            raise UsageError(f"no command; write poorhttp serve TARGET, or {SEE_HELP}")
        rest = list(words)
        # First: the command and other options may be theirs.
        registry.use([("POORHTTP_PLUGINS", os.environ.get("POORHTTP_PLUGINS", ""))])
        for word, following in zip(rest, [*rest[1:], ""], strict=True):
            if word == "--":
                break
            flag, equals, value = word.partition("=")
            if flag == PLUGINS_FLAG:
                registry.use([(flag, value if equals else following)], UsageError)
        is_named = self._read_command(rest)
        if self.command and command(self.command).own_words:
            self.words = rest
            return
        while rest and not self.information:
            word = rest.pop(0)
            if word == "--":
                for each in rest:
                    self._read_target(each)
                break
            if word in (*HELP_FLAGS, HELP_ALL_FLAG):
                everything = word == HELP_ALL_FLAG or rest[:1] == ["all"]
                self.information = usage(self.command, everything=everything)
            elif word in VERSION_FLAGS:
                self.information = f"poorhttp {VERSION}\n"
            elif word.startswith("-"):
                self._read_option(word, rest)
            elif registry.known("commands", word) and not is_named and "target" not in self.values:
                raise UsageError(f"the command stands before its options: poorhttp {word} ...")
            else:
                self._read_target(word)
        if self._given and not self.information:
            from poorhttp.config.other_servers import translations  # takes memory

            try:
                self.notes = translations.settle(self.values, self.flags, self._given)
            except ValueError as error:
                raise UsageError(str(error)) from None

    def _read_command(self, rest: list[str]) -> bool:
        """Read the command, and tell whether it was named; without a name it is `serve`."""
        word = rest[0]
        if word in (*HELP_FLAGS, HELP_ALL_FLAG, *VERSION_FLAGS):
            return False
        is_target = word.startswith("-") or _is_target(word)
        if registry.known("commands", word) or (not is_target and registry.find("commands", word)):
            self.command = rest.pop(0)
            return True
        if is_target:
            self.command = "serve"
            return False
        unnamed = registry.unnamed("commands", word)
        meant = f"; {unnamed}" if unnamed else suggestion(word, registry.names("commands"))
        serves = f"; {SEE_HELP}; to serve a module of this name: poorhttp serve {word}"
        raise UsageError(f'unknown command "{word}"{meant or serves}')

    def _read_target(self, word: str) -> None:
        if "target" in self.values:
            raise UsageError(
                f"{self.command} takes one target, but there are "
                f'"{self.values["target"][0]}" and "{word}"'
            )
        self.values["target"] = [word]

    def _read_option(self, word: str, rest: list[str]) -> None:
        flag, equals, value = word.partition("=")
        if len(word) > 2 and word[1] != "-":
            # `-w4`, as getopt(3) reads it.
            flag, equals, value = word[:2], "=", word[2:].removeprefix("=")
        if flag in FILE_FLAGS:
            self.file = value if equals else _value(flag, "FILE", rest)
            if self.file.endswith(FOREIGN_FILES) or self.file.startswith("python:"):
                raise UsageError(
                    f"{flag}: {self.file} is a file of another server; poorhttp migrate "
                    f"{self.file} -o poorhttp.ini writes one for this server"
                )
            return
        option, text = _option(flag)
        is_alias = flag != option.flag
        if text is not None:
            if equals:
                raise UsageError(f"{flag} takes no value")
            value = text
        elif option.words and not equals:
            value = rest.pop(0) if rest and rest[0] in option.words else "on"
        elif not equals:
            value = _value(flag, option.metavar, rest)
        if is_alias and text is None:
            self._given[flag.lstrip("-")] = value
            if flag in ("--host", "--port"):
                return
            value = _translated(flag, value)
        if not option.repeatable:
            # The last one wins, as elsewhere.
            self.values.pop(option.name, None)
            self.flags.pop(option.name, None)
        self.values.setdefault(option.name, []).append(value)
        self.flags.setdefault(option.name, []).append(flag)


def _value(flag: str, metavar: str, rest: list[str]) -> str:
    """Take the value of an option from the words behind it."""
    if not rest or rest[0].startswith("--"):
        raise UsageError(f"{flag}: needs a value: {flag} {metavar}")
    return rest.pop(0)


def _option(flag: str) -> tuple[Option[object], str | None]:
    """Find the option that has this flag, short form or alias; with its text if it takes no value.

    Not in a table, which would stay in the memory of every worker.

    Raises:
        UsageError: there is none; the message says what to write instead.
    """
    is_short, name = not flag.startswith("--"), flag.lstrip("-")
    named = OPTIONS.get(name.replace("-", "_"))
    if named is not None and named.flag == flag:
        return named, None
    for option in OPTIONS.values():
        if is_short:
            if option.short == name:
                return option, None
            continue
        if name in option.aliases:
            return option, None
        if name in option.fixed:
            return option, option.fixed[name]
        if option.words and name[:3] == "no-" and name[3:] in (option.flag[2:], *option.aliases):
            return option, "off"
    if not is_short and registry.add_for_option(name.replace("-", "_")):
        return OPTIONS[name.replace("-", "_")], None
    spellings = {each.name: each.flag for each in OPTIONS.values() if each.flag}
    spellings |= {"config": FILE_FLAGS[-1], "help": HELP_FLAGS[-1], "version": VERSION_FLAGS[-1]}
    spellings |= {name: f"--{name}" for each in OPTIONS.values() for name in each.aliases}
    raise UsageError(f'unknown option "{flag}"{option_suggestion(name, spellings)}')


def _translated(flag: str, text: str) -> str:
    """Return the text for the option that an alias means."""
    from poorhttp.config.other_servers.translations import translate  # takes memory

    try:
        return translate(flag.lstrip("-"), text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from None


def _is_target(word: str) -> bool:
    """Tell whether a word that is no command names something to serve.

    A dotted name is a module; any other name is one if its file is in the current folder.
    """
    if any(mark in word for mark in ":/."):
        return True
    return os.path.exists(f"{word}.py") or os.path.isdir(word)


def title_words(words: Sequence[str]) -> list[str]:
    """Return arguments as a process title shows them: no values of environment variables."""
    secret = [option for option in OPTIONS.values() if option.secret]
    flags = [option.flag for option in secret]
    flags += [f"-{option.short}" for option in secret if option.short]
    shown = []
    before = ""
    for word in words:
        # `-e NAME=VALUE`, `-eNAME=VALUE` or `--env=NAME=VALUE`; a name has at least one letter.
        start = 1 if before in flags else 0
        for flag in flags:
            if word.startswith(flag) and word != flag:
                start = len(flag) + 1
        end = word.find("=", start) if start else -1
        shown.append(word if end < 0 else f"{word[:end]}=...")
        before = word
    return shown


def command(name: str) -> Command:
    """Return a command by its name; a ConfigError if its plug-in cannot be loaded."""
    found: Command = registry.entries["commands"][name].load()
    return found


def known_commands() -> dict[str, Command]:
    """Return all commands that can be loaded, by their names."""
    found = {}
    for name, known in registry.entries["commands"].items():
        # A plug-in of ours may have been left out of an installation; `poorhttp plugins` shows why
        # one of others cannot be loaded.
        with suppress(ConfigError if known.plugin else LeftOut):
            found[name] = command(name)
    return found


def usage(name: str = "", *, everything: bool = False) -> str:
    """Return the text of `--help`, for all commands or for one.

    Args:
        name: that of the command, or empty.
        everything: all options, instead of the most important ones.
    """
    from poorhttp.config.help import entry, option_help

    registry.add_installed()
    if not name and not everything:
        commands = "".join(entry(each, known.summary) for each, known in known_commands().items())
        return printable(
            "Usage: poorhttp TARGET [OPTION ...]\n"
            "       poorhttp COMMAND [TARGET] [OPTION ...]\n\n"
            "An HTTP server for Python applications. Without a command, it serves TARGET.\n\n"
            f"Commands:\n{commands}\n"
            "Options:\n"
            f"{entry('-h, --help', 'Show this help; after a command, its options.')}"
            f"{entry(HELP_ALL_FLAG, 'Show all options.')}"
            f"{entry('-v, --version', 'Show the version.')}\n"
            "Example: poorhttp package.module:application --bind 127.0.0.1:8080\n"
        )
    name = name or "serve"
    shown = command(name)
    finding = shown.finding
    default = "" if finding else " Default without TARGET: poorhttp.ini of the current folder."
    reads = f"Read an ini file.{default}"
    rest = "" if everything else f"\npoorhttp {name} {HELP_ALL_FLAG} shows all options.\n"
    return printable(
        f"Usage: poorhttp {name} {'[TARGET]' if finding else 'TARGET'} [OPTION ...]\n"
        f"       poorhttp {name} -c FILE [OPTION ...]\n\n"
        f"{shown.summary}\n\n{finding}"
        "Each option can also be set in the section [http] of FILE, as like_this = VALUE, and in\n"
        "the environment, as POORHTTP_LIKE_THIS. The command line takes precedence over the\n"
        "environment, and the environment over the file.\n\n"
        f"{entry('-c, --config FILE', reads)}"
        f"{entry('-h, --help', 'Show the most important options.')}"
        f"{entry(HELP_ALL_FLAG, 'Show all options.')}"
        f"{option_help(shown.common, everything=everything)}{rest}"
    )
