"""Finds the file, folder or module that a target names, without importing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from poorhttp.config.settings import Settings
from poorhttp.targets import find, wsgi
from poorhttp.targets.target import CALLABLE, CONFIGURATION

# Kinds of what a target names, beside those of a `Target`.
FILE = "file"
MODULE = "module"


def named(target: str) -> tuple[str, str]:
    """Return the kind of what a target names, and its path or dotted name; empty if it is wrong."""
    known, rest = find(target).kind, target.partition(":")[2]
    if known == CONFIGURATION:
        return CONFIGURATION, rest.partition("#")[0]
    if known and known != CALLABLE:
        return known, rest
    if known:
        target = rest
    place = wsgi.split(target)[0]
    if wsgi.is_path(place):
        return FILE, place
    return (MODULE, place) if wsgi.is_dotted(place) else ("", "")


def targets_of(services: Sequence[Settings]) -> Iterator[str]:
    """Yield the targets of services, of their hosts and of their mounts."""
    for service in services:
        for settings in (service, *service.hosts.values()):
            yield settings.target
            for _, target in settings.mount:
                yield target
