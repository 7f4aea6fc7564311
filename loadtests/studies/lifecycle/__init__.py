"""Servers in operation: reloaded, upgraded, recycled, killed, timed out and stopped under load.

- `study`: the command `operate`.
- `experiments`: the experiments `operate`.
- `trial`: a server under steady load (`loadtests.clients.steady`), and the record of it.
- `promises`: the promised figures.
- `report`: the report.
"""

from __future__ import annotations
