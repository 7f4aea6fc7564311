"""A steady load whose clients check every response.

- `clients`: the process of steady clients.
- `polling`: the process of polling clients of a development server.
- `handle`: the process of steady clients, seen from the lab.
- `connection`: a connection of a well-behaved client that checks every response.
- `http2_line`: the same over HTTP/2, whose streams carry the requests.
- `known_requests`: requests with known responses, and how a response is checked.
- `tally`: counts of responses and errors so far.
"""
