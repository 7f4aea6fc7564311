"""Lines for StatsD, and the datagrams that carry them.

Counters are sent as changes, gauges as they are, and of histograms three quantiles, the number and
the sum of what has come since the last interval. Labels become parts of the name, or tags.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence

from poorhttp.config.address import Address
from poorhttp.plugins.monitor.derived.rates import quantile
from poorhttp.plugins.monitor.metrics import changes
from poorhttp.plugins.monitor.metrics.families import Family, Sample

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.metrics.changes import Numbers

#: Seconds between two sendings: the interval in which StatsD itself sums up.
INTERVAL = 10.0

#: Bytes of a datagram: what Ethernet takes with IPv6, and what a Unix socket takes easily.
UDP_SIZE = 1432
UNIX_SIZE = 8192

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def lines(
    metrics: Iterable[tuple[Family, Sequence[Sample]]],
    grown: Numbers,
    prefix: str,
    tags: Sequence[str] | None,
) -> Iterator[str]:
    """Return a line for each value.

    Args:
        metrics: all metrics.
        grown: how much counters and histograms have grown since the last interval.
        prefix: begins each name; may be empty.
        tags: appended to each line, and labels with them; `None`: labels become part of the name.
    """
    for family, samples in metrics:
        if family.deprecated or family.kind == "info":
            continue
        for sample in samples:
            name, suffix = _name(prefix, family.name, sample.labels, tags)
            if family.kind == "gauge":
                yield f"{name}:{_text(sample.number)}|g{suffix}"
                continue
            change = grown[changes.key(family, sample)]
            if family.kind == "counter":
                if change[0]:
                    yield f"{name}:{_text(change[0])}|c{suffix}"
                continue
            *counts, total = change
            for text, part in QUANTILES.items():
                yield f"{name}.{text}:{_text(quantile(counts, part) or 0.0)}|g{suffix}"
            if any(counts):
                yield f"{name}.count:{_text(sum(counts))}|c{suffix}"
                yield f"{name}.sum:{_text(total)}|c{suffix}"


def datagrams(those: Iterable[str], size: int) -> Iterator[bytes]:
    """Pack lines into datagrams of at most `size` bytes."""
    packed = b""
    for line in map(str.encode, those):
        if packed and len(packed) + 1 + len(line) > size:
            yield packed
            packed = b""
        packed = packed + b"\n" + line if packed else line
    if packed:
        yield packed


def send(address: Address, those: Iterable[str]) -> None:
    """Send lines; the name of the host is looked up each time, as its address may change.

    Raises:
        OSError: they cannot be sent. A receiver that is not there is often not noticed.
    """
    if address.kind == "unix":
        path = f"\0{address.path[1:]}" if address.abstract else address.path
        _send(socket.AF_UNIX, path, datagrams(those, UNIX_SIZE))
    else:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
        family, _, _, _, where = found[0]
        _send(family, where, datagrams(those, UDP_SIZE))


def _send(family: int, where: object, packed: Iterable[bytes]) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        # A receiver at a Unix socket that reads nothing must not stop the sender.
        sock.settimeout(1)
        sock.connect(where)  # type: ignore[arg-type]
        for datagram in packed:
            sock.send(datagram)


def _name(
    prefix: str, name: str, labels: Mapping[str, str], tags: Sequence[str] | None
) -> tuple[str, str]:
    """Return the name of a metric, and what follows the type on its line."""
    if tags is not None:
        own = [f"{label}:{_safe(text)}" for label, text in labels.items()]
        suffix = ",".join([*own, *tags])
        return f"{prefix}{name}", f"|#{suffix}" if suffix else ""
    before = [_safe(text, "") for label, text in labels.items() if label == "service"]
    behind = [_safe(text, "") for label, text in labels.items() if label != "service"]
    return prefix + ".".join([*before, name, *behind]), ""


def _safe(text: str, also: str = "./") -> str:
    """Return `text` with letters, digits, hyphens, underscores and the characters of `also`."""
    return "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in f"-_{also}") else "_"
        for letter in text
    )


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}"
