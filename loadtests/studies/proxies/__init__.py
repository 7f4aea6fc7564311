"""The studies `proxies` and `gateways`: ours behind proxies; nginx before ours and before uWSGI.

- `experiments`: the requests of each test.
- `study`: the promised figures, the reports, and the studies.
"""
