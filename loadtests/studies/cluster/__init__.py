"""The study `cluster`: three hosts behind a balancer, restarted, and one of them cut off.

Each host is a network namespace (`loadtests.network`).

- `members`: hosts with a server each, and a balancer before them.
- `balancer`: HAProxy and nginx with their configurations.
- `study`: does it under a steady load (`loadtests.clients.steady`); promised figures, report.
"""
