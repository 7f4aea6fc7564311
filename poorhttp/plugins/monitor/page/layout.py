"""The whole status page: what concerns the server, and the sections of each service."""

from __future__ import annotations

from poorhttp.plugins.monitor.derived import units
from poorhttp.plugins.monitor.derived.notices import notices
from poorhttp.plugins.monitor.derived.rates import Recent
from poorhttp.plugins.monitor.derived.scaling import threads_sentence, workers_sentence
from poorhttp.plugins.monitor.page.html import Html, code, html, join, row, table
from poorhttp.plugins.monitor.page.sections import service_sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import Service, Status, Value

#: Seconds after which a browser without JavaScript loads the page again.
REFRESH = 10

DOCUMENT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="-/icon.svg">
<link rel="stylesheet" href="-/page.css?{}">
<noscript><meta http-equiv="refresh" content="{}"></noscript>
<script src="-/page.js?{}" defer></script>
</head>
<body>
<a class="skip" href="#live">Skip to the figures</a>
<p class="bar"><span id="state" role="status">As of when this page was loaded.</span>
<button id="pause" type="button" hidden>Pause</button></p>
<main id="live" tabindex="-1">{}</main>
<footer>
<p>The same for programs: <a href="-/status">JSON</a>, <a href="metrics">metrics</a>,
<a href="-/ready">readiness</a>.</p>
</footer>
</body>
</html>
"""


def document(status: Status, recent: Recent, version: str) -> Html:
    """Return the page; `version` changes with its script and style."""
    title = f"{status['host_name']}: poorhttp"
    return html(DOCUMENT, title, version, REFRESH, version, content(status, recent))


def unavailable(why: str) -> Html:
    """Return the page while the main process does not answer."""
    return html(DOCUMENT, "poorhttp", "", REFRESH, "", trouble(why))


def trouble(why: str) -> Html:
    """Return the content while there is no status document."""
    return html('<h1>poorhttp</h1><ul class="notices"><li>{}</li></ul>', why)


def content(status: Status, recent: Recent) -> Html:
    """Return everything that changes."""
    services = status["services"]
    several = len(services) > 1
    parts = [_head(status)]
    if found := notices(status, recent):
        parts.append(
            html(
                '<ul class="notices" aria-label="What stands out">{}</ul>',
                join(html("<li>{}</li>", each) for each in found),
            )
        )
    if several:
        links = join(
            html('<a href="#service-{}">{}</a> ', number, service["name"])
            for number, service in enumerate(services, 1)
        )
        parts.append(html('<nav aria-label="Services">{}</nav>', links))
    for number, service in enumerate(services, 1):
        inner = service_sections(service, recent, status["now"])
        head = _service_head(service)
        parts.append(html('<article id="service-{}">{}{}</article>', number, head, inner))
    parts += [_server(status), _configuration(status["configuration"])]
    return join(parts, "\n")


def _head(status: Status) -> Html:
    ready = status["ready"]
    return html(
        '<header><h1>{} <span class="pill {}">{}</span></h1><p>poorhttp {}, Python {}, '
        "main process {}, up for {}</p></header>",
        status["host_name"],
        "good" if ready else "bad",
        "ready" if ready else "not ready",
        *(status["version"], status["python"], status["pid"]),
        units.age(status["now"] - status["started"]),
    )


def _service_head(service: Service) -> Html:
    threads = f", {service['threads']} threads each" if service["mode"] == "threading" else ""
    if sentence := threads_sentence(service):
        threads = f"; {sentence}"
    if sentence := workers_sentence(service):
        threads += f"; {sentence}"
    workers = "worker" if service["wanted"] == 1 else "workers"
    return html(
        '<h2>{}</h2><p class="about">{} at {}: {}, {} {}{}</p>',
        service["name"] or "Service",
        code(service["target"]),
        join((code(url) for url in service["urls"]), ", "),
        *(service["mode"], service["wanted"], workers, threads),
    )


def _server(status: Status) -> Html:
    reloads, now = status["reloads"], status["now"]
    listed: list[tuple[str, object]] = [
        ("Reloads that succeeded", units.count(reloads["succeeded"])),
        ("Reloads that failed", units.count(reloads["failed"])),
    ]
    if (last := reloads["last"]) is not None:
        ago = units.age(max(0.0, now - last["when"]))
        listed.append(("The last reload", f"{ago} ago: {last['result']}"))
    listed.append(("Lost log lines", units.count(status["log_lines_lost"])))
    listed.append(("Started", units.moment(status["started"])))
    return html(
        '<section class="server"><h2>Server</h2>{}</section>',
        table(
            "Reloads and logs",
            (("", ""), ("", "")),
            [row((name, ""), (value, "")) for name, value in listed],
        ),
    )


def _configuration(values: list[Value]) -> Html:
    several = len({each["service"] for each in values}) > 1
    rows = [
        row(
            (each["option"], ""),
            (code(each["value"]), "text"),
            (code(each["origin"]), ""),
            *([(each["service"], "")] if several else []),
        )
        for each in values
    ]
    columns = (
        *(("option", ""), ("value", ""), ("where it is set", "")),
        *([("service", "")] if several else []),
    )
    shown = table("Options that are set, and where", columns, rows)
    return html(
        '<section class="configuration"><h2>Configuration in force</h2>{}</section>',
        shown if rows else html("<p>All options have their defaults.</p>"),
    )
