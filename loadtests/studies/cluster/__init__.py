"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off.

Each host is a network namespace (`tests.testkit.network`).

- `experiments`: does it under a steady load (`loadtests.clients.steady`).
- `study`: the promised figures, the report, and the study.
"""
