"""Locust as a client: one process, or a master and workers; also as many injectors.

``recorder`` runs inside of Locust and keeps what became of each request, ``visitor`` and
``injector`` are locustfiles, ``swarm`` starts the processes and ends them, and ``driving`` and
``injection`` are what is made of it.
"""

from __future__ import annotations

from loadtests.clients.locust.driving import drive, own
from loadtests.clients.locust.injection import Injection, Injector, inject
from loadtests.clients.locust.swarm import missing, version

__all__ = ["Injection", "Injector", "drive", "inject", "missing", "own", "version"]
