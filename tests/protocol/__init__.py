"""HTTP, WSGI and raw TCP: what is accepted, refused and limited.

test_client_abort.py        Clients that leave: before their request is run, within it, later
test_environ_keys.py        Keys of the environ: its page; names chosen by clients are not kept
test_h11_agreement.py       Agreement of our request parser with `h11`
test_head_cache.py          A repeated head is not parsed again, and shares nothing else
test_http.py                HTTP/1.0 and 1.1 in every mode (RFC 9110, RFC 9112); early hints
test_http2.py               HTTP/2: ways in, requests and responses as in HTTP/1.1
test_http2_agreement.py     Agreement of our HPACK and HTTP/2 with `hpack` and `h2`
test_http2_attacks.py       Attacks on HTTP/2: what is borne, and the error that ends each
test_http2_cases.py         The protocol cases over HTTP/2: the verdicts of HTTP/1
test_http2_life.py          HTTP/2: stop, reload, binary upgrade, idle time, metrics
test_http2_priorities.py    The order in which responses of one HTTP/2 connection are sent
test_http2_smuggling.py     HTTP/2 by which somebody wants another request, or another version
test_http2_streams.py       HTTP/2: streams beside each other, in turn, slow, left by their client
test_large_bodies.py        Large bodies of requests and responses: temporary files, space, memory
test_limits.py              Limits of time and of descriptors over real connections
test_queue_timeout.py       `queue_timeout`: who has waited too long for a thread is refused
test_request_timeout.py     `request_timeout`: a hanging request is interrupted, others go on
test_streamed_bodies.py     Request bodies that the application receives while it runs
test_tcp_services.py        Handlers of raw connections and their orderly end, in every mode
test_wsgi.py                PEP 3333 over real connections, in every mode
"""
