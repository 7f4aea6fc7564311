"""The study `operate`: servers reloaded, upgraded, recycled, killed and stopped under load.

- `study`: the command `operate`, the promised figures and the report.
- `experiments`: a server under steady load (`loadtests.clients.steady`), and what is done to it.
"""

from __future__ import annotations
