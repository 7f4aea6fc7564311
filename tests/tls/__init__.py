"""TLS: connections and certificates.

test_certificates.py    Certificates over TLS: hosts, clients, tickets, redirect, HSTS
test_connections.py     Requests, responses of every shape, orderly ends, failing handshakes
"""
