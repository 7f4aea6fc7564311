"""How often verdicts are right: the same server twice, and one that burns 5 % more CPU time.

    python -m loadtests.verdict.trials same --times 20
    python -m loadtests.verdict.trials slower --times 20
    python -m loadtests.verdict.trials same --times 20 --beside 4
    python -m loadtests.verdict.trials slower --times 20 --beside 4

Each pair is measured by `compare` as anybody does; `--beside` processes compute meanwhile.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from loadtests.clients.native import replay
from loadtests.clients.native.replay import Request
from loadtests.measure.cpu_affinity import cores
from loadtests.measure.resources import cpu_seconds
from loadtests.servers.application import OWN
from loadtests.servers.registry.given import Given
from loadtests.servers.running import Running

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


def main() -> int:
    """Runs the trials and tells the verdicts; 1 if one in twenty is wrong or more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pair", choices=["same", "slower"])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--beside", type=int, default=0, help="processes that compute meanwhile")
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
            begun, summary = time.monotonic(), Path(folder, f"{number}.json")
            words = ["compare", f"a={command(file, TURNS)}", f"b={command(file, turns)}"]
            words += ["--json", str(summary), "--output", str(Path(folder, f"{number}.jsonl"))]
            lab = [sys.executable, "-m", "loadtests", *words, *others]
            done = subprocess.run(lab, capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stderr)
                return 1
            found = json.loads(summary.read_text(encoding="utf-8"))
            said[found["verdict"]] += 1
            seconds = time.monotonic() - begun
            print(f"{number}: {seconds:.0f} s: {found['headline']}", flush=True)
    print(", ".join(f"{count} × {word}" for word, count in said.items()))
    wanted = "not to be told" if options.pair == "same" or options.beside else "slower"
    return int(said[wanted] < 0.95 * options.times)


if __name__ == "__main__":
    sys.exit(main())
