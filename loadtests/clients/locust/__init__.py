"""Locust as a client: one process, or a master and workers.

- `swarm`: starts the processes, ends them, and makes a load of what they report.
- `recorder`: inside of Locust, keeps the outcome of each request.
- `users`: the locustfile of the lab's own users.
"""

from __future__ import annotations

from loadtests.clients.locust.swarm import drive, missing, own, version

__all__ = ["drive", "missing", "own", "version"]
