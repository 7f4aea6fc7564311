"""The study `ordered`: connect, processing and total time of requests, sorted, as percentiles.

- `study`: the steps: each content at each number of clients, in interleaved rounds.
- `contents`: the requests: content, number, concurrency.
- `measuring`: a server loaded by a number of requests, and every one of them timed.
- `second_client`: comparison of our client with Apache Bench.
- `report`: the report.
"""
