"""`poorhttp completion`: the Tab key in real bash, zsh and fish."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from poorhttp.config.options.server import MODES
from poorhttp.config.settings import OPTIONS
from tests.packages import need
from tests.support.development import write
from tests.support.forked_command import run_command
from tests.testkit.server import run

Complete = Callable[[Path, str], set[str]]

#: Prints what would be completed, a word a line: bash's words of a command line are its arguments.
BASH = r"""
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_poorhttp poorhttp "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""

#: Has zsh complete in a terminal of its own, and prints each word that it offers. Ctrl-U removes
#: the line, which must not be run. The terminal itself would obey Ctrl-U, and remove line and Tab,
#: before zsh reads single keys: its editor says when it begins. The answer is read by lines: with a
#: pattern, `zpty` compares all that it has read after each letter.
ZSH = r"""
zmodload zsh/zpty
zpty terminal zsh -f -i
zpty -w terminal 'PS1= PROMPT= ; autoload -Uz compinit && compinit -u -d '"$2"
zpty -w terminal 'source '"$1"
zpty -w terminal 'compadd() {
    if [[ $@[1,(i)(-|--)] == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
    local -a __hits; builtin compadd -A __hits "$@"
    print -lr -- "<"$^__hits">"; builtin compadd "$@"
}'
zpty -w terminal 'bindkey "^I" complete-word; zstyle ":completion:*" list-prompt ""'
zpty -w terminal 'zle-line-init() { print rea\dy }; zle -N zle-line-init'
zpty -r terminal text '*ready*'
zpty -n -w terminal "$3"$'\t'
zpty -n -w terminal $'\x15'
zpty -w terminal 'echo en\d-of-it'
while zpty -r terminal text; do
    print -rn -- "$text"
    [[ $text == *end-of-it* ]] && break
done
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the completion of each shell, a file and a folder."""
    folder = tmp_path_factory.mktemp("completion")
    write(folder, {"place/pages of mine/page": "", "place/poorhttp.ini": ""})
    for shell in ("bash", "zsh", "fish"):
        done = run_command("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        write(folder, {f"poorhttp.{shell}": done.stdout})
    return folder


def asked(folder: Path, *words: str) -> str:
    """The output of a shell in the folder with a file."""
    env = {"HOME": str(folder), "TERM": "dumb", "COLUMNS": "500", "LINES": "500"}
    done = run(*words, cwd=folder / "place", env=env)
    assert done.stderr == "", done.stderr
    return done.stdout


def bash(folder: Path, line: str) -> set[str]:
    """What bash offers: it divides words at `=` and `:`."""
    words = [word for word in re.split(r" |([=:])", line) if word is not None]
    if words[-1] == "" and words[-2:-1] in (["="], [":"]):
        words.pop()
    # Only the last one may be empty.
    words = [*filter(None, words[:-1]), words[-1]]
    script = str(folder / "poorhttp.bash")
    found = asked(folder, "bash", "--norc", "-c", BASH, "bash", script, *words)
    return set(found.split("\n")) - {""}


def fish(folder: Path, line: str) -> set[str]:
    """What fish offers, without descriptions."""
    script = f'source {folder}/poorhttp.fish; complete -C "{line}"'
    return {entry.partition("\t")[0] for entry in asked(folder, "fish", "-c", script).splitlines()}


def zsh(folder: Path, line: str) -> set[str]:
    """What zsh offers."""
    words = (str(folder / "poorhttp.zsh"), str(folder / "compdump"), line)
    text = asked(folder, "zsh", "-f", "-c", ZSH, "zsh", *words)
    return set(re.findall(r"<([^<>\n]*)>\r?$", text, re.MULTILINE))


#: Lines in which Tab is pressed, and the words that are offered.
OFFERED = {
    "poorhttp co": {"compile", "completion"},
    "poorhttp check app:app --keepalive": {"--keepalive-timeout"},
    "poorhttp dev --no-li": {"--no-live"},
    "poorhttp serve --mode ": set(MODES),
    "poorhttp dev --workers 2 --log-level w": {"warning"},
    "poorhttp serve -w 2 -k th": {"threading"},
    "poorhttp ctl log-level de": {"debug"},
    "poorhttp ctl --adm": {"--admin"},
}

#: Lines at which more is offered, and some of it.
AMONG_OTHERS = {
    "poorhttp ": {"serve", "dev", "check", "compile", "ctl", "top", "completion", "man", "migrate"},
    "poorhttp serve --": {option.flag for option in OPTIONS.values() if option.flag},
    "poorhttp ctl ": {"status", "reload", "log-level", "heap"},
}


@pytest.mark.parametrize("shell", [bash, zsh, fish])
def test_what_is_offered(shell: Complete, folder: Path) -> None:
    need(shell.__name__)
    assert {line: shell(folder, line) for line in OFFERED} == OFFERED
    for line, some in AMONG_OTHERS.items():
        assert some - shell(folder, line) == set(), line
    assert "--bind" not in shell(folder, "poorhttp ctl --")
    # Some shells offer all behind the space.
    offered = shell(folder, "poorhttp serve --mode=g")
    assert {word.removeprefix("--mode=") for word in offered} == {"gevent"}

    def files(line: str) -> set[str]:
        return {word.replace("\\", "").rstrip("/ ") for word in shell(folder, line)}

    assert files("poorhttp serve -c p") == {"pages of mine", "poorhttp.ini"}
    assert files("poorhttp serve --chdir p") == {"pages of mine"}
    assert {"pages of mine", "poorhttp.ini"} <= files("poorhttp dev p")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "completion: a word is missing; write one of bash, zsh, fish"),
        (("zhs",), 'completion: unknown "zhs"; did you mean "zsh"?'),
        (("bash", "zsh"), 'completion: takes one of bash, zsh, fish, and there is "zsh" too'),
    ],
)
def test_mistakes(words: tuple[str, ...], said: str) -> None:
    done = run_command("completion", *words)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"poorhttp: {said}\n")
