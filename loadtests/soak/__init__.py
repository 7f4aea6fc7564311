"""A soak test: mixed load with every fault at once, for any time.

``python -m loadtests soak`` starts a server for each mode and lets clients of every kind at it,
good and bad, while its processes are replaced. It fails if a single answer was wrong or somebody
else's, if the error log holds a line that nobody has expected, or if memory or descriptors have
grown.

- `command`: several soaks at the same time, each in a process of its own.
- `run`: one server under mixed load, from its start to the verdict.
- `incidents`: what is done to the server by a schedule: upgrades, reloads, kills, a full disk,
  jumps of the clock (`clock.c`).
- `clients`: clients of each kind, well-behaved and adverse.
- `protocols`: clients that speak TLS, HTTP/2, WebSocket or read event streams.
- `refused`: the malformed requests that one kind sends (`refused.jsonl`).
- `client`: their base class; a connection that tells right responses from wrong ones; and what
  they share: pauses, counts, what happens to the server.
- `gauge`: memory, descriptors, threads, temporary files and connections of the server.
- `error_log_check`: check of the server's error log.
- `report`: the report, made of the records.
"""
