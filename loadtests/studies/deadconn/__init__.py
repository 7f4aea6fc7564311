"""The study `deadconn` of 2001: throughput and latency beside idle (dead) connections.

- `study`: the servers, told to hold so many connections, the steps, and the report.
"""
