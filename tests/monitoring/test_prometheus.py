"""Rules and alerts with Prometheus' own tools, and the queries of the dashboard."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from poorhttp.plugins.monitor.metrics.families import FAMILIES
from tests.packages import need
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
