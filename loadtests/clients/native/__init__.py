"""Load clients of the lab in C: they are compiled when a study needs them.

- `fetch`: for large responses, and for traces: the outcome of every request (`fetch.c`).
- `replay`: sends given requests, as fast as they are answered or at a rate (`replay.c`).
- `websocket`: has messages echoed on WebSockets (`websocket.c`).
- `tls`: handshakes and answers over TLS (`tls.c`, by OpenSSL).
- `client.h`: the common part of all: clock, connections, parts of an answer, line of the result.
- `compiled`: programs of the lab that are written in C, compiled when first needed.
"""
