"""The completion of `poorhttp` for zsh."""

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

#: Words between two `@` are filled in.
SCRIPT = r"""#compdef poorhttp
# Completion of poorhttp for zsh, from `poorhttp completion zsh`.

_poorhttp_targets() {
    if compset -P '(@schemes@):'; then
        _files -/
    else
        _alternative 'files:file:_files' 'schemes:scheme:compadd -S : @scheme_words@'
    fi
}

_poorhttp() {
    local context state state_descr line
    typeset -A opt_args
    _arguments -C \
        '(- *)'{-h,--help}'[Show help.]' \
        '(- *)--version[Show the version.]' \
        '1:command:->command' \
        '*::argument:->argument'
    case $state in
        command)
            local -a commands=(
@commands@
            )
            _describe command commands
            ;;
        argument)
            case $words[1] in
@arguments@
            esac
            ;;
    esac
}

if [[ ${funcstack[1]} == _poorhttp ]]; then
    _poorhttp "$@"
else
    compdef _poorhttp poorhttp
fi
"""


def script(commands: Sequence[Word]) -> str:
    """Return the script, to be read by zsh or saved as `_poorhttp`."""
    parts = {
        "schemes": "|".join(FOLDER_SCHEMES),
        "scheme_words": " ".join(FOLDER_SCHEMES),
        "commands": "\n".join(_described(commands)),
        "arguments": "\n".join(line for words in alike(commands) for line in _case(words)),
    }
    text = SCRIPT
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def _described(words: Sequence[Word]) -> Iterator[str]:
    for word in words:
        yield f"                {_quoted(f'{word.name}:{word.summary}')}"


def _case(words: Sequence[Word]) -> Iterator[str]:
    """Return the branch of commands with the same options."""
    command = words[0]
    yield f"                {'|'.join(word.name for word in words)})"
    yield "                    _arguments \\"
    for switch in command.switches:
        yield from (f"                        {spec} \\" for spec in _specs(switch))
    if command.words:
        names = " ".join(word.name for word in command.words)
        yield f"                        '1:command:({names})' \\"
        arguments = [choice for word in command.words for choice in word.choices]
        yield f"                        '*:argument:({' '.join(arguments)})'"
    else:
        yield f"                        '*:argument:{_action(command.argument, command.choices)}'"
    yield "                    ;;"


def _specs(switch: Switch) -> Iterator[str]:
    """Return an argument of `_arguments` for each name of an option."""
    for name in switch.names:
        others = "*" if switch.repeatable else f"({' '.join(switch.names)})"
        spec = f"{others}{name}"
        if switch.metavar:
            spec += ("=-" if switch.optional else "=") if name.startswith("--") else "+"
        spec += f"[{_escaped(switch.summary)}]"
        if switch.metavar:
            colons = "::" if switch.optional else ":"
            spec += f"{colons}{switch.metavar}:{_action(switch.place, switch.choices)}"
        yield _quoted(spec)
    if switch.off:
        yield _quoted(
            f"({switch.off} {' '.join(switch.names)}){switch.off}[{switch.names[-1]}=off]"
        )


def _action(place: str, choices: Sequence[str]) -> str:
    if choices:
        return f"({' '.join(choices)})"
    return {FILE: "_files", FOLDER: "_files -/", TARGET: "_poorhttp_targets", NOTHING: ""}[place]


def _escaped(text: str) -> str:
    """Return a description for between brackets."""
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _quoted(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"
