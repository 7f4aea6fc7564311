"""The main process: keeps the listening sockets open and the workers running.

launcher.py             starts a main process, or the standalone server
supervisor.py           the loop: signals, reload, upgrade, stop
generations.py          worker pools of all generations: serving, starting, retiring
tasks.py                runs the tasks of the loop: one that fails keeps no other from running
component.py            what plug-ins add to the main process
metric.py               what plug-ins add to the metrics
supervised_process.py   one process of a component: forked, and replaced when it dies
components.py           runs components: one that fails, is slow or hangs is named
hangs.py                a thread that notices a plug-in that does not return, and stops the server
spawner.py              what forks the workers of a service: the main process, or another one
worker_pool.py          the workers of one service
worker_handle.py        one worker, as the main process sees it
scoreboard.py           requests in flight and counters of each worker, in shared memory
backoff.py              pauses between restarts after early crashes
binary_upgrade.py       starts a new main process that takes over (USR2)
hooks/                  calls functions of the application for events, in processes of their own
"""

from poorhttp.supervisor.binary_upgrade import report_failure
from poorhttp.supervisor.launcher import run

__all__ = ["report_failure", "run"]
