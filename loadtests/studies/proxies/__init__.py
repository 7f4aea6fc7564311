"""The studies `proxies` and `gateways`: ours behind proxies; nginx before ours and before uWSGI.

- `experiments`: the requests of each test.
- `promises`: the promised figures.
- `report`: the reports.
- `study`: the studies.
"""
