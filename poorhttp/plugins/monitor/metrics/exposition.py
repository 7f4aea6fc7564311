"""The text formats of Prometheus (version 0.0.4) and OpenMetrics (1.0.0)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from poorhttp.plugins.monitor.admin.model import BOUNDS
from poorhttp.plugins.monitor.metrics.families import PREFIX, WORKER, collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Histogram, Status

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

#: What is special in the value of a label, besides line ends, which `printable` has replaced.
ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"'})

#: Labels of the buckets of a histogram. `1.0` and not `1`: the same in both formats, so that a
#: scraper that changes the format goes on with the same series.
BUCKETS = (*map(repr, BOUNDS), "+Inf")


def render(status: Status, accept: str) -> tuple[str, str]:
    """Return content type and text of the format that a scraper wants.

    Args:
        status: the status document.
        accept: the header `Accept`; OpenMetrics is chosen if that names it.
    """
    if wants_openmetrics(accept):
        return OPENMETRICS, openmetrics(status)
    return PROMETHEUS, prometheus(status)


def prometheus(status: Status) -> str:
    """Return the text format of Prometheus."""
    lines = []
    for family, samples in collect(status):
        name = family.full_name
        kind = "gauge" if family.kind == "info" else family.kind
        lines += [f"# HELP {name} {family.description}", f"# TYPE {name} {kind}"]
        for sample in samples:
            if family.kind == "histogram":
                lines += _histogram(name, sample.labels, sample.durations)
            else:
                lines.append(_line(name, sample.labels, sample.number))
    return "\n".join(lines) + "\n"


def openmetrics(status: Status) -> str:
    """Return the format of OpenMetrics."""
    lines = []
    for family, samples in collect(status):
        name = f"{PREFIX}{family.name}"
        if family.kind == "info":
            name = name.removesuffix("_info")
        lines.append(f"# TYPE {name} {family.kind}")
        if family.unit:
            lines.append(f"# UNIT {name} {family.unit}")
        lines.append(f"# HELP {name} {family.description}")
        for sample in samples:
            if family.kind == "histogram":
                lines += _histogram(name, sample.labels, sample.durations)
            else:
                suffix = {"counter": "_total", "info": "_info"}.get(family.kind, "")
                lines.append(_line(f"{name}{suffix}", sample.labels, sample.number))
            # All others count since `start_time_seconds`.
            if family.kind == "counter" and family in WORKER:
                lines.append(_line(f"{name}_created", sample.labels, round(sample.begun, 1)))
    return "\n".join([*lines, "# EOF\n"])


def wants_openmetrics(accept: str) -> bool:
    """Whether `Accept` (RFC 9110 section 12.5.1) prefers OpenMetrics to the format of Prometheus.

    Only what names it does: a browser that takes everything gets plain text.
    """
    qualities = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for media_range in accept.lower().split(","):
        name, *parameters = (part.strip() for part in media_range.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        if name in qualities and given.get("version", "1.0.0") in ("0.0.4", "0.0.1", "1.0.0"):
            qualities[name] = max(qualities[name], _quality(given.get("q", "1")))
    openmetrics, plain = qualities.values()
    return openmetrics > 0 and openmetrics >= plain


def _quality(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 0.0


def _histogram(name: str, labels: Mapping[str, str], durations: Histogram) -> Iterator[str]:
    total = 0
    for bound, count in zip(BUCKETS, durations["counts"], strict=True):
        total += count
        yield _line(f"{name}_bucket", {**labels, "le": bound}, total)
    yield _line(f"{name}_sum", labels, durations["sum"])
    yield _line(f"{name}_count", labels, total)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    known = ",".join(f'{label}="{text.translate(ESCAPED)}"' for label, text in labels.items())
    # A float of a whole number, too, is written without a point.
    number = str(int(value)) if value == int(value) else repr(value)
    return f"{name}{f'{{{known}}}' if known else ''} {number}"
