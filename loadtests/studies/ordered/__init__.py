"""The study `ordered`: connect, processing and total time of requests, sorted, as percentiles.

- `study`: the steps: each content at each number of clients, in interleaved rounds.
- `measuring`: the requests: content, number, concurrency; a server loaded by them, each timed.
- `second_client`: comparison of our client with Apache Bench.
- `report`: the report.
"""
