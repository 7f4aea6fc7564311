"""The study `deadconn` of 2001: throughput and latency beside idle (dead) connections.

- `servers`: the servers, told to hold so many connections.
- `study`: the steps.
- `report`: the report.
"""
