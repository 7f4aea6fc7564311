"""Search for the best configuration of an application, by measurement within a time budget.

- `command`: the command line.
- `target`: the user's application: how it is started, and its configuration file.
- `asking`, `recorded`: the requests of a search; those of an access log, JSON Lines or HAR.
- `configuration`: the candidates: modes, workers and threads.
- `trial`: one measurement of one candidate.
- `prior`: an estimate of every candidate's throughput from the first measurement.
- `search`: which candidate to measure next.
- `answer`: the best for throughput, for p99 and for memory.
- `choice`: the recommendation, what limits it, and the cost of other choices.
- `report`: reports on a terminal, as an ini file, and as a page.
- `prove`: comparison of the search with a measurement of all candidates.
"""

from __future__ import annotations
