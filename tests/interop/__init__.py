"""Interoperability of HTTP/2 with curl, Go, Java, Chromium and others: `make interop`.

`python -m tests.interop [CLIENT …]` runs each client without and with TLS, and prints a table. The
exit code is 1 if something is wrong; a client whose program is not installed is named.

programs.py       What each client is asked to do: programs, and libraries through their sources
served.py         The application that they talk to
test_interop.py   curl, nghttp and httpx, in `make test`

The folder `clients` has sources for Go, Java, Node and httpx, which print a line for each check.
"""
