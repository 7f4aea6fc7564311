"""Makes the dashboard for Grafana, poorhttp.json: prints it."""

from __future__ import annotations

import json
import sys

#: Matches the choices at the top of the dashboard.
CHOSEN = 'job=~"$job",instance=~"$instance"'
SERVICE = f'{CHOSEN},service=~"$service"'
ERRORS = ',code="5xx"'

#: Height of a row of panels, and width of the whole, in units of Grafana.
HEIGHT, WIDTH = 8, 24

Query = tuple[str, str]


def rate(name: str, by: str, labels: str = "") -> str:
    """The rate of a counter, summed up."""
    return f"sum by ({by}) (rate(poorhttp_{name}{{{SERVICE}{labels}}}[$__rate_interval]))"


def quantile(part: float, name: str) -> str:
    """A quantile of a histogram."""
    return f"histogram_quantile({part}, {rate(f'{name}_bucket', 'service, le')})"


def gauge(name: str, by: str = "service") -> str:
    """A gauge, summed up."""
    return f"sum by ({by}) (poorhttp_{name}{{{SERVICE}}})"


def quantiles(name: str) -> list[Query]:
    """The queries of a panel of three quantiles."""
    return [
        (quantile(part, name), f"p{part * 100:.0f} {{{{service}}}}") for part in (0.5, 0.9, 0.99)
    ]


#: Rows: a title, and panels: title, unit, description, queries with their legends.
ROWS: list[tuple[str, list[tuple[str, str, str, list[Query]]]]] = [
    (
        "Health",
        [
            (
                "Ready",
                "bool_on_off",
                "1 while the server is ready, as /-/ready reports.",
                [(f"min by (instance) (poorhttp_ready{{{CHOSEN}}})", "{{instance}}")],
            ),
            (
                "Workers that answer",
                "short",
                "Fewer than are wanted: they die, or all their threads are busy.",
                [
                    (gauge("workers_answering"), "answering {{service}}"),
                    (gauge("workers_wanted"), "wanted {{service}}"),
                ],
            ),
            (
                "Utilization",
                "percentunit",
                "Requests in flight as a share of the capacity. Near 100 %, requests wait.",
                [(f"avg by (service) (poorhttp_utilization{{{SERVICE}}})", "{{service}}")],
            ),
            (
                "Errors",
                "percentunit",
                "Share of the responses that are 5xx.",
                [
                    (
                        f"{rate('responses_total', 'service', ERRORS)}"
                        f" / {rate('responses_total', 'service')}",
                        "{{service}}",
                    )
                ],
            ),
        ],
    ),
    (
        "Traffic",
        [
            (
                "Responses",
                "reqps",
                "By class of status.",
                [(rate("responses_total", "code"), "{{code}}")],
            ),
            (
                "Not answered",
                "reqps",
                "Refused by the server itself, by status; timed out; left by their clients.",
                [
                    (rate("requests_refused_total", "code"), "{{code}}"),
                    (rate("requests_timed_out_total", "service"), "timed out {{service}}"),
                    (rate("requests_departed_total", "service"), "left {{service}}"),
                ],
            ),
            (
                "Bytes",
                "Bps",
                "Received from clients and sent to them.",
                [
                    (rate("sent_bytes_total", "service"), "sent {{service}}"),
                    (rate("received_bytes_total", "service"), "received {{service}}"),
                    (rate("spooled_bytes_total", "service"), "in temporary files {{service}}"),
                ],
            ),
            (
                "Connections",
                "short",
                "By state.",
                [(gauge("connections_by_state", "state"), "{{state}}")],
            ),
        ],
    ),
    (
        "Where the time goes",
        [
            (
                "Waiting for a thread",
                "s",
                "From the complete head to the call of the application.",
                quantiles("request_waiting_seconds"),
            ),
            (
                "In the application",
                "s",
                "From the call of the application to its end.",
                quantiles("request_application_seconds"),
            ),
            (
                "Sending",
                "s",
                "Until the kernel has the last byte: long for slow clients.",
                quantiles("request_sending_seconds"),
            ),
            (
                "Requests",
                "short",
                "In flight and waiting for a thread.",
                [
                    (gauge("requests_in_flight"), "in flight {{service}}"),
                    (gauge("requests_queued"), "waiting {{service}}"),
                ],
            ),
            (
                "Oldest request in flight",
                "s",
                "If it grows steadily, that request hangs.",
                [
                    (
                        f"max by (service) (poorhttp_oldest_request_seconds{{{SERVICE}}})",
                        "{{service}}",
                    )
                ],
            ),
            (
                "Waiting for the interpreter",
                "percentunit",
                "Requests that wait because threads compute: 100 % is one of them all the time.",
                [(rate("interpreter_wait_seconds_total", "service"), "{{service}}")],
            ),
        ],
    ),
    (
        "Workers",
        [
            (
                "Processor",
                "percentunit",
                "100 % is one core.",
                [
                    (
                        rate("worker_cpu_seconds_total", "instance, service, worker"),
                        "{{instance}} {{service}} {{worker}}",
                    )
                ],
            ),
            (
                "Memory",
                "bytes",
                "Shared pages divided by the processes that share them (PSS).",
                [
                    (
                        gauge("worker_proportional_memory_bytes", "instance, service, worker"),
                        "{{instance}} {{service}} {{worker}}",
                    )
                ],
            ),
            (
                "Requests of each worker",
                "reqps",
                "Equal, unless some of them are busy.",
                [
                    (
                        rate("worker_requests_total", "instance, service, worker"),
                        "{{instance}} {{service}} {{worker}}",
                    )
                ],
            ),
            (
                "Replaced workers",
                "short",
                "In the last hour, by reason.",
                [
                    (
                        "sum by (service, reason) (increase("
                        f"poorhttp_worker_restarts_total{{{SERVICE}}}[1h]))",
                        "{{reason}} {{service}}",
                    )
                ],
            ),
        ],
    ),
    (
        "Everything else",
        [
            (
                "TLS handshakes",
                "cps",
                "Completed and failed.",
                [
                    (rate("tls_handshakes_total", "service"), "completed {{service}}"),
                    (rate("tls_handshake_failures_total", "service"), "failed {{service}}"),
                ],
            ),
            (
                "Certificates expire in",
                "s",
                "An alert fires below two weeks.",
                [
                    (
                        "min by (file) (poorhttp_tls_certificate_expiry_seconds"
                        f"{{{SERVICE}}}) - time()",
                        "{{file}}",
                    )
                ],
            ),
            (
                "Static files from memory",
                "percentunit",
                "Share of the files found in the cache.",
                [
                    (
                        f"{rate('static_cache_hits_total', 'service')}"
                        f" / ({rate('static_cache_hits_total', 'service')}"
                        f" + {rate('static_cache_misses_total', 'service')})",
                        "{{service}}",
                    )
                ],
            ),
            (
                "Versions",
                "short",
                "Versions that run now.",
                [
                    (
                        f"count by (version, python) (poorhttp_info{{{CHOSEN}}})",
                        "{{version}} on Python {{python}}",
                    )
                ],
            ),
        ],
    ),
]


