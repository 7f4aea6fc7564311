"""Records which functions a request of a kept-alive connection runs through: `make request-path`.

A server of a debug build answers requests of one connection under gdb, which writes each
function of the crates that is called (`tests.support.request_recorder`); the interpreter's profile
function adds those of Python. The record decides which files are on the way, in which order, and
that each function named is called; what the page says of a file stays. Files without a row are
listed below the table. Below them stands how often a room is entered again: by a call from another
room beyond the first on the way to the application and the first on the way back. Calls that return
at once are not counted: what they reach in other rooms calls nothing more.
"""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.testkit.client import HANG
from tests.testkit.server import ROOT, environment

PAGE = ROOT / "docs/internals/request.md"
TARGET = ROOT / "core/target/request-path"
RECORDER = ROOT / "tests/support/request_recorder.py"

#: Of our crates nothing is inlined. Others stay as they are: they are not recorded.
BUILD = (
    *("cargo", "build", "--manifest-path", str(ROOT / "core/Cargo.toml"), "-p", "poorhttp-python"),
    *("--target-dir", str(TARGET), "--config", "profile.dev.opt-level=0"),
    *("--config", 'profile.dev.package."*".opt-level=1'),
)

#: Seconds for the build, the first of which compiles all crates.
BUILD_TIMEOUT = 3600

#: Run in the server: writes each function of ours that Python calls, or that calls one of Rust.
PROFILE = """
import os, sys
record = os.open(os.environ["RECORD_TO"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
here, root = os.environ["PYTHONPATH"] + "/", os.environ["RECORD_ROOT"] + "/"
def profile(frame, event, argument):
    path = frame.f_code.co_filename
    if event in ("call", "c_call") and path.startswith((here, root + "apps/")):
        name = path.removeprefix(here).removeprefix(root)
        os.write(record, f"{name} {frame.f_code.co_name}\\n".encode())
sys.setprofile(profile)
from poorhttp.cli import main
sys.exit(main(sys.argv[1:]))
"""

#: File and function.
Call = tuple[str, str]

#: The rooms whose entries are counted: those through which a request goes.
ROOMS = ("event_loop", "scheduler", "connection", "http", "handlers", "exchange", "python")

WAIT = ("core/reactor/src/sys/poller.rs", "wait")

#: A row of the page: step, file, functions, what the file does there.
ROW = re.compile(r"^\| (\d+|[a-z]) \| `([^`|]+)` \| ([^|]+) \| (.*) \|\n?", re.MULTILINE)

#: The first step of each table.
FIRST = (ord("a"), 1, ord("f"))

#: Where the page refers to steps.
REFERENCES = (
    *(r"^\| \d+: ", r"\bBetween \w+ and \w+ ", r"\bsteps \d+ and \d+", r"polls again \(a\)"),
)


