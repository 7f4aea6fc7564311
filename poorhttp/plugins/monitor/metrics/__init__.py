"""Metrics, made from the status document: read by Prometheus, sent to StatsD and OpenTelemetry.

samples.py      checks what a metric of a plug-in has returned
families.py     each metric: name, type, description, where its samples come from
reference.py    the table of docs/reference/metrics.md
exposition.py   the text formats of Prometheus and OpenMetrics
changes.py      what has changed since the last interval
statsd.py       lines for StatsD
otlp.py         metrics for OpenTelemetry's protocol
export.py       the thread that sends them from the admin process
"""

from poorhttp.plugins.monitor.metrics.exposition import render

__all__ = ["render"]
