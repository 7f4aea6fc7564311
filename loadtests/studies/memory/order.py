"""The order and the colours of configurations in tables and figures."""

from __future__ import annotations

from collections.abc import Iterable

from loadtests.servers.registry import colour_of
from loadtests.servers.registry.memory import servers


def in_order(names: Iterable[str]) -> list[str]:
    """As they are planned; those that are not known come last."""
    places = {server.name: place for place, server in enumerate(servers())}
    return sorted(names, key=lambda name: places.get(name, len(places)))


def colour(name: str) -> str:
    """That of a configuration, in all figures."""
    return {server.name: server.colour for server in servers()}.get(name, colour_of(name))


def ours(name: str) -> bool:
    """Whether it is one of our modes."""
    return name.startswith("poorhttp ")
