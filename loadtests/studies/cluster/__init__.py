"""Three hosts behind HAProxy and nginx, restarted one after the other, and one of them cut off.

Each host is a network namespace (`tests.testkit.network`).

- `experiments`: does it under a steady load (`loadtests.clients.steady`).
- `report`: the promised figures and the page.
"""
