"""conf/kubernetes: numbers and names agree with each other, and with our options."""

from __future__ import annotations

from typing import Any

import pytest

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from tests.support.container import only
from tests.testkit.server import ROOT

FOLDER = ROOT / "conf" / "kubernetes"


def read(name: str) -> Any:
    """The one document of a file."""
    import yaml

    return yaml.safe_load((FOLDER / name).read_text())


@pytest.fixture(scope="module")
def settings() -> Settings:
    """What the pods run."""
    (settings,) = loader.load({}, {}, str(FOLDER / "poorhttp.ini"))
    return settings


@pytest.fixture(scope="module")
def pod() -> Any:
    return read("deployment.yaml")["spec"]["template"]


@pytest.fixture(scope="module")
def container(pod: Any) -> Any:
    (container,) = pod["spec"]["containers"]
    return container


def test_all_speak_of_the_same_pods(pod: Any) -> None:
    deployment = read("deployment.yaml")
    labels = pod["metadata"]["labels"]
    assert labels == deployment["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert read("service.yaml")["spec"]["selector"] == labels
    assert read("disruption.yaml")["spec"]["selector"]["matchLabels"] == labels
    (spread,) = pod["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == labels
    target = read("autoscaler.yaml")["spec"]["scaleTargetRef"]
    assert (target["apiVersion"], target["kind"]) == (deployment["apiVersion"], deployment["kind"])
    assert target["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]


def test_ports(pod: Any, container: Any, settings: Settings) -> None:
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    (bind,) = settings.bind
    assert str(bind).rpartition(":")[2] == str(ports["http"]) == only("EXPOSE")
    assert str(settings.value("admin")).rpartition(":")[2] == str(ports["admin"])
    (port,) = read("service.yaml")["spec"]["ports"]
    assert port["targetPort"] == "http"
    notes = pod["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == str(ports["admin"])
    assert notes["prometheus.io/path"] == "/-/metrics"
    for kind, path in (("startup", "live"), ("liveness", "live"), ("readiness", "ready")):
        asked = container[f"{kind}Probe"]["httpGet"]
        assert asked == {"path": f"/-/{path}", "port": "admin"}, kind


def test_there_is_time_to_finish(pod: Any, container: Any, settings: Settings) -> None:
    """Who is killed earlier loses what it has in hand."""
    longest = settings.drain_delay + settings.drain_timeout + settings.graceful_timeout
    assert settings.drain_delay > 0
    assert "lifecycle" not in container
    assert pod["spec"]["terminationGracePeriodSeconds"] > longest
    probe = container["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"]
    assert settings.drain_delay > noticed, "it begins to stop before it is found not ready"
    names = ("drain_delay", "drain_timeout", "graceful_timeout")
    parts = " + ".join(f"{name} ({settings.value(name):g})" for name in names)
    assert parts in (FOLDER / "deployment.yaml").read_text()


def test_nothing_is_allowed(pod: Any, container: Any) -> None:
    user, _, group = only("USER").partition(":")
    assert pod["spec"]["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": int(user),
        "runAsGroup": int(group),
        "fsGroup": int(group),
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["spec"]["automountServiceAccountToken"] is False
    # Its variables for a Service of this name would begin as ours do.
    assert read("service.yaml")["metadata"]["name"] == "poorhttp"
    assert pod["spec"]["enableServiceLinks"] is False
