"""How often verdicts are right: the same server twice, and one that burns 5 % more CPU time.

    python -m loadtests.verdict.trials same --times 20
    python -m loadtests.verdict.trials slower --times 20
    python -m loadtests.verdict.trials same --times 20 --beside 4
    python -m loadtests.verdict.trials slower --times 20 --beside 4
    python -m loadtests.verdict.trials same --times 20 --by wrk

Each pair is measured by `compare` as anybody does; `--beside` processes compute meanwhile. `--by`
takes another program: it measures each of the pair once, for `--for` seconds, and who reads the two
rates of requests names a winner if they differ by more than the zone of `compare`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from loadtests.clients import external
from loadtests.clients.load import Job, Load
from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request
from loadtests.errors import LabError
from loadtests.measure.cpu_affinity import cores, pinned
from loadtests.measure.resources import cpu_seconds
from loadtests.servers.application import OWN
from loadtests.servers.registry.given import Given
from loadtests.servers.running import Running
from loadtests.stats.verdict import LESS, MORE, UNDECIDED, Ratio

APPLICATION = """\
import os

TURNS = int(os.environ["TURNS"])


def application(environ, start_response):
    for _ in range(TURNS):
        pass
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "13")])
    return [b"Hello, world!"]
"""
SERVE = (
    "env TURNS={turns} {python} -m poorhttp serve {file}:application --bind {{host}}:{{port}} "
    "--mode single --access-log off"
)
TURNS = 2_000
"""Of the loop of the usual application."""
SLOWER = 1.05
SECONDS = 5.0
"""For what a turn of the loop costs."""
WORDS = {LESS: "faster", MORE: "slower", UNDECIDED: UNDECIDED}


def command(file: Path, turns: int) -> str:
    """The server whose application makes so many turns of a loop."""
    return SERVE.format(turns=turns, file=file, python=sys.executable)


def cost(file: Path, turns: int) -> float:
    """CPU seconds of a request."""
    server_core, client_core = cores()
    server = Given("trial", "", command(file, turns), application=OWN, target="/")
    with Running(server, core=server_core) as one:
        replay.drive(one.port, 0.5, 8, [Request()], core=client_core)
        before = cpu_seconds(one.processes())
        seen = replay.drive(one.port, SECONDS, 8, [Request()], core=client_core)
        return (cpu_seconds(one.processes()) - before) / seen.answered


def more_turns(file: Path) -> int:
    """So many that a request takes SLOWER times as much CPU time."""
    few, many = cost(file, TURNS), cost(file, 3 * TURNS)
    return TURNS + round((SLOWER - 1) * few / ((many - few) / (2 * TURNS)))


def vegeta(job: Job, core: int | None) -> Load:
    """Does a job with vegeta, as fast as it is answered."""
    words = [*pinned(core), "vegeta"]
    attack = [*words, "attack", "-rate=0", f"-max-workers={job.connections}"]
    attack += [f"-duration={job.seconds:g}s", f"-connections={job.connections}"]
    done = subprocess.run(attack, input=f"GET {job.url}".encode(), capture_output=True, check=True)
    told = subprocess.run(
        [*words, "report", "-type=json"], input=done.stdout, capture_output=True, check=True
    )
    found = json.loads(told.stdout)
    return Load(round(found["success"] * found["requests"]), found["duration"] / 1e9, 0)


TOOLS = {"wrk": external.wrk, "ab": external.ab, "h2load": external.h2load, "vegeta": vegeta}


def rates(tool: str, seconds: float, file: Path, turns: Sequence[int]) -> list[float]:
    """Requests per second of each server, one after the other."""
    server_core, client_core = cores()
    found = []
    for number in turns:
        server = Given("trial", "", command(file, number), application=OWN, target="/")
        with Running(server, core=server_core) as one:
            job = Job(one.port, seconds, 8)
            found.append(TOOLS[tool](job, client_core).rate)
    return found


def read(before: float, after: float) -> str:
    """What who reads two rates takes for the verdict."""
    ratio = before / after
    return Ratio(ratio, ratio, ratio, 1).verdict()


def compared(file: Path, turns: int, number: int, others: Sequence[str]) -> tuple[str, str]:
    """The verdict of `compare`, and its first sentence."""
    summary = file.with_name(f"{number}.json")
    words = ["compare", f"a={command(file, TURNS)}", f"b={command(file, turns)}"]
    words += ["--json", str(summary), "--output", str(file.with_name(f"{number}.jsonl"))]
    lab = [sys.executable, "-m", "loadtests", *words, *others]
    done = subprocess.run(lab, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(done.stderr)
    found = json.loads(summary.read_text(encoding="utf-8"))
    return found["verdict"], found["headline"]


def main() -> int:
    """Runs the trials and tells the verdicts; 1 if one in twenty is wrong or more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pair", choices=["same", "slower"])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--beside", type=int, default=0, help="processes that compute meanwhile")
    parser.add_argument("--by", choices=["compare", *TOOLS], default="compare")
    told = "how long such a program measures each (default 10, as wrk does)"
    parser.add_argument("--for", dest="lasts", type=float, default=10.0, metavar="S", help=told)
    options, others = parser.parse_known_args()
    said: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="loadtests-") as folder, ExitStack() as stack:
        file = Path(folder, "app.py")
        file.write_text(APPLICATION, encoding="ascii")
        turns = more_turns(file) if options.pair == "slower" else TURNS
        print(f"turns: {TURNS} and {turns}", flush=True)
        for _ in range(options.beside):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        for number in range(1, options.times + 1):
            begun = time.monotonic()
            if options.by == "compare":
                word, told = compared(file, turns, number, others)
            else:
                first, second = rates(options.by, options.lasts, file, (TURNS, turns))
                word = WORDS[read(first, second)]
                told = f"{first:,.0f} and {second:,.0f} requests/s: {word}"
            said[word] += 1
            seconds = time.monotonic() - begun
            print(f"{number}: {seconds:.0f} s: {told}", flush=True)
    print(", ".join(f"{count} × {word}" for word, count in said.items()))
    wanted = "not to be told" if options.pair == "same" or options.beside else "slower"
    return int(said[wanted] < 0.95 * options.times)


if __name__ == "__main__":
    sys.exit(main())
