"""Reader of a page: its files, commands, expected output and hidden comments, in order."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

#: A first line that names the file of its block.
FILE_NAME = re.compile(
    r"(?:#|;|//|--|<!--|/\*|\{#)\s*"
    r"([\w./@+-]*[./][\w./@+-]*|Makefile|Procfile|Dockerfile|Containerfile|Caddyfile)"
    r"\s*(?:-->|\*/|#\})?$"
)
COMMENT = re.compile(r"<!--\s*test:\s*(.*?)\s*-->$")
FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*(\S*)")
#: Languages in which commands could stand that nobody runs.
SHELLS = {"sh", "bash", "shell", "shell-session", "zsh"}


class PageError(Exception):
    """A page that does not keep to the convention."""


@dataclass
class Step:
    """A part of a page: a command with its output, a file, or an instruction to the runner.

    Attributes:
        kind: `command`, `file`, `stop`, `wait` or `runs on`.
        line: where it is in the page, from 1.
        text: the command, the name of the file, the prefix of commands that run on,
            or what to wait for.
        lines: expected output, or the lines of the file.
        needs: programs without which it is left out.
    """

    kind: str
    line: int
    text: str
    lines: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


@dataclass
class Page:
    """What a page has to run, and why not."""

    path: Path
    steps: list[Step] = field(default_factory=list)
    full: bool = False
    not_run: str = ""

    def fail(self, line: int, message: str) -> PageError:
        return PageError(f"{self.path}:{line}: {message}")


def read(path: Path) -> Page:
    page = Page(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    replaced: list[tuple[str, str]] = []
    shown = False
    needs: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if found := COMMENT.match(line.strip()):
            name, _, rest = found[1].partition(" ")
            if found[1].startswith("setup:"):
                command = _replace(rest, replaced)
                page.steps.append(Step("command", number, command, needs=needs))
            elif found[1].startswith("runs on:"):
                page.steps.append(Step("runs on", number, rest.partition(" ")[2]))
            elif found[1].startswith("not run:"):
                page.not_run = rest.partition(" ")[2]
            elif name == "replace" and len(words := shlex.split(rest)) == 2:
                replaced.append((words[0], words[1]))
            elif found[1] == "stop":
                page.steps.append(Step("stop", number, ""))
            elif name == "wait" and rest:
                page.steps.append(Step("wait", number, rest))
            elif found[1] == "full":
                page.full = True
            elif found[1] == "shown":
                shown = True
            elif name == "needs":
                needs = rest.split()
            else:
                raise page.fail(number, f"no instruction of tests/manual: {line.strip()}")
            continue
        if not (found := FENCE.match(line)):
            continue
        indent, fence, language = found.groups()
        start = number
        block = []
        while number < len(lines) and not (
            lines[number].strip().startswith(fence) and not lines[number].strip().strip(fence[0])
        ):
            block.append(_replace(lines[number].removeprefix(indent), replaced))
            number += 1
        number += 1
        if not shown:
            steps = _block(page, start, language, block)
            for step in steps:
                step.needs = needs
            page.steps += steps
        shown, needs = False, []
    return page


def _replace(text: str, replaced: list[tuple[str, str]]) -> str:
    for old, new in replaced:
        text = text.replace(old, new)
    return text


def _block(page: Page, start: int, language: str, block: list[str]) -> list[Step]:
    """The steps of a block that begins after line `start`."""
    if language == "console":
        return _commands(page, start, block)
    if language in SHELLS:
        raise page.fail(start, f"commands belong into a block ```console, not ```{language}")
    if block and (found := FILE_NAME.match(block[0].strip())):
        content = block[1:] if found[1].endswith(".json") else block
        return [Step("file", start, found[1], content)]
    return []


def _commands(page: Page, start: int, block: list[str]) -> list[Step]:
    steps: list[Step] = []
    at = 0
    while at < len(block):
        line = block[at]
        at += 1
        if line.startswith("$ "):
            text = line[2:]
            step = Step("command", start + at, text)
            while at < len(block) and _goes_on(step.text):
                step.text += "\n" + ("" if block[at] == ">" else block[at].removeprefix("> "))
                at += 1
            steps.append(step)
        elif not steps:
            if line.strip():
                raise page.fail(start + at, "a console block begins with `$ command`")
        else:
            steps[-1].lines.append(line)
    for step in steps:
        while step.lines and not step.lines[-1].strip():
            step.lines.pop()
    return steps


def _goes_on(text: str) -> bool:
    """Whether the next line belongs to the command too."""
    if text.endswith("\\"):
        return True
    if found := re.search(r"<<-?\s*['\"]?(\w+)['\"]?", text):
        return not re.search(rf"^\s*{found[1]}$", text, re.MULTILINE)
    try:
        shlex.split(text, comments=True)
    except ValueError as error:
        return "closing quotation" in str(error)
    return False
