"""The options of autoscaling: bounds of the numbers of threads and of workers."""

from __future__ import annotations

from poorhttp.config.options.option import Option
from poorhttp.config.parsers import integer


class Autoscaling:
    """Numbers that follow the load."""

    GROUP = "Modes and workers"

    min_threads = Option(
        integer(1, 4096),
        "4",
        "The fewest threads of a worker with `threads = auto`.",
        reason="A worker begins with so many, and comes back to them when some have had nothing to "
        "do for 10 s. With one alone, a request that computes for long would hold up all others. "
        "gunicorn has a fixed number, granian `blocking_threads` (adaptive up to it), FrankenPHP "
        "`num_threads`.",
    )
    max_threads = Option(
        integer(1, 4096),
        "64",
        "The most threads of a worker with `threads = auto`.",
        reason="One is added when requests have waited for one for 5 ms, and the interpreter is "
        "free. A thread that waits takes about 40 KiB, and whatever the application keeps for "
        "each, often a connection to a database. No thread is made while 90 % of the memory of the "
        "cgroup, or of the machine, are in use. If the application has a pool of connections with "
        "fewer, further threads wait for that: as many requests are answered, and those that need "
        "no connection do not wait. FrankenPHP `max_threads` (off).",
    )
    min_workers = Option(
        integer(0, 1024),
        "0",
        "The fewest workers with `workers = auto`, with which a service begins; 0: one for each "
        "usable CPU.",
        reason="CPUs are counted as for `workers` 0. uWSGI `cheaper`, Apache `StartServers`.",
    )
    max_workers = Option(
        integer(0, 1024),
        "0",
        "The most workers with `workers = auto`; 0: eight for each usable CPU.",
        reason="Workers are added while requests wait for one and a processor is idle that the "
        "quota of the cgroup allows, and while all workers of the server have less than 75 % of "
        "the memory of the cgroup or of the machine: each counts with its proportional share "
        "(PSS), or with `max_rss` if that is set. "
        "uWSGI `workers` with `cheaper`, PHP-FPM `pm.max_children`.",
    )
