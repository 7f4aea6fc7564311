"""Prints docs/reference/metrics.md, made of the declarations of all metrics.

`python -m poorhttp.plugins.monitor.metrics.reference > docs/reference/metrics.md`
"""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.plugins.monitor.metrics.families import SERVER, SERVICE, WORKER, Family

HEAD = """\
# Metrics

<!-- Made by `python -m poorhttp.plugins.monitor.metrics.reference`. -->

The server reports these metrics to Prometheus at `/-/metrics` of
[`admin`](options.md#admin), and sends them to [StatsD](options.md#statsd) and
[OpenTelemetry](options.md#otel). [Monitoring](../guides/monitoring.md) shows how to set this up.

Counters begin at 0 when the server starts; reloads and upgrades do not reset them. Metrics of a
worker begin at 0 with each new worker, as `rate()` expects. No label contains a value that a client
has sent.
"""

TAIL = """
## How times are measured

Histograms have buckets from 50 µs to 100 s. A request has four moments: its head is complete, the
application is called, the application has returned or ended the response, and the kernel has taken
the last byte. The time that a connection waits in the kernel before a worker accepts it is in no
histogram; `poorhttp_accept_queue` counts these connections.

While a worker is replaced, two processes have the same number. The metrics of this number are then
those of the process that serves, and `poorhttp_workers_by_state` counts both.
"""

LEVELS = {
    "The server": SERVER,
    "Each service": SERVICE,
    "Each worker": WORKER,
}
LABELS = {
    "Each service": "If there are several services, the label `service` names the service.",
    "Each worker": "The label `worker` is the number of the worker, as in the logs.",
}


def page() -> str:
    """Return the page, Markdown."""
    parts = [HEAD]
    for title, families in LEVELS.items():
        label = f"{LABELS[title]}\n\n" if title in LABELS else ""
        parts.append(f"\n## {title}\n\n{label}{_table(families)}")
    return "".join([*parts, TAIL])


def _table(families: Sequence[Family]) -> str:
    rows = ["| metric | type | |", "|---|---|---|"]
    for family in families:
        labels = f"{{{', '.join(family.labels)}}}" if family.labels else ""
        rows.append(f"| `{family.full_name}{labels}` | {family.kind} | {family.description} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
