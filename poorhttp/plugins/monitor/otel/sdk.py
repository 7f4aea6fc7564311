"""OpenTelemetry's SDK, set up by its own environment variables (`OTEL_...`).

`opentelemetry-instrument` does the same by modules of the SDK that are not public. Here it is done
with public classes, and with the entry points by which exporters register.
"""

from __future__ import annotations

import os

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, how_to_install
from poorhttp.plugins.monitor.options import Monitoring

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from typing import Any

    from opentelemetry.sdk.resources import Resource

#: What the option needs, and where it is.
NEEDS = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")

#: Protocols of OTLP, and the names by which their exporters register.
PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def check(settings: Settings) -> None:
    """Check that the SDK is installed, and the exporters that are wanted, without importing them.

    Raises:
        ConfigError: one is not.
    """
    from importlib.util import find_spec

    for name in NEEDS:
        try:
            found = find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ConfigError(
                f"{settings.origin('otel')}: {name} is not installed; {how_to_install('otel')}"
            )
    milliseconds("OTEL_METRIC_EXPORT_INTERVAL", 1)
    for what in ("metrics", "traces"):
        if settings.of(Monitoring).otel in ("on", what):
            _entry_points(what)


def resource() -> Resource:
    """Return the attributes of this service: of `OTEL_SERVICE_NAME` and the like."""
    from opentelemetry.sdk.resources import SERVICE_NAME, Resource

    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        found = found.merge(Resource({SERVICE_NAME: "poorhttp"}))
    return found


def exporters(what: str) -> list[Any]:
    """Return the exporters of `metrics` or `traces`; none if the environment says so.

    Raises:
        ConfigError: there is no exporter of such a name.
    """
    return [entry_point.load()() for entry_point in _entry_points(what)]


def _entry_points(what: str) -> list[EntryPoint]:
    """Return the entry points of exporters.

    Raises:
        ConfigError: there is none of such a name.
    """
    from importlib.metadata import entry_points

    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    found = []
    for text in os.environ.get(f"OTEL_{what.upper()}_EXPORTER", "otlp").split(","):
        variable, name = f"OTEL_{what.upper()}_EXPORTER", text.strip()
        if name in ("none", ""):
            continue
        if name == "otlp":
            name = PROTOCOLS["http/protobuf"]
            for each in (
                "OTEL_EXPORTER_OTLP_PROTOCOL",
                f"OTEL_EXPORTER_OTLP_{what.upper()}_PROTOCOL",
            ):
                if protocol := os.environ.get(each, "").strip():
                    variable, name = each, PROTOCOLS.get(protocol, protocol)
        those = list(entry_points(group=f"opentelemetry_{what}_exporter", name=name))
        if not those:
            raise ConfigError(
                f'{variable}: OpenTelemetry has no exporter "{name}" of {what} here; install the '
                "package that has it, or choose another one"
            )
        found.append(those[0])
    return found


def milliseconds(variable: str, default: int) -> float:
    """Return the seconds of an environment variable in milliseconds.

    Raises:
        ConfigError: it is no such number.
    """
    text = os.environ.get(variable, "").strip() or str(default)
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 10**9):
        raise ConfigError(f'{variable}: "{text}" is not a number of milliseconds')
    return int(text) / 1000
