"""Mode `forking`: several processes, each with one request at a time.

Workers share connections fairly (`core/reactor/src/overload/accept_balance.rs`). For handlers that
compute: every CPU is used, and a crash affects only the requests of its own process.
"""

from __future__ import annotations

from poorhttp.modes.single import run

__all__ = ["run"]
