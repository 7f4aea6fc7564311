"""Conformance of the server to RFC 9113 and 7541 by `h2spec`: `make h2spec`.

Runs all tests of h2spec, plain and with `--strict`, over TLS and without, in each mode, and prints
a table. Without TLS one test cannot pass: where HTTP/1.1 is spoken too, bytes that are no preface
are a request of HTTP/1.1, which is refused with 400, and h2spec wants the connection closed without
an answer. The exit code is 1 if another test fails.

Without `--program`, h2spec is built with Go: the newest version that Go's module proxy has. Later
versions of h2spec cannot be named there, because their module path lacks the major version.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.support.certificate import certificate
from tests.testkit.server import MODES, ROOT, Server

MODULE = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible"
TARGET = "tests/apps/echo.py"

#: The test that cannot pass without TLS, and what h2spec says of an answer in HTTP/1.1.
EXPECTED = ("http2/3.5", "Sends invalid connection preface")
OTHER_VERSION = "unexpected EOF"

#: Tests that an h2spec has at least.
LEAST = 145

#: Seconds that h2spec waits for a frame.
PATIENCE = "30"

WAYS = ("h2c", "h2c --strict", "TLS", "TLS --strict")


def built() -> Path:
    program = ROOT / "build" / "h2spec" / "h2spec"
    if program.exists():
        return program
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/go/bin"])
    go = shutil.which("go", path=path)
    if go is None:
        sys.exit("h2spec is written in Go: install Go, or name a program: make h2spec H2SPEC=PATH")
    print(f"builds {MODULE}", file=sys.stderr, flush=True)
    environment = {**os.environ, "GOBIN": str(program.parent)}
    subprocess.run((go, "install", MODULE), env=environment, check=True, timeout=1800)
    return program


def judged(report: Path, is_plain: bool) -> tuple[int, int, list[str]]:
    """How many tests passed, of how many, and those that failed though they can pass."""
    passed, count, failed = 0, 0, []
    for case in ET.parse(report).iter("testcase"):
        count += 1
        faults = [child.text or "" for child in case if child.tag != "system-out"]
        passed += not faults
        place = (case.get("package", ""), case.get("classname", ""))
        if faults and not (is_plain and place == EXPECTED and OTHER_VERSION in faults[0]):
            failed.append(f"{' '.join(place)}: {' '.join(faults[0].split())}")
    if count < LEAST:
        failed.append(f"only {count} tests")
    return passed, count, failed


def conform(program: Path, mode: str) -> tuple[list[str], list[str]]:
    """The cells of a mode, and the tests that failed."""
    cells, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        file, report = Path(folder, "pem"), Path(folder, "report.xml")
        certificate().write(file)
        options = ("--http2=on", "--tls-certificate", str(file))
        bind = ("127.0.0.1:0", "https://127.0.0.1:0")
        with Server(TARGET, mode, *options, bind=bind) as server:
            for way in WAYS:
                has_tls = way.startswith("TLS")
                port = str(server.port_of("https" if has_tls else "http"))
                words = [str(program), "--port", port, "--timeout", PATIENCE]
                words += ["--junit-report", str(report), *way.split()[1:]]
                words += ["--tls", "--insecure"] if has_tls else []
                report.unlink(missing_ok=True)
                subprocess.run(words, stdout=subprocess.DEVNULL, check=False, timeout=3600)
                passed, count, faults = judged(report, is_plain=not has_tls)
                cells.append(f"{passed} of {count}")
                failed += [f"{mode}, {way}: {fault}" for fault in faults]
    return cells, failed


def main() -> None:
    parser = argparse.ArgumentParser(prog="make h2spec", description=__doc__)
    parser.add_argument("--program", type=Path, help="another h2spec")
    parser.add_argument("modes", nargs="*", help=f"of {' '.join(MODES)}; all if none is named")
    arguments = parser.parse_args()
    program = arguments.program or built()
    failed = []
    print(f"| {'mode':<9} | " + " | ".join(f"{way:<12}" for way in WAYS) + " |")
    print("|---|" + "---|" * len(WAYS))
    for mode in arguments.modes or MODES:
        cells, faults = conform(program, mode)
        print(f"| {mode:<9} | " + " | ".join(f"{cell:<12}" for cell in cells) + " |", flush=True)
        failed += faults
    if failed:
        print("\n".join(failed))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
