"""Load generators that are programs of their own: wrk, ab, httperf and h2load.

- `wrk`: wrk, the client of most comparisons (with `wrk.lua`).
- `ab`: ApacheBench.
- `httperf`: httperf as a closed load.
- `h2load`: h2load of nghttp2, speaking HTTP/1.1.
"""
