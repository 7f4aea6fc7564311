"""Runs the steps of a page and compares output."""

from __future__ import annotations

import re
import shlex
import shutil
import time
from pathlib import Path

from tests.manual.machine import STAND_INS, Job, Machine
from tests.manual.page import Page, Step
from tests.packages import FOLDERS
from tests.testkit.client import HANG
from tests.testkit.server import ROOT

#: Commands of poorhttp that end by themselves; any other word is a target.
ENDING = {"check", "compile", "ctl", "init", "completion", "man", "migrate", "top"}
#: What only reads, so may be repeated until it prints what is expected.
READING = ("cat ", "tail ", "grep ", "journalctl ", "systemctl status", "poorhttp ctl ", "head ")
#: How long output may take to come, in seconds.
PATIENCE = 240


class StepFailed(AssertionError):
    """A command that does something else than its page says."""

    def __init__(self, page: Page, step: Step, message: str, got: str = "") -> None:
        path = page.path.relative_to(ROOT) if page.path.is_relative_to(ROOT) else page.path
        parts = [f"{path}:{step.line}: {message}", f"    $ {step.text}"]
        if step.lines:
            parts += ["expected:", *(f"    {line}" for line in step.lines)]
        parts += ["got:", *(f"    {line}" for line in got.splitlines())]
        super().__init__("\n".join(parts))


def run(*pages: Page) -> None:
    """Run pages one after another on one machine; StepFailed tells what is not as they say."""
    running: list[Job] = []
    prefixes: list[str] = []
    with Machine() as machine:
        for page, step in [(each, step) for each in pages for step in each.steps]:
            if any(not _is_installed(name) for name in step.needs):
                continue
            if step.kind == "runs on":
                prefixes.append(step.text)
            elif step.kind == "file":
                machine.write(step.text, "\n".join(step.lines) + "\n")
            elif step.kind == "wait":
                _wait(page, step, running)
            elif step.kind == "stop":
                _stop(running)
            elif runs_on(step.text, prefixes):
                _start(page, step, machine, running)
            else:
                _command(page, step, machine)


def _is_installed(name: str) -> bool:
    return (STAND_INS / "bin" / name).exists() or shutil.which(name, path=FOLDERS) is not None


def _stop(running: list[Job]) -> None:
    while running:
        running.pop().interrupt()


def _wait(page: Page, step: Step, running: list[Job]) -> None:
    """Wait until a command that runs on prints a text that was not waited for yet."""
    end = time.monotonic() + HANG
    while True:
        for job in running:
            if (at := job.output().find(step.text, job.seen)) >= 0:
                job.seen = at + len(step.text)
                return
        if time.monotonic() > end:
            output = "\n".join(job.output() for job in running)
            raise StepFailed(page, step, "no command that runs on prints this", output)
        time.sleep(0.02)


def runs_on(command: str, prefixes: list[str]) -> bool:
    """Whether a command runs until it is interrupted."""
    if any(command.startswith(prefix) for prefix in prefixes):
        return True
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return False
    while words and (words[0] == "sudo" or re.match(r"\w+=", words[0])):
        words.pop(0)
    if any(word in ("|", "&&", "||", ";") for word in words):
        return False
    if len(words) > 2 and words[0].startswith("python") and words[1] == "-m":
        words = words[2:]
    if len(words) < 2 or Path(words[0]).name != "poorhttp":
        return False
    return (
        words[1] not in ENDING
        and not words[1].startswith("-")
        and not {"--help", "-h", "--help-all", "--daemon"} & set(words)
    )


def _start(page: Page, step: Step, machine: Machine, running: list[Job]) -> None:
    """Start what runs on, and wait until it listens and has printed what is expected."""
    command = step.text.rstrip()
    beside = command.endswith("&")
    if not beside:
        _stop(running)
    job = machine.start(command.removesuffix("&").rstrip())
    expected = list(step.lines)
    interrupted = bool(expected) and expected[-1].strip() == "^C"
    if interrupted:
        expected.pop()
    end = time.monotonic() + HANG
    while True:
        output = job.output()
        if _is_ready(output, expected, page, step):
            break
        if not job.runs():
            if expected and matches(expected, job.output()):
                return
            raise StepFailed(page, step, "the command ended", job.output())
        if time.monotonic() > end:
            raise StepFailed(page, step, "it is not ready, or prints something else", output)
        time.sleep(0.02)
    if not beside:
        running.append(job)
    if interrupted:
        _stop(running)


def _is_ready(output: str, expected: list[str], page: Page, step: Step) -> bool:
    """Whether a server has said that it listens, and all that is expected."""
    if "poorhttp" in step.text and "listening on" not in output:
        return False
    # More may come after what the page shows.
    return matches([*expected, "..."], output) if expected else True


def _command(page: Page, step: Step, machine: Machine) -> None:
    """Run a command to its end, and compare."""
    end = time.monotonic() + PATIENCE
    text = step.text.removeprefix("sudo ")
    while True:
        try:
            status, output = machine.run(step.text)
        except TimeoutError as error:
            raise StepFailed(page, step, "the command does not end", str(error)) from None
        right = matches(step.lines, output) if step.lines else status == 0
        if right:
            return
        if not text.startswith(READING) or time.monotonic() > end:
            break
        time.sleep(0.05)
    message = "other output" if step.lines else f"exit status {status}"
    raise StepFailed(page, step, message, output)


def matches(expected: list[str], output: str) -> bool:
    """Whether output is as expected: `...` is any text in a line, and any lines as a line."""
    pattern = ""
    for line in expected:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pieces = (re.escape(piece) for piece in line.rstrip().split("..."))
            pattern += ".*".join(pieces) + r"[ \t]*\n"
    lines = [line.rstrip() for line in output.rstrip().splitlines()]
    return re.fullmatch(pattern, "\n".join(lines) + "\n") is not None
