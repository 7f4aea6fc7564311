"""Fuzzing of the crates that turn bytes into bytes: `make fuzz`.

Each target of `core/fuzz` runs under libFuzzer for a while; the target `h11` compares our parser
with another (tests/support/h11_agreement.py) over inputs that are bred from everything known; the
target `admin` sends made-up requests to a real server (tests/support/admin_requests.py). What
breaks a promise is left in `core/fuzz/findings`. `--keep` minimises what was found interesting into
`core/fuzz/corpus`, which every `make test` replays.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.support.admin_requests import send_made_up
from tests.support.h11_agreement import Disagreement, Ours, compare, inputs, theirs
from tests.testkit.client import HANG, BadResponse, Connection
from tests.testkit.process import children
from tests.testkit.server import Server

ROOT = Path(__file__).parent.parent
FUZZ = ROOT / "core" / "fuzz"
WORK = ROOT / "core" / "target" / "fuzz"
FINDINGS = FUZZ / "findings"
TARGETS = (
    *("head", "body", "connection", "response", "conditional_fields", "forwarded"),
    *("proxy_protocol", "gateway", "tls_session", "streamed", "upgrade", "websocket"),
    *("compress", "compressed_fields", "hpack", "http2", "http2_calls", "http2_session"),
)
RUST = (sys.executable, str(ROOT / "core" / "bootstrap.py"), "run")
# Instrumentation and optimisation of the whole program at once do not go together. A backtrace
# takes more memory than a target may.
ENVIRONMENT = {
    **os.environ,
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_STRIP": "none",
    "ASAN_OPTIONS": "detect_odr_violation=0",
    "RUST_BACKTRACE": "0",
}
# What inputs are bred with; ~ is a line end.
TOKENS = (
    "GET / HTTP/1.1~Host: a~~|POST / HTTP/1.1~|OPTIONS|CONNECT|TRACE|http://a|*|#|?|%00|%2e"
    "| HTTP/1.0~|HTTP/1.1|HTTP/2.0|Host: a~|Host: |Content-Length: 5~|Content-Length: 0~"
    "|Transfer-Encoding: chunked~|chunked|identity|gzip, |Connection: close~|Upgrade: x~"
    "|Connection: keep-alive~|Expect: 100-continue~|X-A: b~| c~|hello|5~hello~|0~~|0~"
    '|a~0123456789~|;b=c|00000000000000000|+|-|0x|_|,|:|=|"|~|~~|\r|\n| |\t|\0|\v|\f|\x7f'
    "|\x85|\xa0|\xff|HTTP/1.2|https://a/|Content-Type: a~|Transfer-Encoding: , chunked,~|5 ;b~"
)
NEEDED = """
Fuzzing needs a nightly Rust with cargo-fuzz, and it could not be installed. With rustup:
    rustup toolchain install nightly --profile minimal
    cargo install cargo-fuzz --locked
