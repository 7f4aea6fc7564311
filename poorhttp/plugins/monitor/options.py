"""The options of monitoring: metrics and traces that are sent."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.option import Option
from poorhttp.config.parsers import or_off, switch


def receiver(text: str) -> address.Address:
    """Read the address of a receiver of datagrams: `HOST:PORT` or `unix:PATH`."""
    found = address.parse(text)
    if found.protocol != "http" or found.kind == "fd" or (found.kind == "tcp" and not found.port):
        raise ValueError(f'"{text}" is no receiver of datagrams; write HOST:PORT or unix:PATH')
    return found


def statsd_prefix(text: str) -> str:
    """Read the prefix of the names of metrics: words with dots between; it may be empty."""
    known = text.replace(".", "").replace("_", "").replace("-", "")
    if text and not (text.isascii() and known.isalnum()):
        raise ValueError(f'"{text}" is no prefix of names; write letters, digits, dots, _ and -')
    return text.strip(".")


def statsd_tags(text: str) -> tuple[str, ...] | None:
    """Read `off` (None), `on` (no tags but the labels), or tags: `env:prod, team:web`."""
    if text == "off":
        return None
    tags = () if text == "on" else tuple(text.replace(",", " ").split())
    for tag in tags:
        if not tag.isprintable() or any(mark in tag for mark in "|#") or tag in ("on", "off"):
            raise ValueError(f'"{tag}" is no tag; write NAME:VALUE without |, # and commas')
    return tags


class Monitoring:
    """Where metrics and traces go. They can be fetched at `admin` too."""

    GROUP = "Monitoring"

    statsd = Option(
        or_off(receiver),
        "off",
        "Send the metrics to StatsD at this address, every 10 seconds: `HOST:PORT` (UDP), or "
        "`unix:PATH` (datagrams).",
        shared=True,
        metavar="ADDRESS",
        reason="The process that answers at `admin` sends them; it also runs if `admin` is off. "
        "They are the same metrics as for Prometheus (docs/reference/metrics.md): counters as "
        "changes, gauges, and quantiles of durations.",
        aliases=("statsd-host",),
    )
    statsd_prefix = Option(
        statsd_prefix,
        "poorhttp",
        "Prefix of the name of each metric that is sent to StatsD; empty for none.",
        shared=True,
        metavar="TEXT",
        reason="The default gives `poorhttp.requests`. gunicorn has none unless `statsd_prefix` "
        "is set.",
    )
    statsd_tags = Option(
        statsd_tags,
        "off",
        "Send tags in the format of DogStatsD: `on`, or tags for all metrics, such as `env:prod, "
        "team:web`.",
        shared=True,
        metavar="TAGS",
        reason="Labels such as the service, the worker or the class of a status become tags "
        "(`poorhttp.responses:5|c|#code:2xx`). Without tags they are parts of the name "
        "(`poorhttp.responses.2xx`). The agents of Datadog, Telegraf and Vector understand tags.",
        aliases=("dogstatsd-tags",),
    )
    otel = Option(
        switch("metrics", "traces"),
        "off",
        "Send metrics, and a trace of each request, with OpenTelemetry: `on`, `off`, or only "
        "`metrics` or `traces`.",
        shared=True,
        reason="Needs the extra `otel`. OpenTelemetry's own environment variables, such as "
        "`OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_TRACES_SAMPLER`, set the receiver, the interval "
        "and the share of traces. Workers send traces; the process that answers at `admin` sends "
        "metrics. Files that the server sends without the application have no trace.",
    )
