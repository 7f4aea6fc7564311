"""Figures and findings of the old studies, as they are printed there.

- `epoll_2001`: ways to wait for events, beside dead connections.
- `client_2001`: "Influence of the client on web server benchmarks".
- `uniserve_2005`: Uniserve and Apache.
- `klone_2008`: "KLone against Boa, Lighttpd and Apache".
- `poorhttp_2010`: "Poor HTTP".
"""