def variable(name: str, query: str) -> dict[str, object]:
    """A choice at the top of the dashboard."""
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "includeAll": True,
        # A service without a name has no label.
        "allValue": ".*",
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def dashboard() -> dict[str, object]:
    """The dashboard, as Grafana imports it."""
    panels: list[dict[str, object]] = []
    y = 0
    for title, those in ROWS:
        place = {"h": 1, "w": WIDTH, "x": 0, "y": y}
        panels.append(
            {"id": len(panels) + 1, "type": "row", "title": title, "gridPos": place, "panels": []}
        )
        y += 1
        across = 3 if len(those) % 3 == 0 else 4
        for number, (name, unit, description, queries) in enumerate(those):
            width = WIDTH // across
            x = number % across * width
            panels.append(
                panel(len(panels) + 1, name, unit, description, queries)
                | {"gridPos": {"h": HEIGHT, "w": width, "x": x, "y": y + number // across * HEIGHT}}
            )
        y += -(-len(those) // across) * HEIGHT
    return {
        "uid": "poorhttp",
        "title": "poorhttp",
        "description": "The metrics of poorhttp: docs/reference/metrics.md explains them.",
        "tags": ["poorhttp", "wsgi"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "graphTooltip": 1,
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "data source",
                    "type": "datasource",
                    "query": "prometheus",
                },
                variable("job", "label_values(poorhttp_info, job)"),
                variable("instance", 'label_values(poorhttp_info{job=~"$job"}, instance)'),
                variable("service", 'label_values(poorhttp_requests_total{job=~"$job"}, service)'),
            ]
        },
        "panels": panels,
    }


def panel(
    number: int, name: str, unit: str, description: str, queries: list[Query]
) -> dict[str, object]:
    """A panel with lines."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    targets = [
        {
            "refId": chr(ord("A") + place),
            "datasource": source,
            "expr": expression,
            "legendFormat": legend,
        }
        for place, (expression, legend) in enumerate(queries)
    ]
    return {
        "id": number,
        "type": "timeseries",
        "title": name,
        "description": description,
        "datasource": source,
        "fieldConfig": {
            "defaults": {
                "unit": unit,
                "min": 0,
                "custom": {"fillOpacity": 8, "lineWidth": 1, "showPoints": "never"},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": targets,
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=2)
    print()
