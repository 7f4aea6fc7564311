"""Verdicts on two servers: one is faster, or the measurements do not tell.

`compare A B` measures two commands, servers or commits in turns, or reads two files of results.

- `command`: the command line: what A and B are, thresholds, exit code.
- `sides`: A and B as servers that can be started.
- `rounds`: measures both in interleaved rounds until the verdict is sure or the time is over.
- `quantities`: what is compared: CPU time per request, latencies, requests per second, memory.
- `stored`: verdicts on results of runs that were measured before.
- `thresholds`: conditions such as `p99 > 1.1 * base`.
- `report`: the verdict in words, as a section of a page, as JSON, CSV and JUnit.
- `trials`: how often the verdict is right: the same server twice, and one that is made slower.
"""
