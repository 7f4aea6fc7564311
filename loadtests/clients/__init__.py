"""Load generators and other clients. The generators return a `load.Load`.

- `registry`: all generators, in the order of the tables.
- `client`: the base class of generators.
- `load`: the result of a load as its client saw it.
- `program`: generators that are programs and print their result as one line of JSON.
- `asker`: our clients in Python, each a process of its own.
- `external/`: wrk, ApacheBench, httperf and h2load.
- `native/`: our clients in C.
- `locust/`: Locust.
- `connection`: a plain HTTP/1.1 connection, for checking answers and for idling.
- `transfer`: uploads and downloads of large documents, checked to the last byte.
- `client_process`: a process of clients that answers each line with a line.
- `steady/`, `adverse/`: such processes: clients that check every response, and adverse ones.
"""

from __future__ import annotations
