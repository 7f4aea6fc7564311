"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off.

Each host is a network namespace (`loadtests.network`).

- `members`: hosts with a server each, and HAProxy or nginx before them.
- `study`: does it under a steady load (`loadtests.clients.steady`); promised figures, report.
"""
