"""Rules and alerts with Prometheus' own tools, and the dashboard: its form, its queries."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from poorhttp.plugins.monitor.metrics.families import FAMILIES
from tests.packages import need
from tests.support.certificate import certificate
from tests.support.proxies import WebServer, reserve
from tests.testkit.client import Connection
from tests.testkit.server import ROOT, Server, run, wait_for

PROMETHEUS = ROOT / "conf/prometheus"
GRAFANA = ROOT / "conf/grafana"
RULES = PROMETHEUS / "poorhttp.rules.yml"

#: What follows the name of a histogram, or of nothing but that.
SUFFIXES = ("_bucket", "_sum", "_count", "")


def known(name: str) -> bool:
    """Whether there is a sample of this name."""
    return any(
        name.removesuffix(suffix) == family.full_name for family in FAMILIES for suffix in SUFFIXES
    )


def queries() -> Iterator[tuple[str, str]]:
    """The title of each panel of the dashboard, with each of its queries."""
    for panel in json.loads((GRAFANA / "poorhttp.json").read_text())["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def test_the_dashboard_is_made_of_its_program() -> None:
    done = run("python3", str(GRAFANA / "dashboard.py"))
    assert done.stdout == (GRAFANA / "poorhttp.json").read_text(), (
        "python conf/grafana/dashboard.py > conf/grafana/poorhttp.json"
    )


def test_grafana_can_read_the_dashboard() -> None:
    """By its own Foundation SDK: nothing is lost, as something of an unknown name would be."""
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    dashboard = json.loads((GRAFANA / "poorhttp.json").read_text())
    read = Dashboard.from_json(dashboard)
    again = json.loads(json.dumps(read, default=lambda model: model.to_json()))
    assert contains(again, dashboard)


def contains(whole: object, part: object) -> bool:
    """Whether all keys and items of `part` are in `whole`, too."""
    if isinstance(whole, dict) and isinstance(part, dict):
        return all(key in whole and contains(whole[key], value) for key, value in part.items())
    if isinstance(whole, list) and isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part


def test_panels_do_not_overlap() -> None:
    dashboard = json.loads((GRAFANA / "poorhttp.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


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


# Prometheus itself


class Prometheus(WebServer):
    """Prometheus with the files of conf/, which scrapes one server every second."""

    def __init__(self, folder: Path, target: str) -> None:
        need("prometheus")
        reserved = reserve()
        self.port: int = reserved.getsockname()[1]
        text = (PROMETHEUS / "scrape.yml").read_text()
        text = text.replace("127.0.0.1:9090\n    #", f"{target}\n    #").replace("15s", "500ms")
        assert target in text
        (folder / "prometheus.yml").write_text(f"global: {{evaluation_interval: 1s}}\n{text}")
        shutil.copy(RULES, folder)
        super().__init__(
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
            reserved=[reserved],
        )
        wait_for(self.is_listening, "Prometheus listening")

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its HTTP interface."""
        with Connection(("127.0.0.1", self.port)) as connection:
            response = connection.request("GET", f"/api/v1/{path}?{urlencode(parameters)}")
        answer = response.json() if response.status != 503 else {"status": "starting"}
        assert response.status in (200, 503), answer
        return answer.get("data")

    def values(self, query: str) -> list[float]:
        """What a query finds at this moment."""
        data = self.ask("query", query=query)
        return [float(each["value"][1]) for each in data["result"]] if data else []


@pytest.mark.full
def test_the_real_prometheus(tmp_path: Path) -> None:
    """It scrapes without a fault, all rules can be evaluated, each panel has something to show."""
    certificate().write(tmp_path / "tls.pem")
    options = ("--admin", "127.0.0.1:0", "--workers", "2", "--tls-certificate")
    bind = ("127.0.0.1:0", "https://127.0.0.1:0")
    with Server(
        "tests/apps/gate.py", "threading", *options, str(tmp_path / "tls.pem"), bind=bind
    ) as server:
        target = server.wait_line(re.compile(r"/-/metrics .* at http://(\S+)"))[1]
        with Prometheus(tmp_path, target) as prometheus:
            wait_for(lambda: prometheus.values("poorhttp_ready") == [1], "a scrape")
            wait_for(lambda: prometheus.values("poorhttp_requests_total"), "figures")

            def shows(query: str) -> bool:
                server.get("/process")
                query = re.sub(r"\$(job|instance|service)", ".*", query)
                return prometheus.values(query.replace("$__rate_interval", "10s")) != []

            for title, query in queries():
                wait_for(lambda query=query: shows(query), title)  # type: ignore[misc]
            (active,) = prometheus.ask("targets")["activeTargets"]
            assert (active["health"], active["lastError"]) == ("up", "")
            wait_for(
                lambda: {rule["health"] for rule in rules_of(prometheus)} == {"ok"}, "all rules"
            )
            assert not [rule["name"] for rule in rules_of(prometheus) if rule.get("alerts")]
            assert "level=warn" not in prometheus.log()
            assert "level=error" not in prometheus.log()


def rules_of(prometheus: Prometheus) -> list[dict[str, Any]]:
    """All rules, with how they are."""
    return [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
