"""Load generators and other clients. The generators return a `load.Load`.

- `registry`: all generators, in the order of the tables.
- `load`: a closed load, and its result as its client saw it.
- `program`: runs generators that are programs.
- `python_client`: our clients in Python, each a process of its own.
- `external`: wrk (with `wrk.lua`), ApacheBench, httperf and h2load.
- `http2_frames`, `http2_connection`: frames of HTTP/2, and a connection that sends any of them.
- `http2_attacks`, `http2_attacker`: attacks made of such frames, and a client that sends these.
- `native/`: our clients in C.
- `locust/`: Locust.
- `strict`: a client that sends exactly the given bytes and reads responses as RFC 9112 says.
- `connection`: a plain HTTP/1.1 connection, for checking answers and for idling.
- `curl`: by libcurl at given moments: HTTPS, HTTP/2, streams of events, WebSocket messages.
- `transfer`: uploads and downloads of large documents, checked to the last byte.
- `client_process`: a process of clients that answers each line with a line.
- `event_streams`: such a process: streams of server-sent events by HTTP/1.1 and HTTP/2.
- `sockets`: such a process: WebSockets and TLS connections that stay open over reloads.
- `adverse`: such a process: clients that are dead, slow, or do not read.
- `steady/`: such a process: clients that check every response.
"""
