"""The completion of `poorhttp` for bash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from poorhttp.plugins.setup.shell.vocabulary import (
    FILE,
    FOLDER,
    FOLDER_SCHEMES,
    NOTHING,
    TARGET,
    Word,
    alike,
)

#: Words between two `@` are filled in. Bash divides a word at `=` and `:`: `--mode=gevent` is three
#: words here. `kind` is a command that has the same options.
SCRIPT = r"""# Completion of poorhttp for bash, from `poorhttp completion bash`.

_poorhttp_paths() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
}

_poorhttp_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# Completes the value of an option, "COMMAND OPTION"; fails if it takes none.
_poorhttp_value() {
    case $1 in
@values@
        *) return 1 ;;
    esac
}

_poorhttp() {
    local current=$2 last=$3 command='' kind='' subcommand='' word i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word == = ]]; then
            ((i++))
        elif [[ $word == -* ]]; then
            case "$kind $word" in
                @valued@) if [[ ${COMP_WORDS[i + 1]} != = ]]; then ((i++)); fi ;;
            esac
        elif [[ -z $command ]]; then
            command=$word
            case $command in
@kinds@
            esac
        elif [[ -z $subcommand ]]; then
            subcommand=$word
        fi
    done
    if [[ -z $command ]]; then
        _poorhttp_words '@commands@ --help --version' "$current"
        return
    fi
    if [[ $current == : || $last == : ]]; then
        word=$last
        if [[ $last == : ]]; then word=${COMP_WORDS[COMP_CWORD - 2]}; else current=''; fi
        case $word in
            @schemes@) _poorhttp_paths -d "$current" ;;
        esac
        return
    fi
    if [[ $current == = || $last == = ]]; then
        if [[ $last == = ]]; then last=${COMP_WORDS[COMP_CWORD - 2]}; else current=''; fi
        _poorhttp_value "$kind $last" "$current"
        return
    fi
    case "$kind $last" in
        @valued@)
            _poorhttp_value "$kind $last" "$current"
            return
            ;;
    esac
    case $current in
        -*)
            case $kind in
@options@
            esac
            ;;
        *)
            case "$command $subcommand" in
@arguments@
            esac
            ;;
    esac
}

complete -F _poorhttp poorhttp
"""


def script(commands: Sequence[Word]) -> str:
    """Return the script, to be read by bash or saved as a completion file."""
    kinds = alike(commands)
    parts = {
        "values": _lines(8, _values(kinds)),
        "valued": " | ".join(_valued(kinds)),
        "kinds": _lines(
            16,
            (
                f"{' | '.join(word.name for word in words)}) kind={words[0].name} ;;"
                for words in kinds
            ),
        ),
        "commands": " ".join(command.name for command in commands),
        "schemes": " | ".join(FOLDER_SCHEMES),
        "options": _lines(16, map(_options, kinds)),
        "arguments": _lines(16, _arguments(commands)),
    }
    text = SCRIPT
    for name, part in parts.items():
        text = text.replace(f"@{name}@", part)
    return text


def _lines(indent: int, lines: Iterator[str]) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _values(kinds: Sequence[Sequence[Word]]) -> Iterator[str]:
    """Return the lines that complete values: files, folders, words, and those that cannot be."""
    actions: dict[str, list[str]] = {}
    for words in kinds:
        for switch in words[0].switches:
            if switch.metavar:
                for name in switch.names:
                    action = _action(switch.place, switch.choices)
                    actions.setdefault(action, []).append(f"'{words[0].name} {name}'")
    for action, patterns in actions.items():
        yield f"{' | '.join(patterns)}) {action} ;;"


def _action(place: str, choices: Sequence[str]) -> str:
    if choices:
        return f"""_poorhttp_words '{" ".join(choices)}' "$2\""""
    flag = {FILE: "-f", TARGET: "-f", FOLDER: "-d", NOTHING: ""}[place]
    return f'_poorhttp_paths {flag} "$2"' if flag else ":"


def _valued(kinds: Sequence[Sequence[Word]]) -> Iterator[str]:
    """Return the patterns of the options whose value is the next word."""
    for words in kinds:
        for switch in words[0].switches:
            if switch.metavar and not switch.optional:
                yield from (f"'{words[0].name} {name}'" for name in switch.names)


def _options(words: Sequence[Word]) -> str:
    every = ([*switch.names, switch.off] for switch in words[0].switches)
    names = " ".join(name for each in every for name in each if name)
    return f"""{words[0].name}) _poorhttp_words '{names}' "$current" ;;"""


def _arguments(commands: Sequence[Word]) -> Iterator[str]:
    for command in commands:
        if command.words:
            names = " ".join(word.name for word in command.words)
            yield f"""'{command.name} ') _poorhttp_words '{names}' "$current" ;;"""
        for word in (command, *command.words):
            rest = "" if word is command else word.name
            action = _action(word.argument, word.choices).replace("$2", "$current")
            if action != ":" and not word.words:
                yield f"'{command.name} {rest}') {action} ;;"
