"""The commands `poorhttp completion SHELL` and `poorhttp man [SECTION]`."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.config.help import entry
from poorhttp.config.suggestions import suggestion
from poorhttp.errors import UsageError
from poorhttp.plugins.setup.commands import MAN
from poorhttp.plugins.setup.shell import bash, fish, man, zsh
from poorhttp.plugins.setup.shell.vocabulary import commands

HELP = ("-h", "--help")

SHELLS = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}

#: Files that shells look for the completion in, relative to the folder of the user's data.
PLACES = {
    "bash": "~/.local/share/bash-completion/completions/poorhttp",
    "zsh": "_poorhttp in a folder of fpath",
    "fish": "~/.config/fish/completions/poorhttp.fish",
}

SECTIONS = {"1": man.command_page, "5": man.file_page}


def completion(words: Sequence[str]) -> str:
    """Return the output of `poorhttp completion`.

    Args:
        words: the words behind it.

    Raises:
        UsageError: a word is missing, too much, or unknown.
    """
    if set(words) & set(HELP):
        places = "".join(entry(shell, f"Save it as {PLACES[shell]}.") for shell in SHELLS)
        return (
            "Usage: poorhttp completion SHELL\n\nPrint the completion for a shell.\n\n"
            f"Shells:\n{places}"
        )
    script = SHELLS[_one("completion", words, [*SHELLS])]
    return script(commands())


def manual(words: Sequence[str]) -> str:
    """Return the output of `poorhttp man`, roff; arguments and errors as of `completion`."""
    if set(words) & set(HELP):
        return (
            f"Usage: poorhttp man [SECTION]\n\n{MAN.summary}\n\n"
            "Example: poorhttp man 5 | man -l -\n"
        )
    page = SECTIONS[_one("man", words or ["1"], [*SECTIONS])]
    return page(commands())


def _one(command: str, words: Sequence[str], known: Sequence[str]) -> str:
    names = ", ".join(known)
    if not words:
        raise UsageError(f"{command}: a word is missing; write one of {names}")
    if len(words) > 1:
        raise UsageError(f'{command}: takes one of {names}, and there is "{words[1]}" too')
    if words[0] not in known:
        meant = suggestion(words[0], known)
        raise UsageError(f'{command}: unknown "{words[0]}"{meant}')
    return words[0]
