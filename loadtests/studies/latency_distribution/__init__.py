"""Connect, processing and total time over the ordered requests, as in the KLone study.

- `planning`: the steps: each content at each number of clients, in interleaved rounds.
- `contents`: the requests: content, number, concurrency.
- `measuring`: a server loaded by a number of requests, and every one of them timed.
- `witness`: comparison of our client with Apache Bench.
- `times`, `distributions`: curves and quantiles of times, of one round and of several.
- `report`, `remarks`: the report, and remarks made from its figures.
"""

from __future__ import annotations

from loadtests.servers.registry.latency_distribution import everyone
from loadtests.studies.latency_distribution.planning import NAME, plan
from loadtests.studies.latency_distribution.report import sections
from loadtests.studies.study import Study

STUDY = Study(
    NAME,
    "connect, processing and total time over the ordered requests",
    "KLone",
    everyone,
    plan,
    sections,
)
