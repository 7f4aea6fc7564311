"""Several processes, each of them `single`.

The supervisor opens the sockets, forks the workers and replaces those that die; they share the
connections fairly (`core/reactor/src/connection/accept_balance.rs`). For handlers that compute: every core is used,
and a crash takes down nothing but its own requests.
"""

from __future__ import annotations

from poorhttp.modes.single import run

__all__ = ["run"]
