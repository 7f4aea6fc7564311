"""Common parts of the studies after the one of 2005, Uniserve beside Apache.

- `remote`: networks between client and server.
- `past`: figures of the study.
"""
