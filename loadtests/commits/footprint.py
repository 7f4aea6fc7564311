"""The command `footprint`: memory of each mode on two commits, of a bare interpreter and of peers.

Each is alone when it is measured: pages of an interpreter that other processes map too would count
in part only. So this process is replaced by a shell meanwhile, and other processes that map the
same interpreter are counted and named.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from loadtests import programs
from loadtests.clients.connection import Connection, request_bytes
from loadtests.commits import builds
from loadtests.errors import ServerFailure
from loadtests.measure.resources import parse_smaps_rollup
from loadtests.reporting.model import MIB
from loadtests.servers.registry import SERVERS, Server, missing
from loadtests.servers.registry.commands import ours
from loadtests.servers.registry.listed import LISTED
from loadtests.servers.registry.server import chosen
from loadtests.servers.running import Running
from loadtests.studies.bench.scenarios import LIGHT

SCRIPT = Path(__file__).with_name("footprint.sh")
MODES = (
    ours("single", "", "single"),
    ours("forking, 4 workers", "", "forking --workers 4"),
    ours("threading", "", "threading"),
    ours("gevent", "", "gevent"),
)
PEERS = (
    *chosen(SERVERS, ("bjoern", "fastwsgi", "granian", "waitress 8 threads")),
    *chosen(SERVERS, ("gunicorn gthread 8", "gunicorn sync 4", "gunicorn gevent")),
    LISTED["uWSGI 2 processes"].varied("ses 2", "ses 4", name="uWSGI 4 processes"),
)
BARE = "bare interpreter"
AT = " @ "
"""Between the name of a mode and that of a build."""
FIELDS = ("Pss", "Pss_Anon")
START_SECONDS = 30.0


def add(commands: Any) -> None:
    """Adds the command, and the two halves of it that the shell calls."""
    words = "memory of each mode on two commits, of a bare interpreter and of other servers"
    parser = commands.add_parser("footprint", help=words)
    builds.add_arguments(parser, rounds=3, counts="median")
    parser.set_defaults(run=run)
    ask = commands.add_parser("footprint-ask")
    ask.add_argument("port", type=int)
    ask.set_defaults(run=lambda options, _: await_answer(options.port))
    tell = commands.add_parser("footprint-tell")
    tell.add_argument("folder", type=Path)
    tell.add_argument("base")
    tell.set_defaults(run=lambda options, _: print_table(options.folder, options.base))


def run(options: argparse.Namespace, _: str) -> int:
    """Writes the plan, and becomes the shell that follows it and then prints the table."""
    programs.path("ps")
    pair = builds.chosen(options)
    folder = Path(tempfile.mkdtemp(prefix="footprint-"))
    folder.chmod(0o755)
    lines: list[tuple[str, ...]] = []
    for place, mode in enumerate(MODES):
        for build in pair[:: -1 if place % 2 else 1]:
            path = os.pathsep.join([str(build.folder), str(LIGHT.path)])
            lines += _planned(mode, f"{mode.name}{AT}{build.name}", path)
    sleeping = shlex.join([sys.executable, "-c", "import time; time.sleep(600)"])
    lines.append(("0", BARE, "/", "/", sleeping))
    for peer in PEERS:
        lines += _planned(peer, peer.name, str(LIGHT.path))
    plan = folder / "plan"
    text = "".join("\t".join((name, port, *rest)) + "\n" for port, name, *rest in lines)
    plan.write_text(text, encoding="utf-8")
    again = [sys.executable, "-m", "loadtests"]
    script = ["sh", str(SCRIPT), str(plan), str(folder / "raw"), str(options.rounds)]
    script.append(shlex.join([*again, "footprint-ask"]))
    others = mapping_processes()
    if others:
        print(f"{others} other processes map {sys.executable}: PSS is too low", file=sys.stderr)
    end = shlex.join([*again, "footprint-tell", str(folder), pair[0].name])
    sys.stderr.flush()
    os.execv("/bin/sh", ["sh", "-c", f"{shlex.join(script)}; exec {end}"])


def _planned(server: Server, name: str, path: str) -> Iterator[tuple[str, ...]]:
    """The line of the plan for a server, unless it cannot run here."""
    if why := missing(server):
        print(f"{name} is left out: {why}", file=sys.stderr)
        return
    running = Running(server, LIGHT)
    yield str(running.port), name, str(LIGHT.path), path, shlex.join(running.command)


def mapping_processes() -> int:
    """How many other processes map the file of this interpreter's code."""
    found = 0
    code = os.path.realpath(sys.executable)
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if int(process) != os.getpid() and os.readlink(f"/proc/{process}/exe") == code:
                found += 1
    return found


def await_answer(port: int) -> int:
    """Waits for ten answers of the server at a port; 1 if none comes."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with suppress(OSError, ServerFailure):
            for _ in range(10):
                with Connection(port, START_SECONDS) as connection:
                    connection.ask(request_bytes("/"), 1)
            return 0
        time.sleep(0.05)
    return 1


def print_table(folder: Path, base: str) -> int:
    """Prints the medians of what the shell wrote down, and removes the folder."""
    text = (folder / "raw").read_text(encoding="utf-8")
    shutil.rmtree(folder)
    rounds: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for part in text.split("# ")[1:]:
        head, _, rollup = part.partition("\n")
        number_of_round, name = head.split("\t")
        rounds[name, number_of_round].update(parse_smaps_rollup(rollup))
        rounds[name, number_of_round]["processes"] += 1

    def median(name: str, field: str) -> float:
        return statistics.median(one[field] for (of, _), one in rounds.items() if of == name)

    names = list(dict.fromkeys(name for name, _ in rounds))
    print(f"{'':44} {'processes':>9} {'PSS':>8} {'Pss_Anon':>8}   ratios")
    for name in names:
        line = f"{name:44} {median(name, 'processes'):9.0f} "
        line += " ".join(f"{median(name, field) * MIB:8.2f}" for field in FIELDS)
        mode, _, build = name.partition(AT)
        before = f"{mode}{AT}{base}"
        if build and build != base and before in names:
            ratios = [median(name, one) / median(before, one) for one in FIELDS]
            line += "   " + " ".join(f"{ratio:.3f}" for ratio in ratios)
        print(line)
    print("MiB, medians; each was measured alone, idle after ten answers")
    return 0
