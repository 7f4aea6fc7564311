"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off.

Each host is a network namespace (`tests.testkit.network`).

- `experiments`: does it under a steady load (`loadtests.clients.steady`).
- `report`: the promised figures, and the report.
- `study`: the study.
"""
