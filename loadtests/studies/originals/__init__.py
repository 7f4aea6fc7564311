"""Figures of the old studies that several studies need.

- `poorhttp_2010`: "Poor HTTP".
- `client_2001`: "Influence of the client on web server benchmarks".
"""

from __future__ import annotations
