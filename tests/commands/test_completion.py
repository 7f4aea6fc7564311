"""`poorhttp completion`: the Tab key in real bash, zsh and fish."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poorhttp.config.options.server import MODES
from poorhttp.config.settings import OPTIONS
from tests.packages import need
from tests.support.forked_command import run_command
from tests.testkit.client import HANG

Complete = Callable[[str], set[str]]

COMMANDS = {"serve", "dev", "check", "compile", "ctl", "top", "completion", "man", "migrate"}

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
    for shell in ("bash", "zsh", "fish"):
        done = run_command("completion", shell)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / f"poorhttp.{shell}").write_text(done.stdout)
    (folder / "place" / "pages of mine").mkdir(parents=True)
    (folder / "place" / "poorhttp.ini").write_text("")
    return folder


def asked(folder: Path, *words: str) -> str:
    """The output of a shell in the folder with a file."""
    done = subprocess.run(
        words,
        cwd=folder / "place",
        env={**os.environ, "HOME": str(folder), "TERM": "dumb", "COLUMNS": "500", "LINES": "500"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.stderr == "", done.stderr
    return done.stdout


def bash(folder: Path, line: str) -> set[str]:
    """What bash offers: it divides words at `=` and `:`."""
    words = [word for word in re.split(r" |([=:])", line) if word is not None]
    if words[-1] == "" and words[-2:-1] in (["="], [":"]):
        words.pop()
    script = str(folder / "poorhttp.bash")
    found = asked(folder, "bash", "--norc", "-c", BASH, "bash", script, *filter_empty(words))
    return set(found.split("\n")) - {""}


def filter_empty(words: list[str]) -> Iterator[str]:
    """All words but empty ones within the line."""
    return (word for place, word in enumerate(words) if word or place == len(words) - 1)


def fish(folder: Path, line: str) -> set[str]:
    """What fish offers, without descriptions."""
    script = f'source {folder}/poorhttp.fish; complete -C "{line}"'
    return {entry.partition("\t")[0] for entry in asked(folder, "fish", "-c", script).splitlines()}


def zsh(folder: Path, line: str) -> set[str]:
    """What zsh offers."""
    words = (str(folder / "poorhttp.zsh"), str(folder / "compdump"), line)
    text = asked(folder, "zsh", "-f", "-c", ZSH, "zsh", *words)
    return set(re.findall(r"<([^<>\n]*)>\r?$", text, re.MULTILINE))


@pytest.fixture(params=["bash", "zsh", "fish"])
def complete(request: pytest.FixtureRequest, folder: Path) -> Complete:
    """Completes a line in each shell."""
    need(request.param)
    shell = {"bash": bash, "zsh": zsh, "fish": fish}[request.param]
    return lambda line: shell(folder, line)


def test_commands(complete: Complete) -> None:
    assert complete("poorhttp ") >= COMMANDS
    assert complete("poorhttp co") == {"compile", "completion"}


def test_options(complete: Complete) -> None:
    offered = complete("poorhttp serve --")
    assert {option.flag for option in OPTIONS.values() if option.flag} <= offered
    assert complete("poorhttp check app:app --keepalive") == {"--keepalive-timeout"}
    assert complete("poorhttp dev --no-li") == {"--no-live"}


def test_values(complete: Complete) -> None:
    assert complete("poorhttp serve --mode ") == set(MODES)
    assert complete("poorhttp dev --workers 2 --log-level w") == {"warning"}
    assert complete("poorhttp serve -w 2 -k th") == {"threading"}


def test_values_behind_an_equals_sign(complete: Complete) -> None:
    found = complete("poorhttp serve --mode=g")
    assert {word.removeprefix("--mode=") for word in found} == {"gevent"}


def test_files_and_folders(complete: Complete) -> None:
    def names(line: str) -> set[str]:
        return {word.replace("\\", "").rstrip("/ ") for word in complete(line)}

    assert names("poorhttp serve -c p") == {"pages of mine", "poorhttp.ini"}
    assert names("poorhttp serve --chdir p") == {"pages of mine"}
    assert {"pages of mine", "poorhttp.ini"} <= names("poorhttp dev p")


def test_commands_of_ctl(complete: Complete) -> None:
    assert {"status", "reload", "log-level", "heap"} <= complete("poorhttp ctl ")
    assert complete("poorhttp ctl log-level de") == {"debug"}
    assert complete("poorhttp ctl --adm") == {"--admin"}
    assert "--bind" not in complete("poorhttp ctl --")


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
