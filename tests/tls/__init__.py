"""TLS: connections and certificates.

test_certificates.py    Certificates over TLS: hosts, clients, tickets, redirect, HSTS
test_transports.py      Transports of other plug-ins, and options that need an address with TLS
test_connections.py     Requests, responses of every shape, orderly ends, failing handshakes
"""
