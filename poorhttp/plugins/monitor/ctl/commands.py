"""The subcommands of `poorhttp ctl`."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Sequence

from poorhttp.config.version import VERSION
from poorhttp.errors import Failure, UsageError, printable, visible
from poorhttp.plugins.monitor.ctl import tables
from poorhttp.plugins.monitor.ctl.arguments import Arguments, usage
from poorhttp.plugins.monitor.ctl.client import Client, Stranger, Unavailable, Unreachable
from poorhttp.plugins.monitor.ctl.find import find
from poorhttp.plugins.monitor.derived import advice
from poorhttp.process.safe_open import safe_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.plugins.monitor.admin.model import Status

#: Seconds between two questions for a result: the first pause, and the longest.
SHORTEST, LONGEST = 0.02, 0.5

#: Seconds for which nobody may answer while a new main process takes over.
TAKEOVER = 10.0

#: Seconds for which a process may still be there that does not answer any more.
ENDING = 5.0

#: The name of a job, a part of a path.
JOB = re.compile(r"[\w-]{1,64}", re.ASCII)

#: Subcommands that show parts of the status document.
SHOWN: dict[str, Callable[[Status], str]] = {
    "status": tables.status,
    "workers": tables.workers,
    "requests": tables.requests,
    "advise": advice.text,
}


def main(words: Sequence[str]) -> int:
    """Run `poorhttp ctl` with these words; return the exit code.

    Raises:
        Failure: it cannot be done.
    """
    arguments = Arguments(words)
    if not arguments.command:
        _print(usage())
        return 0
    client = Client(find(arguments.options, os.environ))
    as_json = "--json" in arguments.options
    if arguments.command == "top":
        from poorhttp.plugins.monitor.ctl import top  # needs the library curses

        return top.run(client.status)
    if arguments.command in SHOWN:
        if as_json and arguments.command == "status":
            # A program may know that version.
            _print_json(client.document())
            return 0
        document = client.status()
        if as_json:
            _print_json(_part(arguments.command, document))
        else:
            _print(SHOWN[arguments.command](document))
        return 0
    return _control(client, arguments, as_json=as_json)


def _part(command: str, document: Status) -> object:
    """Return what a subcommand shows of the document."""
    services = document["services"]
    if command == "advise":
        return advice.advice(document)
    if command == "workers":
        return [
            {"service": service["name"], **worker}
            for service in services
            for worker in service["workers"]
        ]
    if command == "requests":
        return [
            {"service": service["name"], "pid": worker["pid"], **request}
            for service in services
            for worker in service["workers"]
            for request in worker["working_on"]
        ]
    return document


def _control(client: Client, arguments: Arguments, *, as_json: bool) -> int:
    """Send a command, wait for its result, and print it."""
    command, given = arguments.command, arguments.arguments
    members: dict[str, object] = {name.lower(): value for name, value in given.items()}
    for name in ("pid", "seconds", "threads"):
        if name in members and not str(members[name]).isdecimal():
            raise UsageError(f'{command}: "{members[name]}" is not a number ({name.upper()})')
    for option in ("--quick", "--off"):
        if option in arguments.options:
            members[option.removeprefix("--")] = True
    if "--format" in arguments.options:
        members["form"] = arguments.options["--format"]
    before = client.pid() if command in ("stop", "restart") else 0
    status, answer = client.command(command, members)
    if status == 202 and "job" in answer:
        if not isinstance(answer["job"], str) or not JOB.fullmatch(answer["job"]):
            raise Stranger(client.place)
        answer = _result(client, answer["job"], before)
    elif command == "stop" and answer["ok"]:
        answer = _ended(client, before)
    if not isinstance(answer.get("result", {}), dict):
        raise Stranger(client.place)
    if "error" in answer.get("result", {}):
        answer = {"ok": False, "message": str(answer["result"]["error"])}
    if as_json:
        _print_json(answer.get("result", answer))
    elif not answer["ok"]:
        raise Failure(visible(answer["message"]))
    elif "result" in answer:
        try:
            _print_result(command, answer["result"], arguments.options.get("--output", ""))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            why = f"the result has another form than that of {VERSION}: another version answers"
            raise Failure(f"{client.place.address}: {why}") from error
    else:
        _print(f"{visible(answer['message'])}\n")
    return 0 if answer["ok"] else 1


def _result(client: Client, job: str, before: int) -> dict[str, Any]:
    """Wait for the result of a command that takes long.

    Args:
        client: the server.
        job: of the command.
        before: the main process that a restart replaces, and its jobs with it; 0: it stays.
    """
    pause, silent_since = SHORTEST, 0.0
    while True:
        time.sleep(pause)
        pause = min(2 * pause, LONGEST)
        try:
            status, answer = client.job(job)
            if status == 404 and before and (now := client.pid()) != before:
                return {"ok": True, "message": f"process {now} has taken over"}
        except Unreachable:
            # While one process takes over from another, a connection may be cut off.
            silent_since = silent_since or time.monotonic()
            if not before or time.monotonic() - silent_since > TAKEOVER:
                raise
            continue
        silent_since = 0.0
        if status != 202:
            return answer


def _ended(client: Client, before: int) -> dict[str, Any]:
    """Wait until the main process `before` does not answer any more, and has ended."""
    pause, silent_since = SHORTEST, 0.0
    while True:
        time.sleep(pause)
        pause = min(2 * pause, LONGEST)
        try:
            now = client.pid()
        except Unavailable:
            continue
        except Unreachable:
            silent_since = silent_since or time.monotonic()
            # It may be a process of another namespace, whose number means nothing here.
            if not os.path.exists(f"/proc/{before}") or time.monotonic() - silent_since > ENDING:
                return {"ok": True, "message": "the server has stopped"}
            continue
        silent_since = 0.0
        if now != before:
            return {"ok": True, "message": f"the server has stopped; now process {now} serves"}


def _print_result(command: str, result: dict[str, Any], output: str) -> None:
    """Print what an inspection has found."""
    if command != "profile":
        from poorhttp.plugins.monitor.inspection import text  # takes time

        _print(text.stacks(result) if command == "stacks" else text.heap(result))
        return
    for note in result.get("notes", ()):
        print(f"poorhttp: {visible(note)}", file=sys.stderr)
    if not output:
        # Another version of the server, or whoever answers in its place, sends what it likes.
        _print(printable(result["text"]))
        return
    try:
        # Not through a link of another user, nor into a file that has a further name elsewhere.
        with open(safe_open(output, os.O_WRONLY | os.O_CREAT), "wb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                file.truncate(0)
            file.write(result["text"].encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise Failure(f"--output: {output}: {error.strerror}") from error
    samples = f"{result['samples']} samples of {result['seconds']} s"
    _print(f"{visible(samples)} are in {output}\n")


def _print_json(value: object) -> None:
    # ASCII, so no text in it controls a terminal.
    _print(f"{json.dumps(value, indent=2)}\n")


def _print(text: str) -> None:
    """Print a text; a terminal that lacks a character gets its number."""
    encoding = sys.stdout.encoding or "ascii"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()
