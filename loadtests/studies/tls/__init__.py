"""The study `tls`: servers that speak TLS.

- `study`: the class, its servers and report.
- `experiments`: handshakes, answers over TLS, and the findings of testssl.sh.
"""
