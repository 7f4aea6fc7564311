"""The study `http2`: requests on streams of HTTP/2, memory, attacks and event streams.

- `study`: the class, its steps and report.
- `memory`: connections and streams that are open, and what they take.
- `attacks`: known attacks, what they cost the server, and what they do to another client.
- `events`: streams of server-sent events, what they take, and what they do to another client.
"""
