"""A client in C for TLS: handshakes, full and resumed, and answers on kept connections."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from loadtests.clients.load import Load
from loadtests.clients.native import compiled
from loadtests.clients.program import no_result, outcome, parse
from loadtests.errors import LabError

SOURCE = Path(__file__).with_name("tls.c")


class Negotiated(NamedTuple):
    """What server and client agreed on; the numbers of handshakes, and of those resumed."""

    protocol: str
    cipher: str
    handshakes: int
    resumed: int


def drive(
    port: int,
    seconds: float,
    connections: int,
    version: str,
    how: str,
    target: str,
    core: int | None,
) -> tuple[Load, Negotiated]:
    """Asks for a target; `version` is `plain`, `1.2` or `1.3`, `how` `full`, `resumed` or `keep`.

    Raises LabError if OpenSSL's headers are missing.
    """
    try:
        program = compiled.program(SOURCE, "ssl", "crypto")
    except LabError as error:
        raise LabError(f"{error}\n(OpenSSL's headers: Debian: apt install libssl-dev)") from None
    words = port, connections, f"{seconds:g}", version, how, target
    output, cpu_seconds = outcome([str(program), *map(str, words)], seconds, core)
    found = re.search(r"^negotiated (\S+) (\S+) (\d+) (\d+)$", output, re.MULTILINE)
    if found is None:
        raise no_result("the client", output)
    protocol, cipher, handshakes, resumed = found.groups()
    load = parse(output, cpu_seconds)
    return load, Negotiated(protocol, cipher, int(handshakes), int(resumed))