def record() -> list[tuple[Call, int]]:
    """Serve requests of a connection under gdb; each call in order. The third is looked at.

    Returns:
        File and function, and the address of the stack; 0 for functions of Python.
    """
    interpreter = {"PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    subprocess.run(BUILD, check=True, env={**os.environ, **interpreter}, timeout=BUILD_TIMEOUT)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "poorhttp")
        shutil.copytree(ROOT / "poorhttp", package, ignore=shutil.ignore_patterns("*.so"))
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        shutil.copy(TARGET / "debug/lib_core.so", package / f"_core{suffix}")
        to, log = Path(folder, "record"), Path(folder, "log")
        functions = Path(folder, "functions")
        functions.write_text(
            "".join(f"{each}\n" for each in functions_of(TARGET / "debug/lib_core.so"))
        )
        to.touch()
        with log.open("wb") as output:
            server = subprocess.Popen(
                (
                    *("gdb", "-nx", "-batch", "-x", str(RECORDER), "--args"),
                    *(sys.executable, "-c", PROFILE, "serve", f"dispatch:{ROOT}/apps/lightheavy"),
                    *("--mode", "single", "--supervisor", "off", "--bind", f"unix:{folder}/socket"),
                    *("--access-log", f"{folder}/access", "--pidfile", f"{folder}/pid"),
                ),
                stdout=output,
                stderr=output,
                cwd=folder,
                env=environment(
                    {
                        "PYTHONPATH": folder,
                        "RECORD_TO": str(to),
                        "RECORD_FUNCTIONS": str(functions),
                        "RECORD_ROOT": str(ROOT),
                    }
                ),
            )
        try:
            while server.poll() is None and b"listening on" not in log.read_bytes():
                time.sleep(0.2)
            client = http.client.HTTPConnection("localhost")
            client.sock = socket.socket(socket.AF_UNIX)
            client.sock.connect(f"{folder}/socket")
            for _ in range(4):
                while b"sys/poller.rs wait " not in to.read_bytes().rpartition(b" transmit")[2]:
                    time.sleep(0.01)
                client.request("GET", "/light")
                client.getresponse().read()
            os.kill(int(Path(folder, "pid").read_text()), signal.SIGTERM)
            server.wait(HANG)
        except OSError as error:
            raise SystemExit(f"{log.read_text(encoding='utf-8')}{error!r}") from error
        finally:
            server.kill()
            server.wait(HANG)
        lines = to.read_text(encoding="utf-8").splitlines()
    calls = [f"{line} 0".split(" ") for line in lines]
    return [((each[0], each[1]), int(each[2])) for each in calls]


def functions_of(extension: Path) -> Iterator[str]:
    """Address, file and name of each function of the crates; closures are left out."""
    symbols = subprocess.run(
        ("nm", "--defined-only", extension), capture_output=True, check=True, timeout=HANG
    )
    found = re.findall(rb"^(\w+) [tT] .*(?:poorhttp|5_core)", symbols.stdout, re.MULTILINE)
    places = subprocess.run(
        ("addr2line", "-e", extension),
        input=b"\n".join(found),
        capture_output=True,
        check=True,
        timeout=HANG,
    )
    for address, place in zip(found, places.stdout.decode().splitlines(), strict=True):
        match = re.search(r"(\w+/src/[\w/]+\.rs):(\d+)", place)
        if match is None or not (ROOT / "core" / match[1]).is_file():
            continue
        lines = (ROOT / "core" / match[1]).read_text(encoding="utf-8").splitlines()
        name = re.search(r"\bfn (\w+)", lines[int(match[2]) - 1])
        if name is not None:
            yield f"{address.decode()} core/{match[1]} {name[1]}"


def room(file: str) -> str:
    """The room of a file; of a crate besides the reactor, the crate."""
    match = re.match(r"core/(\w+)/src/(\w+)", file)
    if match is None:
        return "application" if file.startswith("apps/") else "python"
    return match[2] if match[1] == "reactor" else match[1]


def entries(calls: list[tuple[Call, int]]) -> list[tuple[str, Call, Call | None] | None]:
    """For each call the room that it enters from another: room, function, caller; or nothing.

    What Python calls is called by nobody.
    """
    found: list[tuple[str, Call, Call | None] | None] = []
    open_calls: list[tuple[Call, int]] = []
    for call, stack in calls:
        found.append(None)
        if not stack:
            continue
        while open_calls and open_calls[-1][1] <= stack:
            open_calls.pop()
        caller = open_calls[-1][0] if open_calls else None
        entered = room(call[0])
        if entered in ROOMS and entered != (room(caller[0]) if caller else "python"):
            found[-1] = (entered, call, caller)
        open_calls.append((call, stack))
    return found


def goes_on(calls: list[tuple[Call, int]]) -> list[bool]:
    """Whether each call that enters a room goes on from there: what does not returns at once.

    It goes on if it enters another room, and calls something more from that one.
    """
    entered = entries(calls)
    found = [False] * len(calls)
    open_calls: list[int] = []
    for place, (_, stack) in enumerate(calls):
        if not stack:
            continue
        while open_calls and calls[open_calls[-1]][1] <= stack:
            open_calls.pop()
        last = max((at for at, each in enumerate(open_calls) if entered[each]), default=0)
        for each in open_calls[:last]:
            found[each] = True
        open_calls.append(place)
    return found


def entered_again(calls: list[tuple[Call, int]]) -> dict[str, list[int]]:
    """How often the third request enters rooms again: before the application, and behind it.

    Calls that return at once are not counted: one that asks a room for a value does not
    leave the way.
    """
    start, end = third(calls)
    applied = next(place for place in range(start, end) if calls[place][0][1] == "__call__")
    entered = [
        each if on else None for each, on in zip(entries(calls), goes_on(calls), strict=True)
    ]
    ways = (entered[start:applied], entered[applied:end])
    counted = [Counter(each[0] for each in way if each) for way in ways]
    return {each: [max(0, count[each] - 1) for count in counted] for each in ROOMS}


def third(calls: list[tuple[Call, int]]) -> tuple[int, int]:
    """Where the calls of the third request are, whose head is the same as that of the second."""
    waits = [place for place, (call, _) in enumerate(calls) if call == WAIT]
    return [
        (left, right)
        for left, right in pairwise(waits)
        if any(call[1].startswith("transmit") for call, _ in calls[left:right])
    ][2]


def in_three(calls: list[Call]) -> list[list[Call]]:
    """The calls of the third request: before its bytes are read, up to the answer, after it."""
    start, end = third([(call, 0) for call in calls])
    way = calls[start:end]
    read = next(
        place
        for place, (file, name) in enumerate(way)
        if file.endswith("event_loop/advance.rs") or name == "receive"
    )
    sent = max(place for place, (_, name) in enumerate(way) if name.startswith("transmit"))
    after = next(place for place in range(sent, len(way)) if "/log" in way[place][0])
    return [way[:read], way[read:after], way[after:]]


def rewritten(page: str, calls: list[Call]) -> str:
    """The page with the rows of its first three tables as recorded, and their numbers elsewhere."""
    head, *sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    numbers: dict[str, str] = {}
    named = set(re.findall(r"`((?:core|poorhttp)/[\w/]+\.\w+)`", page))
    more: dict[str, list[str]] = {}
    for place, part in enumerate(in_three(calls)):
        called: dict[str, list[str]] = {}
        for file, name in part:
            if name not in called.setdefault(file, []):
                called[file].append(name)
        rows = {file: (old, names, text) for old, file, names, text in ROW.findall(sections[place])}
        for file in rows.keys() - called.keys():
            print(f"{file} is not on the way any more: its row goes", file=sys.stderr)
        # Each file stands where the first of its functions is called that the page names.
        on_way: dict[str, list[str]] = {}
        for file, name in part:
            named_here = rows[file][1] if file in rows else ""
            any_named = any(f"`{each}`" in named_here for each in called[file])
            if file in rows and (f"`{name}`" in named_here or not any_named):
                if name not in on_way.setdefault(file, []):
                    on_way[file].append(name)
            elif file not in named and not file.startswith("apps/"):
                more.setdefault(file, []).append(name)
        table: list[str] = []
        for file, functions in on_way.items():
            old, _, text = rows[file]
            step = FIRST[place] + len(table)
            new = str(step) if place == 1 else chr(step)
            numbers[old] = new
            names = ", ".join(f"`{name}`" for name in functions)
            table.append(f"| {new} | `{file}` | {names} | {text} |\n")
        start = ROW.search(sections[place])
        end = max(found.end() for found in ROW.finditer(sections[place]))
        if start is not None:
            text = sections[place]
            sections[place] = text[: start.start()] + "".join(table) + text[end:]
    listed = "; ".join(
        f"`{file.removeprefix('core/')}` {', '.join(f'`{name}`' for name in dict.fromkeys(names))}"
        for file, names in sorted(more.items())
    )
    count = f"In {len(more)} more files, small functions are called: {listed}.\n"
    sections[1] = re.sub(
        r"^In \w+ more files,.*?\n(?=\n)", lambda _: count, sections[1], flags=re.M | re.S
    )
    result: str = head + "".join(sections)
    for pattern in REFERENCES:
        result = re.sub(
            pattern, lambda found: renumbered(str(found[0]), numbers), result, flags=re.MULTILINE
        )
    return result


def renumbered(text: str, numbers: dict[str, str]) -> str:
    """A reference to steps with their new numbers."""
    return re.sub(r"\b(\d+|[a-i])\b", lambda found: numbers.get(str(found[0]), str(found[0])), text)


def main() -> None:
    """Record, and write the page; `--entries`: print each call from one room to another."""
    page = PAGE.read_text(encoding="utf-8")
    recorded = record()
    calls = [call for call, _ in recorded]
    if "--entries" in sys.argv:
        start, end = third(recorded)
        for each in entries(recorded)[start:end]:
            if each is not None:
                entered, (file, name), caller = each
                print(f"{entered:11} {file} {name}, by {' '.join(caller) if caller else 'Python'}")
    again = entered_again(recorded)
    PAGE.write_text(with_entries(rewritten(page, calls), again), encoding="utf-8")


def with_entries(page: str, again: dict[str, list[int]]) -> str:
    """The page with the sentence about rooms that are entered again."""
    total = sum(map(sum, again.values()))
    listed = ", ".join(
        f"`{each}` {before} and {behind}" for each, (before, behind) in again.items()
    )
    sentence = (
        f"Rooms are entered again {total} times, by a call from another room beyond the first on "
        "the way to the application and beyond the first on the way back. Calls that return at "
        f"once are not counted: what they reach in other rooms calls nothing more. "
        f"Each room: {listed}.\n"
    )
    return re.sub(
        r"^Rooms are entered again .*?\n(?=\n)", lambda _: sentence, page, flags=re.M | re.S
    )


if __name__ == "__main__":
    main()
