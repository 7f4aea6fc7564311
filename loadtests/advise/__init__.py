"""Search for the best configuration of an application, by measurement within a time budget.

- `command`: the command line.
- `target`: the user's application: how it is started, and its configuration file.
- `commands`: in its place servers of others, by commands or URLs.
- `ini_file`: reader of a configuration file: sections, values, and their lines.
- `workload`: the requests of a search: paths, a Locust file, an access log, JSON Lines or HAR.
- `configuration`: the candidates, and what is expected of each after the first measurement.
- `trial`: one measurement of one candidate.
- `search`: which candidate to measure next.
- `answer`: the best for throughput, for p99 and for memory.
- `report`: the recommendation, what limits it, the cost of other choices; terminal, file, page.
"""
