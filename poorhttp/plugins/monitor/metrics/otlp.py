"""Metrics for OpenTelemetry: what its exporters send by OTLP, made from the status document.

Made without instruments of the SDK: those would count from the start of the process that sends,
while our counters and histograms are older. The exporter is the official one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from poorhttp.config.version import VERSION
from poorhttp.plugins.monitor.admin.model import BOUNDS
from poorhttp.plugins.monitor.metrics import changes
from poorhttp.plugins.monitor.metrics.families import Family, Sample
from poorhttp.plugins.monitor.otel import sdk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.plugins.monitor.metrics.changes import Numbers

#: Units by the end of the name of a metric, which OpenTelemetry does not repeat there.
UNITS = {"seconds": "s", "bytes": "By", "": "1"}

NANOSECONDS = 1_000_000_000


class Exporter:
    """Sends all metrics by the exporter that the environment names.

    Attributes:
        interval: seconds between two sendings.
    """

    def __init__(self) -> None:
        """Read the environment: `OTEL_METRICS_EXPORTER`, `OTEL_EXPORTER_OTLP_*` and others.

        Raises:
            ConfigError: there is no such exporter.
        """
        self.interval = sdk.milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 60_000)
        self._resource = sdk.resource()
        self._exporters: list[MetricExporter] = sdk.exporters("metrics")
        wanted = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "")
        self._is_delta = wanted.lower() == "delta"

    def send(
        self,
        metrics: Iterable[tuple[Family, Sequence[Sample]]],
        grown: Numbers,
        before: float,
        now: float,
    ) -> bool:
        """Send the metrics of the moment `now`; return whether all have got through.

        Args:
            metrics: all metrics.
            grown: how much counters and histograms have grown since `before`.
            before: the last moment, in seconds since 1970.
            now: this one.
        """
        found = data(metrics, self._resource, now, (grown, before) if self._is_delta else None)
        results = [exporter.export(found) for exporter in self._exporters]
        return all(result is MetricExportResult.SUCCESS for result in results)

    def close(self) -> None:
        """Close the exporters."""
        for exporter in self._exporters:
            exporter.shutdown()


def data(
    metrics: Iterable[tuple[Family, Sequence[Sample]]],
    resource: Resource,
    now: float,
    change: tuple[Numbers, float] | None,
) -> MetricsData:
    """Return all metrics but the deprecated ones; only the `change` since a moment, if given."""
    made = [
        Metric(
            name=_name(family),
            description=family.description,
            unit=UNITS[family.unit],
            data=_points(family, samples, round(now * NANOSECONDS), change),
        )
        for family, samples in metrics
        if family.kind != "info" and not family.deprecated
    ]
    scope = ScopeMetrics(InstrumentationScope("poorhttp", VERSION), made, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _name(family: Family) -> str:
    name = family.name.removesuffix(f"_{family.unit}") if family.unit else family.name
    return f"poorhttp.{name}"


def _points(
    family: Family, samples: Sequence[Sample], now: int, change: tuple[Numbers, float] | None
) -> Any:
    kind = AggregationTemporality.CUMULATIVE if change is None else AggregationTemporality.DELTA
    if family.kind == "gauge":
        return Gauge([NumberDataPoint(each.labels, None, now, each.number) for each in samples])  # type: ignore[arg-type]
    if family.kind == "counter":
        points = []
        for each in samples:
            value, begun = each.number, each.begun
            if change is not None:
                (value,), begun = change[0][changes.key(family, each)], change[1]
            points.append(NumberDataPoint(each.labels, round(begun * NANOSECONDS), now, value))
        return Sum(points, kind, is_monotonic=True)
    histograms = []
    for each in samples:
        counts: list[float] = [*each.durations["counts"]]
        total, begun = each.durations["sum"], each.begun
        if change is not None:
            (*counts, total), begun = change[0][changes.key(family, each)], change[1]
        histograms.append(
            HistogramDataPoint(
                attributes=each.labels,
                start_time_unix_nano=round(begun * NANOSECONDS),
                time_unix_nano=now,
                count=int(sum(counts)),
                sum=total,
                bucket_counts=[int(count) for count in counts],
                explicit_bounds=BOUNDS,
                # Nobody knows them.
                min=None,  # type: ignore[arg-type]
                max=None,  # type: ignore[arg-type]
            )
        )
    return Histogram(histograms, kind)
