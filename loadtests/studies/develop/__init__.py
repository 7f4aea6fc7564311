"""The study `develop`: time from a save to the first new response, ours beside others.

- `study`: the command `develop`, the promised figures and the report.
- `experiments`: files of a project (`loadtests.servers.projects`) are saved as editors do it, while
  clients poll (`loadtests.clients.steady.polling`); their responses are checked.
"""

from __future__ import annotations
