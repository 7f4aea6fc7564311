"""Sections of the status page about one service, as HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.derived.rates import Recent, added, quantile, queue_length
from poorhttp.plugins.monitor.page import charts
from poorhttp.plugins.monitor.page.html import Html, code, html, join, row, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Finished, Refusal, Service, Slot, Worker

#: The parts of the time of a request: name, class, its histogram in a slot.
PARTS: tuple[tuple[str, str, Callable[[Slot], list[int]]], ...] = (
    ("waiting for a thread", "waiting", lambda slot: slot["waiting"]),
    ("application", "application", lambda slot: slot["application"]),
    ("sending", "sending", lambda slot: slot["sending"]),
)

#: The quantiles of charts and tables: part, name, class.
QUANTILES = ((0.99, "p99", "p99"), (0.9, "p90", "p90"), (0.5, "p50", "p50"))

#: Reasons of `Figures.refused`.
REASONS = {
    "400": "malformed",
    "403": "untrusted gateway",
    "405": "body for a file",
    "408": "too slow",
    "413": "body too large",
    "414": "target too long",
    "417": "unknown expectation",
    "421": "https target without TLS",
    "431": "headers too large",
    "501": "not supported",
    "503": "overloaded, or stopping",
    "505": "version of HTTP",
    "507": "no disk space for the body",
}

#: Reasons of `Service.restarts`.
RESTARTS = {
    "died": "died",
    "worn": "reached max_requests, max_rss or max_lifetime",
    "stopped": "was stopped by a signal, and killed",
    "timeout": "had a request that could not be interrupted",
    "asked": "was restarted by an operator",
}


#: Classes of states of a worker.
STATES = {"serving": "good", "broken": "bad", "stopped": "bad"}


def service_sections(service: Service, recent: Recent, now: float) -> Html:
    """Return all sections of a service."""
    history = service["history"]
    return join(
        [
            tiles(service, recent),
            traffic(service, recent, now),
            latency(history, now),
            workers(service["workers"], recent),
            slowest(service["slowest"], now),
            errors(service["errors"], now),
            refusals(service["refusals"], now),
            connections(service),
            more_figures(service, now),
        ],
        "\n",
    )


def tiles(service: Service, recent: Recent) -> Html:
    """Return the figures of this moment."""
    figures, rates = service["figures"], recent.rates(service)
    capacity = service["capacity"]
    application = added(slot["application"] for slot in service["history"])
    p50, p99 = quantile(application, 0.5), quantile(application, 0.99)
    oldest = f"the oldest for {units.seconds(figures['oldest'])}" if figures["oldest"] else ""
    full = bool(capacity) and figures["in_flight"] >= (capacity or 0)
    tile = '<div class="tile {}"><dt>{}</dt><dd><b>{}</b> <span>{}</span></dd></div>'
    waiting = queue_length(service)
    in_kernel = service["unread"] + sum(each["waiting"] for each in service["accept_queues"])
    all_connections = sum(figures["connections"].values())
    return html(
        '<dl class="tiles">{}</dl>',
        join(
            html(tile, kind, name, value, rest)
            for name, value, rest, kind in (
                ("Requests", units.rate(rates["requests"]), "per second", ""),
                (
                    "Errors (5xx)",
                    units.rate(rates["errors"]),
                    "per second",
                    "bad" if rates["errors"] else "",
                ),
                ("Application, p50", units.seconds(p50), "last hour", ""),
                ("Application, p99", units.seconds(p99), "last hour", ""),
                (
                    "In flight",
                    units.count(figures["in_flight"]),
                    f"of {units.count(capacity)}" if capacity else oldest,
                    "bad" if full else "",
                ),
                (
                    "Waiting",
                    units.count(waiting),
                    f"for a thread, {units.count(in_kernel)} of them in the kernel"
                    if in_kernel
                    else "for a thread",
                    "bad" if full and waiting else "",
                ),
                (
                    "Workers",
                    units.count(service["answering"]),
                    f"of {service['wanted']} answer"
                    + (f", {service['full']} full" if service["full"] else ""),
                    "bad" if service["answering"] < service["wanted"] else "",
                ),
                (
                    "Connections",
                    units.count(all_connections),
                    f"{units.count(figures['connections'].get('idle', 0))} idle",
                    "",
                ),
            )
        ),
    )


def traffic(service: Service, recent: Recent, now: float) -> Html:
    """Return the charts of requests, bytes and memory."""
    history, rates = service["history"], recent.rates(service)

    def points(value: Callable[[Slot], int]) -> list[charts.Point]:
        return [
            (*_place(slot, now), value(slot) / max(1.0, slot["end"] - slot["begin"]))
            for slot in history
        ]

    requests = charts.bars(
        "Requests per second",
        [
            ("requests", "requests", points(lambda slot: slot["requests"])),
            ("errors", "errors", points(lambda slot: slot["errors"])),
        ],
        units.rate,
        [rates["requests"], rates["errors"]],
    )
    received, sent = rates["received"], rates["sent"]
    transferred = charts.octets(
        "Bytes per second",
        [
            ("sent", "sent", points(lambda slot: slot["sent"])),
            ("received", "received", points(lambda slot: slot["received"])),
        ],
        [units.octets(sent), units.octets(received)],
    )
    memory = charts.octets(
        "Memory of all workers",
        [("RSS", "memory", [(*_place(slot, now), slot["memory"] or None) for slot in history])],
        [units.octets(sum(worker["rss"] for worker in service["workers"]))],
    )
    return html(
        '<section><h3>Rates and memory</h3><div class="charts three">{}{}{}</div></section>',
        *(requests, transferred, memory),
    )


def latency(history: Sequence[Slot], now: float) -> Html:
    """Return where the time of requests went, over the last hour."""
    rows, figures = [], []
    for name, kind, histogram in PARTS:
        slots = [(slot, histogram(slot)) for slot in history]
        whole = added(counts for _, counts in slots)
        found = {label: units.seconds(quantile(whole, part)) for part, label, _ in QUANTILES}
        rows.append(
            row(
                (html('<span class="key"><i class="{}"></i>{}</span>', kind, name), ""),
                *((found[label], "n") for label in ("p50", "p90", "p99")),
                (units.count(sum(whole)), "n"),
            )
        )
        latest = slots[-1][1] if slots else []
        series = [
            (label, each, [(*_place(slot, now), quantile(counts, part)) for slot, counts in slots])
            for part, label, each in QUANTILES
        ]
        minute = [units.seconds(quantile(latest, part)) for part, _, _ in QUANTILES]
        figures.append(charts.durations(name.capitalize(), series, minute))
    columns = (
        *(("", ""), ("p50", "n"), ("p90", "n"), ("p99", "n")),
        ("requests", "n"),
    )
    return html(
        '<section><h3>Where the time goes</h3>{}<div class="charts three">{}</div></section>',
        table("Quantiles over the last hour", columns, rows),
        join(figures),
    )


def workers(found: Sequence[Worker], recent: Recent) -> Html:
    """Return the workers with what they work on."""
    rows = []
    for worker in found:
        cpu = recent.cpu(worker["pid"])
        if cpu is None and worker["age"] > 0:
            cpu = worker["cpu"] / worker["age"]
        silent = worker["state"] == "serving" and not worker["answers"]
        quiet = "full: all threads run requests" if worker["full"] else "does not answer"
        state = quiet if silent else worker["state"]
        kind = "bad" if silent else STATES.get(state, "")
        rows.append(
            row(
                (worker["index"] + 1, "n"),
                (worker["pid"], "n"),
                (html('<span class="{}">{}</span>', kind, state), ""),
                (units.age(worker["age"]), "n"),
                (units.count(worker["requests"]), "n"),
                (worker["in_flight"], "n"),
                (units.count(worker["connections"]), "n"),
                (units.percent(cpu) if cpu is not None else "–", "n"),
                (units.octets(worker["rss"]) if worker["rss"] else "–", "n"),
                (units.octets(worker["pss"]) if worker["pss"] else "–", "n"),
            )
        )
        if worker["working_on"]:
            rows.append(
                html(
                    '<tr class="doing"><td></td><td colspan="9"><ul>{}</ul></td></tr>',
                    join(
                        html(
                            '<li><b class="{}">{}</b> {} <small>{}</small></li>',
                            "bad"
                            if each["seconds"] >= 10 and not (each["upgraded"] or each["streaming"])
                            else "",
                            units.seconds(each["seconds"]),
                            code(each["line"]),
                            _about(
                                each["number"],
                                each["id"],
                                "upgraded" * each["upgraded"],
                                "streaming" * each["streaming"],
                            ),
                        )
                        for each in sorted(worker["working_on"], key=lambda one: -one["seconds"])
                    ),
                )
            )
    columns = (
        *(("No.", "n"), ("PID", "n"), ("state", ""), ("age", "n"), ("requests", "n")),
        *(("in flight", "n"), ("connections", "n"), ("CPU", "n"), ("RSS", "n"), ("PSS", "n")),
    )
    shown = table("Workers, and what each works on now", columns, rows)
    return html(
        '<section class="workers"><h3>Workers</h3>{}</section>',
        shown if rows else html("<p>There is none.</p>"),
    )


def slowest(found: Sequence[Finished], now: float) -> Html:
    """Return the slowest requests of the last hour, with where their time went."""
    longest = max((_whole(each) for each in found), default=0.0)
    rows = [
        row(
            (code(each["line"]), "text"),
            (units.seconds(_whole(each)), "n"),
            (
                charts.stack(
                    [
                        ("waiting for a thread", "waiting", each["waited"]),
                        ("application", "application", each["application"]),
                        ("sending", "sending", each["sending"]),
                    ],
                    longest,
                ),
                "share",
            ),
            (units.seconds(each["waited"]), "n"),
            (units.seconds(each["application"]), "n"),
            (units.seconds(each["sending"]), "n"),
            (each["status"], f"n s{each['status'] // 100}"),
            (units.octets(each["sent"]), "n"),
            (_ago(each["when"], now), "n"),
            (_where(each), "id"),
        )
        for each in found
    ]
    columns = (
        *(("request", ""), ("time", "n"), ("where it went", "share"), ("waiting", "n")),
        *(("application", "n"), ("sending", "n"), ("status", "n"), ("sent", "n"), ("ended", "n")),
        ("worker, number, ID", ""),
    )
    legend = join(html('<span><i class="{}"></i>{}</span> ', kind, name) for name, kind, _ in PARTS)
    shown = html(
        '<p class="legend">{}</p>{}',
        *(legend, table("Slowest requests of the last hour", columns, rows)),
    )
    return html(
        "<section><h3>Slowest requests</h3>{}</section>",
        shown if rows else html("<p>None in the last hour.</p>"),
    )


def errors(found: Sequence[Finished], now: float) -> Html:
    """Return the last responses with 5xx."""
    rows = [
        row(
            (code(each["line"]), "text"),
            (each["status"], "n s5"),
            (units.seconds(_whole(each)), "n"),
            (_ago(each["when"], now), "n"),
            (_where(each), "id"),
        )
        for each in found
    ]
    columns = (
        *(("request", ""), ("status", "n"), ("time", "n"), ("ended", "n")),
        ("worker, number, ID", ""),
    )
    return html(
        "<section><h3>Errors</h3>{}</section>",
        table("Last responses with 5xx", columns, rows) if rows else html("<p>None.</p>"),
    )


def refusals(found: Sequence[Refusal], now: float) -> Html:
    """Return the last requests that the server itself has refused."""
    rows = [
        row(
            (code(each["line"]) if each["line"] else "–", "text"),
            (each["status"], f"n s{each['status'] // 100}"),
            (each["reason"], "text"),
            (code(each["client"]) if each["client"] else "–", "id"),
            (_ago(each["when"], now), "n"),
            (_number(each["pid"], each["number"], each["id"]), "id"),
        )
        for each in found
    ]
    columns = (
        *(("request", ""), ("status", "n"), ("reason", ""), ("client", ""), ("refused", "n")),
        ("worker, number, ID", ""),
    )
    shown = table("Last requests that the server itself has refused", columns, rows)
    return html("<section><h3>Refusals</h3>{}</section>", shown if rows else html("<p>None.</p>"))


def connections(service: Service) -> Html:
    """Return connections by state, and refused requests by reason."""
    figures = service["figures"]
    states = [row((name, ""), (units.count(n), "n")) for name, n in figures["connections"].items()]
    states += [
        row(
            (html("not accepted yet at {}", code(each["url"])), ""),
            (html("{} of {}", units.count(each["waiting"]), units.count(each["limit"])), "n"),
        )
        for each in service["accept_queues"]
    ]
    if service["unread"]:
        states.append(row(("requests not read yet", ""), (units.count(service["unread"]), "n")))
    refused = {f"{status}, {REASONS.get(status, '')}": n for status, n in _refused(service)}
    refused["504, request_timeout"] = figures["timed_out"]
    refused["499, the client left"] = figures["departed"]
    responses = [row((name, ""), (units.count(n), "n")) for name, n in figures["responses"].items()]
    columns = (("", ""), ("", "n"))
    return html(
        '<section><h3>Connections and responses</h3><div class="beside">{}{}{}</div></section>',
        table("Connections now, by state", columns, states),
        table("Responses since the start", columns, responses),
        table(
            "Refused and ended requests since the start",
            columns,
            [row((name, ""), (units.count(n), "n")) for name, n in refused.items() if n],
        ),
    )


def more_figures(service: Service, now: float) -> Html:
    """Return figures since the start, restarts by reason, and certificates."""
    figures = service["figures"]
    found = figures["cache_hits"] + figures["cache_misses"]
    listed = [
        ("Requests", units.count(figures["requests"])),
        ("Connections accepted", units.count(figures["accepted"])),
        ("Bytes received", units.octets(figures["bytes_received"])),
        ("Bytes sent", units.octets(figures["bytes_sent"])),
        ("Bytes in temporary files", units.octets(figures["spooled_bytes"])),
        ("TLS handshakes", units.count(figures["tls_handshakes"])),
        ("Failed handshakes", units.count(figures["tls_failures"])),
        ("Connections of HTTP/2", units.count(figures["http2_connections"])),
        ("Streams of HTTP/2", units.count(figures["http2_streams"])),
        ("Streams reset", units.count(sum(figures["http2_resets"].values()))),
        ("Failed connections of HTTP/2", units.count(figures["http2_failures"])),
        ("Connections upgraded (WebSocket)", units.count(figures["upgrades"])),
        ("Responses that stream", units.count(figures["streaming"])),
        ("Waited for the interpreter", units.seconds(figures["interpreter_wait"])),
        (
            "Static files found in memory",
            units.percent(figures["cache_hits"] / found) if found else "–",
        ),
        ("Reforks", units.count(service["reforks"])),
    ]
    replaced = [
        row((RESTARTS.get(reason, reason), ""), (units.count(n), "n"))
        for reason, n in service["restarts"].items()
    ]
    certificates = [
        row((code(each["file"]), ""), (_expires(each["expires"], now), "n"))
        for each in service["certificates"]
    ]
    columns = (("", ""), ("", "n"))
    shown = [
        table("Since the start", columns, [row((name, ""), (n, "n")) for name, n in listed]),
        table("Replaced workers, by reason", columns, replaced),
    ]
    if certificates:
        shown.append(table("Certificates", (("file", ""), ("expires", "n")), certificates))
    return html('<section><h3>More figures</h3><div class="beside">{}</div></section>', join(shown))


def _refused(service: Service) -> list[tuple[str, int]]:
    return sorted(service["figures"]["refused"].items())


def _place(slot: Slot, now: float) -> tuple[float, float]:
    """Return begin and end of a slot as coordinates of a chart."""
    begin = max(0.0, charts.HOUR + slot["begin"] - now)
    return begin, max(begin, charts.HOUR + slot["end"] - now)


def _whole(request: Finished) -> float:
    return request["waited"] + request["application"] + request["sending"]


def _ago(when: float, now: float) -> Html:
    """Return a time as an element: how long ago, with the time itself as its title."""
    at = units.moment(when)
    return html(
        '<time datetime="{}" title="{}">{} ago</time>', at, at, units.roughly(max(0.0, now - when))
    )


def _expires(when: float, now: float) -> Html:
    """Return a time in the future as an element; see `_ago`."""
    at, kind = units.moment(when), "" if when > now else "bad"
    text = f"in {units.age(when - now)}" if when > now else "expired"
    return html('<time class="{}" datetime="{}" title="{}">{}</time>', kind, at, at, text)


def _where(request: Finished) -> Html:
    return _number(request["pid"], request["number"], request["id"])


def _number(pid: int, number: int, request_id: str) -> Html:
    return html("{}, no. {} <small>{}</small>", pid, number, request_id)


def _about(number: int, *parts: str) -> str:
    return ", ".join(part for part in (f"no. {number}", *parts) if part)
