"""The options of monitoring: the address `admin`, metrics and traces that are sent."""

from __future__ import annotations

from poorhttp.config import address
from poorhttp.config.options.option import IN_PROCESSES, Option
from poorhttp.config.parsers import integer, or_off, path, switch


def http_address(text: str) -> address.Address:
    """Read an address to listen on for HTTP."""
    found = address.parse(text)
    if found.protocol != "http":
        raise ValueError(f'"{text}": HTTP is spoken there; write HOST:PORT or unix:PATH')
    return found


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
    """How an operator sees and controls the server, and where metrics and traces go."""

    GROUP = "Monitoring"
    AVAILABLE = IN_PROCESSES

    admin = Option(
        or_off(http_address),
        "off",
        "Address at which the server reports its state (`/-/live`, `/-/ready`, `/-/metrics`, "
        "`/-/status`), and where `poorhttp ctl` controls it.",
        shared=True,
        metavar="ADDRESS",
        common=True,
        reason="A separate process answers, with the rights of `user`, even when all workers are "
        "busy. `ready` is 503 when no worker of a service has answered for some seconds. Every "
        "client that can connect can stop the server: on a machine with other users choose a Unix "
        "socket or set `admin_token_file`. An address that other machines can reach needs a "
        "token. `/-/live` and `/-/ready` are open to every client that can connect.",
        needs_main=True,
    )
    admin_token_file = Option(
        or_off(path),
        "off",
        "File with the token that clients of `admin` must send in `Authorization: Bearer TOKEN`; "
        "`off` asks for none.",
        shared=True,
        metavar="FILE",
        reason="One line of at least 16 characters (`openssl rand -hex 32`), readable only by its "
        "owner and group. `poorhttp ctl --token-file FILE` sends it. Browsers ask for a password: "
        "enter the token, with any user name. A reload reads the file again. `/-/live` and "
        "`/-/ready` need no token, because health probes have none.",
    )
    tracemalloc = Option(
        integer(0, 100),
        "0",
        "How many stack frames Python records for each allocation, so that `poorhttp ctl heap` "
        "shows which lines hold memory. 0 records none; `heap` then counts objects by type.",
        metavar="FRAMES",
        reason="1 is enough. It costs a lot of time and memory, so turn it on only to find a leak. "
        "`PYTHONTRACEMALLOC=1` does the same for all processes.",
    )
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
        translate=lambda text: text.replace("unix://", "unix:", 1),
        needs_main=True,
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

    @property
    def sends_metrics(self) -> bool:
        """Whether metrics are sent, besides those that are fetched at `admin`."""
        return self.statsd is not None or self.otel in ("on", "metrics")
