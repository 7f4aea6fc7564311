"""The main process: it keeps the sockets and the workers, and serves nobody itself.

`main` acts on signals; `fleet` holds the teams that serve, come and leave; a `team` are the workers
of one service; `worker_process` and `template` are its children as it sees them, `ledger` what they
have in hand; `upgrade` is another main process that takes over; `watchdog` tells systemd.
What a child does stands in `poorhttp.process.fork`, and the line between both in
`poorhttp.process.control_channel`.
"""

from poorhttp.supervisor.launcher import run

__all__ = ["run"]
