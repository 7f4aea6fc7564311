"""The completion of `poorhttp` for fish."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from poorhttp.plugins.setup.shell.vocabulary import (
    FILE,
    FOLDER,
    FOLDER_SCHEMES,
    NOTHING,
    TARGET,
    Switch,
    Word,
    alike,
)

FOLDERS = "(__fish_complete_directories)"


def script(commands: Sequence[Word]) -> str:
    """Return the script, to be read by fish or saved as a completion file."""
    lines = [
        "# Completion of poorhttp for fish, from `poorhttp completion fish`.",
        "",
        _complete("-f"),
        _complete("-n __fish_use_subcommand -s h -l help -d 'Show help.'"),
        _complete("-n __fish_use_subcommand -l version -d 'Show the version.'"),
    ]
    for command in commands:
        described = f"-a {command.name} -d {_quoted(command.summary)}"
        lines.append(_complete(f"-n __fish_use_subcommand {described}"))
    for words in alike(commands):
        seen = _seen([word.name for word in words])
        for switch in words[0].switches:
            lines.append(_complete(f"-n {_quoted(seen)} {_option(switch)}"))
            if switch.off:
                described = f"-l {switch.off[2:]} -d {_quoted(f'{switch.names[-1]}=off')}"
                lines.append(_complete(f"-n {_quoted(seen)} {described}"))
    lines += [_complete(arguments) for command in commands for arguments in _arguments(command)]
    return "\n".join(lines) + "\n"


def _complete(arguments: str) -> str:
    return f"complete -c poorhttp {arguments}".rstrip()


def _seen(names: Sequence[str]) -> str:
    return f"__fish_seen_subcommand_from {' '.join(names)}"


def _arguments(command: Word) -> Iterator[str]:
    """Return what completes the arguments of a command."""
    seen = _seen([command.name])
    none = f"not {_seen([word.name for word in command.words])}"
    for word in command.words:
        described = f"-a {word.name} -d {_quoted(word.summary)}"
        yield f"-n {_quoted(f'{seen}; and {none}')} {described}"
        if word.choices:
            both = f"{seen}; and {_seen([word.name])}"
            yield f"-n {_quoted(both)} -a {_quoted(' '.join(word.choices))}"
    if command.choices:
        yield f"-n {_quoted(seen)} -a {_quoted(' '.join(command.choices))}"
    elif command.argument in (FILE, TARGET):
        yield f"-n {_quoted(seen)} -F"
        if command.argument == TARGET:
            schemes = " ".join(f"{scheme}:" for scheme in FOLDER_SCHEMES)
            yield f"-n {_quoted(seen)} -a {_quoted(schemes)}"
    elif command.argument == FOLDER:
        yield f"-n {_quoted(seen)} -a {_quoted(FOLDERS)}"


def _option(switch: Switch) -> str:
    """Return the options of `complete` for an option."""
    words = []
    for name in switch.names:
        words += ["-l", name[2:]] if name.startswith("--") else ["-s", name[1:]]
    words += ["-d", _quoted(switch.summary)]
    if switch.metavar and not switch.optional:
        words.append({FILE: "-rF", FOLDER: "-x", NOTHING: "-x"}[switch.place])
    if switch.choices and not switch.optional:
        words += ["-a", _quoted(" ".join(switch.choices))]
    elif switch.place == FOLDER:
        words += ["-a", _quoted(FOLDERS)]
    return " ".join(words)


def _quoted(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
