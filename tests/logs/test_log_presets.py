"""conf/logs: configurations of log shippers name keys that our lines have."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest

from tests.testkit.server import ROOT, Server, wait_for

PRESETS = ROOT / "conf/logs"
IDENTIFIED = "tests/apps/identified.py"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A line of each log, about one request."""
    folder = tmp_path_factory.mktemp("logs")
    access, error = folder / "access.log", folder / "error.log"
    options = (
        *("--access-log", str(access), "--access-log-format", "json", "--request-id", "on"),
        *("--error-log", str(error), "--error-log-format", "json"),
    )
    with Server(IDENTIFIED, "threading", *options, tracebacks=True) as server:
        assert server.get("/raise", f"traceparent: {TRACEPARENT}").status == 500
    (failed,) = [line for line in error.read_text().splitlines() if "ValueError" in line]
    return {"access.log": access.read_text().strip(), "error.log": failed}


@pytest.fixture(scope="module")
def keys(lines: dict[str, str]) -> set[str]:
    """The keys of both logs that are in these lines."""
    entries = [json.loads(line) for line in lines.values()]
    return {key for entry in entries for key in entry}


def test_alloy(keys: set[str]) -> None:
    text = re.sub(r"//.*", "", (PRESETS / "loki.alloy").read_text().replace("http://", ""))
    (expressions,) = re.findall(r"expressions = \{(.*?)\}", text, re.DOTALL)
    extracted = dict(re.findall(r"(\w+)\s*= \"(\w+)\"", expressions))
    assert set(extracted.values()) <= keys
    used = [*re.findall(r"source = \"(\w+)\"", text)]
    for values in re.findall(r"values = \{(.*?)\}", text, re.DOTALL):
        used += re.findall(r"(\w+)\s*=", values)
    assert set(used) == set(extracted)
    assert text.count("{") == text.count("}")
    components = set(re.findall(r'^([a-z._]+) "(\w+)" \{', text, re.MULTILINE))
    for kind, name in re.findall(r"[\[ ]((?:\w+\.)+)(\w+)\.(?:receiver|targets)", text):
        assert (kind.rstrip("."), name) in components


def test_filebeat(keys: set[str], lines: dict[str, str]) -> None:
    yaml = pytest.importorskip("yaml")
    config: dict[str, Any] = yaml.safe_load((PRESETS / "filebeat.yml").read_text())
    assert [each["paths"][0].rpartition("/")[2] for each in config["filebeat.inputs"]] == [*lines]
    assert all(each["parsers"][0]["ndjson"]["target"] for each in config["filebeat.inputs"])
    processors = {name: each[name] for each in config["processors"] for name in each}
    renamed = [field["from"] for field in processors["rename"]["fields"]]
    script = re.findall(r'Get\("(.*?)"\)', processors["script"]["source"])
    for field in [*renamed, *script, processors["timestamp"]["field"]]:
        assert field.removeprefix("poorhttp.") in keys, field
    targets = [field["to"] for field in processors["rename"]["fields"]]
    assert len(set(targets)) == len(targets) == len(set(renamed))
    # Go's way to write a time.
    form = re.sub(r"\d", "0", json.loads(lines["access.log"])["time"])
    (layout,) = processors["timestamp"]["layouts"]
    assert re.sub(r"\d", "0", layout) == form
    assert re.sub(r"\d", "0", processors["timestamp"]["test"][0]) == form


def test_cloudwatch(lines: dict[str, str]) -> None:
    config = json.loads((PRESETS / "cloudwatch.json").read_text())
    collected = config["logs"]["logs_collected"]["files"]["collect_list"]
    assert [each["file_path"].rpartition("/")[2] for each in collected] == [*lines]
    for each, line in zip(collected, lines.values(), strict=True):
        found = re.search(r'"time":"[^."]+', line)
        assert found
        datetime.strptime(found[0], each["timestamp_format"])


def test_logging(mode: str) -> None:
    config = str(PRESETS / "logging.json")
    options = ("--log-config", config, "--access-log", "-", "--access-log-format", "json")
    with Server(IDENTIFIED, mode, *options, "--request-id", "on") as server:
        assert server.get("/raise").status == 500
        wait_for(lambda: server.output().count("\n") >= 2, "both lines")
        entries = [json.loads(line) for line in server.output().splitlines()]
    (access,) = [entry for entry in entries if "target" in entry]
    (failed,) = [entry for entry in entries if entry.get("exception")]
    assert access["request_id"] == failed["request_id"]
    assert failed["logger"] == "poorhttp.error"
