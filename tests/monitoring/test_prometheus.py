"""Metrics as text for Prometheus and OpenMetrics; rules and queries with Prometheus' own tools."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics_parser

from poorhttp.plugins.monitor import metrics
from poorhttp.plugins.monitor.admin.model import BOUNDS
from poorhttp.plugins.monitor.metrics import reference
from poorhttp.plugins.monitor.metrics.families import FAMILIES, collect
from tests.packages import need
from tests.support.status_documents import DOCUMENTS, document, service, troubled, worker
from tests.testkit.client import HANG
from tests.testkit.server import ROOT, run

PROMETHEUS = ROOT / "conf/prometheus"
GRAFANA = ROOT / "conf/grafana"
RULES = PROMETHEUS / "poorhttp.rules.yml"


def known(name: str) -> bool:
    """Whether there is a sample of this name."""
    names = {name.removesuffix(suffix) for suffix in ("_bucket", "_sum", "_count", "")}
    return any(family.full_name in names for family in FAMILIES)


def queries() -> Iterator[tuple[str, str]]:
    """The title of each panel of the dashboard, with each of its queries."""
    for panel in json.loads((GRAFANA / "poorhttp.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def test_the_dashboard_is_made_of_its_program() -> None:
    made = run("python3", str(GRAFANA / "dashboard.py")).stdout
    how = "python conf/grafana/dashboard.py > conf/grafana/poorhttp.json"
    assert made == (GRAFANA / "poorhttp.json").read_text(), how


def test_rules_and_queries_name_metrics_that_exist() -> None:
    texts = [RULES.read_text(), *(query for _, query in queries())]
    recorded = set(re.findall(r"record: (\S+)", texts[0]))
    names = {
        name
        for text in texts
        for name in re.findall(r"(?<![\w:])(?:\w+:)?poorhttp_\w+(?::\w+)?", text)
    }
    assert {name for name in names if ":" in name} == recorded
    assert {name for name in names if ":" not in name and not known(name)} <= {"poorhttp_alerts"}


def test_every_alert_is_explained() -> None:
    page = (ROOT / "docs/guides/alerts.md").read_text()
    text = RULES.read_text()
    assert re.findall(r"alert: (\w+)", text) == re.findall(r"^\| `(Poorhttp\w+)` ", page, re.M)
    rows = dict(re.findall(r"^\| `(Poorhttp\w+)` (.*)$", page, re.M))
    for rule in text.split("- alert: ")[1:]:
        for runbook in re.findall(r"runbook: docs/guides/([\w-]+\.md)", rule):
            assert f"({runbook})" in rows[rule.split("\n")[0]]
            assert (ROOT / "docs/guides" / runbook).exists()


@pytest.mark.parametrize("words", [("rules", str(RULES)), ("config", "scrape.yml")])
def test_promtool_accepts(words: tuple[str, str]) -> None:
    need("promtool")
    done = run("promtool", "check", *words, cwd=PROMETHEUS)
    assert done.returncode == 0, done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()


def test_prometheus_can_read_the_queries(tmp_path: Path) -> None:
    """As rules, which promtool reads; with a period in place of Grafana's variable."""
    need("promtool")
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, (_, query) in enumerate(queries())
    ]
    # JSON is YAML.
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "all", "rules": rules}]}))
    done = run("promtool", "check", "rules", str(tmp_path / "rules.yml"))
    assert done.returncode == 0, done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_each_alert_fires_and_none_without_cause(tmp_path: Path) -> None:
    need("promtool")
    for path in (RULES, ROOT / "tests/cases/prometheus/rules.test.yml"):
        shutil.copy(path, tmp_path)
    done = run("promtool", "test", "rules", "rules.test.yml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    cases = (tmp_path / "rules.test.yml").read_text()
    for alert in re.findall(r"alert: (\w+)", RULES.read_text()):
        assert alert in cases


OPENMETRICS = "application/openmetrics-text"

#: What Prometheus 2.42 and 3.5 send, and others.
ACCEPTS = [
    ("", False),
    ("*/*", False),
    ("text/html,application/xhtml+xml,*/*;q=0.8", False),
    ("text/plain", False),
    (OPENMETRICS, True),
    (
        "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
        "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
        True,
    ),
    (
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;"
        "escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
        True,
    ),
    ("Application/OpenMetrics-Text; Version=1.0.0", True),
    ("text/plain;q=0.9,application/openmetrics-text;q=0.5", False),
    ("text/plain;q=0.5,application/openmetrics-text;q=0.5", True),
    ("application/openmetrics-text;q=0", False),
    ("application/openmetrics-text;version=2.0.0", False),
    ("application/openmetrics-text;q=nonsense", False),
    (",;,q=1;;application/openmetrics-text", False),
]


@pytest.mark.parametrize(("accept", "wanted"), ACCEPTS)
def test_which_format(accept: str, wanted: bool) -> None:
    content_type, text = metrics.render(document(), accept)
    assert content_type == (
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
        if wanted
        else "text/plain; version=0.0.4; charset=utf-8"
    )
    assert text.endswith("# EOF\n") == wanted
    assert text.startswith("# TYPE poorhttp info\n" if wanted else "# HELP poorhttp_info ")


def samples(text: str, *, is_open: bool) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """All samples, read by the parser of Prometheus' own client; each one stands there once."""
    read: Callable[[str], Any] = (
        openmetrics_parser.text_string_to_metric_families
        if is_open
        else parser.text_string_to_metric_families
    )
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in read(text):
        assert family.documentation
        assert family.type != "unknown"
        for each in family.samples:
            key = (each.name, frozenset(each.labels.items()))
            assert key not in found
            found[key] = each.value
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_can_be_read(name: str) -> None:
    """By strict parsers; both formats have the same samples."""
    status = DOCUMENTS[name]()
    prometheus = samples(metrics.render(status, "")[1], is_open=False)
    opened = samples(metrics.render(status, OPENMETRICS)[1], is_open=True)
    created = {key for key in opened if key[0].endswith("_created")}
    those = {f"poorhttp_worker_{name}_created" for name in ("requests", "cpu_seconds")}
    assert {key[0] for key in created} == those
    assert {key: value for key, value in opened.items() if key not in created} == prometheus
    for text in (text for key in prometheus for _, text in key[1]):
        assert text.isprintable()
    metrics.render(status, "")[1].encode()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_promtool_has_nothing_to_say(name: str) -> None:
    need("promtool")
    text = metrics.render(DOCUMENTS[name](), "")[1].encode()
    words = ("promtool", "check", "metrics")
    done = subprocess.run(words, input=text, capture_output=True, check=False, timeout=HANG)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_values() -> None:
    """Every figure of the document is in its place."""
    status = document()
    found = samples(metrics.render(status, "")[1], is_open=False)

    def value(name: str, **labels: str) -> float:
        return found[f"poorhttp_{name}", frozenset(labels.items())]

    (only,) = status["services"]
    figures = only["figures"]
    for name, figure in {
        "requests_total": "requests",
        "requests_timed_out_total": "timed_out",
        "requests_departed_total": "departed",
        "received_bytes_total": "bytes_received",
        "sent_bytes_total": "bytes_sent",
        "connections_accepted_total": "accepted",
        "tls_handshakes_total": "tls_handshakes",
        "tls_handshake_failures_total": "tls_failures",
        "http2_connections": "http2_connections",
        "http2_streams": "http2_streams",
        "http2_connections_failed_total": "http2_failures",
        "upgrades_total": "upgrades",
        "spooled_bytes_total": "spooled_bytes",
        "static_cache_hits_total": "cache_hits",
        "static_cache_misses_total": "cache_misses",
        "interpreter_wait_seconds_total": "interpreter_wait",
        "requests_in_flight": "in_flight",
        "requests_in_hand": "in_flight",
        "requests_queued": "queued",
        "oldest_request_seconds": "oldest",
    }.items():
        assert value(name) == figures[figure], name  # type: ignore[literal-required]
    for code in ("2xx", "3xx", "4xx", "5xx"):
        assert value("responses_total", code=code) == figures["responses"][code]
    for side, number in figures["http2_resets"].items():
        assert value("http2_streams_reset_total", by=side) == number
    for code, number in figures["refused"].items():
        assert value("requests_refused_total", code=code) == number
    for state, number in figures["connections"].items():
        assert value("connections_by_state", state=state) == number
    assert value("connections") == 51
    assert value("upgraded") == 8
    assert value("requests_unread") == 4
    assert value("utilization") == 3 / 16
    assert value("workers_by_state", state="serving") == 2
    assert value("workers_by_state", state="retiring") == 0
    assert value("proportional_memory_bytes") == 64_000_001
    for reason, number in only["restarts"].items():
        assert value("worker_restarts_total", reason=reason) == number
    for index, one in enumerate(only["workers"], 1):
        place = str(index)
        assert value("worker_info", worker=place, pid=str(one["pid"])) == 1
        assert value("worker_requests_total", worker=place) == one["requests"]
        assert value("worker_cpu_seconds_total", worker=place) == one["cpu"]
        assert value("worker_resident_memory_bytes", worker=place) == one["rss"]
        assert value("worker_answering", worker=place) == 1
    assert value("last_reload_successful") == 1
    assert value("reloads_total", result="failed") == 1
    assert value("lost_log_lines_total") == 6
    assert value("info", version="1.2.3", python="3.13.1") == 1
    for part in ("waiting", "application", "sending"):
        durations = figures[part]
        passed = list(itertools.accumulate(durations["counts"]))
        for bound, total in zip([*map(str, BOUNDS), "+Inf"], passed, strict=True):
            assert value(f"request_{part}_seconds_bucket", le=bound) == total
        assert value(f"request_{part}_seconds_count") == passed[-1]
        assert value(f"request_{part}_seconds_sum") == durations["sum"]


def test_several_services_have_labels() -> None:
    found = samples(metrics.render(troubled(), "")[1], is_open=False)
    assert found["poorhttp_workers_wanted", frozenset({("service", "shop")})] == 5
    assert found["poorhttp_workers_wanted", frozenset({("service", "chat")})] == 1
    # No capacity in gevent, and no utilization.
    assert ("poorhttp_capacity", frozenset({("service", "chat")})) not in found
    assert ("poorhttp_utilization", frozenset({("service", "chat")})) not in found
    assert found["poorhttp_last_reload_successful", frozenset()] == 0


def test_of_two_workers_with_a_number_the_one_that_serves() -> None:
    """While a worker is replaced."""
    status = document()
    retiring = worker(0, pid=7, state="retiring", requests=99)
    starting = worker(1, pid=8, state="starting", requests=0)
    status["services"][0]["workers"] = [retiring, starting, worker(0), worker(1)]
    found = samples(metrics.render(status, "")[1], is_open=False)
    names = [key for key in found if key[0] == "poorhttp_worker_requests_total"]
    assert len(names) == 2
    assert ("poorhttp_worker_info", frozenset({("worker", "1"), ("pid", "101")})) in found
    assert ("poorhttp_worker_info", frozenset({("worker", "2"), ("pid", "102")})) in found


def test_what_is_unknown_has_no_sample() -> None:
    status = document()
    status["reloads"]["last"] = None
    status["services"] = [service(workers=1)]
    only = status["services"][0]["workers"][0]
    only["rss"] = only["pss"] = 0
    names = {key[0] for key in samples(metrics.render(status, "")[1], is_open=False)}
    memory = ("proportional", "worker_resident", "worker_proportional")
    unknown = {f"poorhttp_{kind}_memory_bytes" for kind in memory}
    unknown |= {f"poorhttp_last_reload_{what}" for what in ("successful", "timestamp_seconds")}
    assert not names & unknown


def test_labels_are_few() -> None:
    """Declared ones only, and those of the service and the worker."""
    for family, those in collect(troubled()):
        for sample in those:
            assert set(sample.labels) <= {"service", "worker", *family.labels}


def test_the_names_are_known_and_stay() -> None:
    """Dashboards have them: a name may be added, but none removed or changed."""
    known = (ROOT / "tests/cases/prometheus/metric_names.txt").read_text().splitlines()
    assert [f"{family.full_name} {family.kind}" for family in FAMILIES] == known


def test_the_page_has_all_metrics() -> None:
    page = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
    run = "python -m poorhttp.plugins.monitor.metrics.reference > docs/reference/metrics.md"
    assert page == reference.page(), f"run: {run}"