Everything else of the project is content with a stable one.
"""


@dataclass(frozen=True)
class Result:
    """What came of one target."""

    target: str
    executions: int
    seconds: float
    corpus: int
    findings: tuple[Path, ...]

    def __str__(self) -> str:
        return (
            f"{self.target:<12}{self.executions:>12,}{self.seconds:>9.0f}{self.corpus:>9,}"
            f"{len(self.findings):>10}"
        )


def rust(*command: str) -> None:
    """Run a command with Rust on its path; CalledProcessError or TimeoutExpired."""
    subprocess.run((*RUST, *command), env=ENVIRONMENT, check=True, timeout=1_800)


def prepare(targets: list[str]) -> None:
    """Install what is missing, build the targets, lay out what is known."""
    fuzz = ("cargo", "+nightly", "fuzz")

    def runs(*command: str) -> bool:
        known = (*RUST, *command, "--version")
        return not subprocess.run(known, capture_output=True, check=False, timeout=HANG).returncode

    if not runs(*fuzz):
        try:
            if not runs("rustc", "+nightly"):
                rust("rustup", "toolchain", "install", "nightly", "--profile", "minimal")
            rust("cargo", "install", "--quiet", "--locked", "cargo-fuzz")
        except (subprocess.SubprocessError, OSError) as error:
            sys.exit(f"{NEEDED}\n{error}")
    for target in targets:
        place = ("--fuzz-dir", str(FUZZ), "--target-dir", str(WORK))
        rust(*fuzz, "build", *place, "--features", "libfuzzer", target)
    corpus("unpack", WORK / "corpus")


def corpus(what: str, folder: Path) -> None:
    """Let `core/fuzz/src/bin/corpus.rs` read or write."""
    manifest = ("--manifest-path", str(ROOT / "core" / "Cargo.toml"))
    program = ("-p", "poorhttp-fuzz", "--bin", "corpus")
    rust("cargo", "run", "--quiet", *manifest, *program, what, str(folder))


def binary(target: str) -> Path:
    """The program that cargo has built for a target."""
    return next(WORK.glob(f"*/release/{target}"))


def with_libfuzzer(target: str, seconds: float) -> Result:
    """Run one target for some time, or until it breaks a promise."""
    folder = WORK / "corpus" / target
    log = WORK / f"{target}.log"
    before = set(FINDINGS.iterdir())
    options = {
        "artifact_prefix": f"{FINDINGS / target}-",
        "max_total_time": max(int(seconds), 1),
        "max_len": 1024,
        # The tables of an encoder are larger than anything else may be.
        "malloc_limit_mb": 64 if target == "compress" else 1,
        "rss_limit_mb": 1024,
        "timeout": 10,
        "print_final_stats": 1,
    }
    words = [f"-{name}={value}" for name, value in options.items()]
    command = [str(binary(target)), str(folder), *words]
    start = time.monotonic()
    with log.open("wb") as output:
        subprocess.run(command, env=ENVIRONMENT, stderr=output, check=False, timeout=seconds + 600)
    took = time.monotonic() - start
    text = log.read_text("utf-8", "replace")
    executions = re.search(r"stat::number_of_executed_units: (\d+)", text)
    new = sorted(set(FINDINGS.iterdir()) - before)
    findings = tuple(path for path in new if path.name.startswith(f"{target}-"))
    for path in findings:
        shutil.copy(log, path.with_name(path.name + ".log"))
        sys.stderr.write("".join(re.findall(r"panicked at .*\n.*\n.*\n.*\n", text)))
    if executions is None:
        sys.exit(f"{target} did not run: see {log}")
    return Result(target, int(executions[1]), took, len(list(folder.iterdir())), findings)


class Breeder:
    """Makes new inputs of known ones."""

    LONGEST = 2_000

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tokens = TOKENS.replace("~", "\r\n").encode("latin-1").split(b"|")
        self.known = sorted({octets for octets in inputs() if len(octets) <= self.LONGEST})

    def breed(self) -> bytes:
        """One input: a known one, or two, changed in a few places."""
        octets = bytearray(self.random.choice(self.known))
        changes: list[Callable[[bytearray], None]] = [
            self.change, self.insert, self.delete, self.repeat, self.splice, self.append,
        ]  # fmt: skip
        for _ in range(self.random.choice((1, 1, 2, 3, 5))):
            self.random.choice(changes)(octets)
        return bytes(octets[: 2 * self.LONGEST])

    def span(self, octets: bytearray) -> slice:
        """Some octets, or a whole line."""
        start = self.random.randint(0, len(octets))
        if self.random.random() < 0.5:
            start = octets.rfind(b"\n", 0, start) + 1
            return slice(start, octets.find(b"\n", start) + 1 or len(octets))
        return slice(start, start + self.random.randint(1, 8))

    def change(self, octets: bytearray) -> None:
        """Another octet in place of one."""
        if octets:
            octets[self.random.randrange(len(octets))] = self.random.randrange(256)

    def insert(self, octets: bytearray) -> None:
        at = self.random.randint(0, len(octets))
        octets[at:at] = self.random.choice(self.tokens)

    def delete(self, octets: bytearray) -> None:
        del octets[self.span(octets)]

    def repeat(self, octets: bytearray) -> None:
        """A part stands somewhere else as well."""
        part = octets[self.span(octets)]
        at = self.random.randint(0, len(octets))
        octets[at:at] = part

    def splice(self, octets: bytearray) -> None:
        """A part of another input."""
        other = bytearray(self.random.choice(self.known))
        octets[self.span(octets)] = other[self.span(other)]

    def append(self, octets: bytearray) -> None:
        """Another input behind this one, as if it were pipelined."""
        octets += self.random.choice(self.known)


def with_h11(seconds: float) -> Result:
    """Compare the two parsers for some time. A disagreement does not end it."""
    seed = time.time_ns()
    breeder = Breeder(seed)
    executions = 0
    findings: dict[Path, str] = {}
    start = time.monotonic()
    with Ours() as ours:
        while time.monotonic() - start < seconds and len(findings) < 20:
            octets = breeder.breed()
            executions += 1
            try:
                compare(octets, ours.read(octets), theirs(octets))
            except Disagreement as error:
                path = FINDINGS / f"h11-{hashlib.sha1(octets).hexdigest()}"
                path.write_bytes(octets)
                path.with_name(path.name + ".log").write_text(f"{error}\n")
                findings[path] = str(error)
                sys.stderr.write(f"{error}\n")
    took = time.monotonic() - start
    return Result("h11", executions, took, len(breeder.known), tuple(findings))


def with_admin(seconds: float) -> Result:
    """Send made-up requests to the address `admin` for some time, or until one is wrong."""
    chance = random.Random(time.time_ns())
    executions = 0
    findings: tuple[Path, ...] = ()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/admin"
        with Server("tests/apps/gate.py", "threading", "--admin", f"unix:{path}") as server:
            before = children(server.process.pid)
            try:
                while time.monotonic() - start < seconds:
                    executions += 1
                    send_made_up(chance, lambda: Connection(path))
                assert children(server.process.pid) == before, "a process has ended"
                assert "by an operator" not in server.log(), "a command was executed"
            except (AssertionError, BadResponse) as error:
                findings = (FINDINGS / f"admin-{time.time_ns()}.log",)
                findings[0].write_text(f"{error}\n{server.log()}")
                server.kill()
                sys.stderr.write(f"{error}\n")
    return Result("admin", executions, time.monotonic() - start, 0, findings)


#: Targets that are no programs of `core/fuzz`.
OWN = {"h11": with_h11, "admin": with_admin}


def run(target: str, seconds: float) -> Result:
    result = OWN[target](seconds) if target in OWN else with_libfuzzer(target, seconds)
    print(result, flush=True)
    return result


def keep() -> None:
    """Of what was found interesting, the least that reaches the same places is kept."""
    prepare(list(TARGETS))
    merged = WORK / "merged"
    shutil.rmtree(merged, ignore_errors=True)
    for target in TARGETS:
        # The protocol cases are replayed anyway: only what adds to them is wanted.
        folder = merged / target
        folder.mkdir(parents=True)
        for path in (WORK / "corpus" / target).glob("case-*"):
            shutil.copy(path, folder)
        found = WORK / "corpus" / target
        command = [str(binary(target)), "-merge=1", "-use_counters=0", str(folder), str(found)]
        subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True, timeout=1_800)
    corpus("pack", merged)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once")
    parser.add_argument("--keep", action="store_true", help="minimise the corpus instead")
    parser.add_argument(
        "targets", nargs="*", help=f"of {' '.join([*TARGETS, *OWN])}; all if none is named"
    )
    arguments = parser.parse_args()
    FINDINGS.mkdir(exist_ok=True)
    if arguments.keep:
        keep()
        return
    targets = arguments.targets or [*TARGETS, *OWN]
    if programs := [target for target in targets if target not in OWN]:
        prepare(programs)
    head = f"{'target':<12}{'executions':>12}{'seconds':>9}{'corpus':>9}{'findings':>10}"
    print(head, flush=True)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        results = list(pool.map(lambda target: run(target, arguments.seconds), targets))
    found = [path for result in results for path in result.findings]
    executions = sum(result.executions for result in results)
    seconds = sum(result.seconds for result in results)
    verdict = f"{len(found)} findings in {FINDINGS.relative_to(ROOT)}" if found else "no finding"
    print(f"{executions:,} executions in {seconds:,.0f} seconds: {verdict}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
