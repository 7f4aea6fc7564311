"""Development servers: from a save to the first new response, and its cost, ours beside others.

- `study`: the command `develop`.
- `experiments`: files of a project (`loadtests.servers.projects`) are saved.
- `author`: saves files as editors do.
- `browsers`: the process of polling clients (`loadtests.clients.steady.polling`), from the lab.
- `judgement`: checks their responses against the saved versions.
- `promises`: the promised figures.
- `report`: the report.
"""

from __future__ import annotations
