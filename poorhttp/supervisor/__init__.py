"""The main process: it keeps the sockets and the workers, and serves nobody itself.

launcher.py        begins, with a main process or without one
supervisor.py      the loop: signals, reload, upgrade, stop
generations.py     worker pools that serve, that are to come, that leave
worker_pool.py     the workers of one service
worker_handle.py   one worker, as the main process sees it
preloader.py       the process that is forked for each worker (`preload`)
scoreboard.py      requests in flight and counters of each worker, in shared memory
backoff.py         pauses between restarts after early crashes
saturation.py      log lines when all threads of a worker are busy
watchdog.py        asks workers whether they answer, for systemd
upgrade.py         a new main process takes over (USR2)
admin/             health and metrics at the address `admin`
"""

from poorhttp.supervisor.launcher import run

__all__ = ["run"]
