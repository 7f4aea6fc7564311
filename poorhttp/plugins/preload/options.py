"""The options of preloading: workers are forked from a process with the application."""

from __future__ import annotations

from poorhttp.config.options.hooks import FUNCTION
from poorhttp.config.options.option import IN_PROCESSES, Option, Repeatable, WordList
from poorhttp.config.parsers import boolean, integer, line


class Preloading:
    """Workers that are forked from a process that has loaded the application."""

    GROUP = "Modes and workers"
    AVAILABLE = IN_PROCESSES

    preload = Option(
        boolean,
        "off",
        "Load the application once, before the workers are forked, so that they share its memory.",
        reason="A separate process loads it. A reload (HUP) starts a new one, so changes still "
        "take effect. Off, because database connections and threads that the application opens "
        "while it is loaded do not survive a fork: open them in `hook_worker_start`.",
        common=True,
        needs_main=True,
    )
    refork_after = WordList(
        integer(1, 2**63 - 1),
        (),
        "With `preload`: when a worker has begun this many requests, replace the others by forks "
        "of it. Several numbers apply to successive generations of workers.",
        metavar="N",
        reason="Workers then also share what requests have imported, compiled and cached. The "
        "worker finishes its requests first, and no request is lost. Off, because each fork "
        "inherits everything that the worker has opened: close it in `before_refork` "
        "(docs/guides/memory.md). `1000, 10000` suits most applications. pitchfork "
        "`refork_after`, puma `fork_worker`.",
    )
    before_refork = Repeatable(
        line,
        (),
        "Function to call in a worker from which others are about to be forked, "
        "`package.module:function`.",
        metavar=FUNCTION,
        reason="It closes connections and ends threads, which do not survive a fork. It is called "
        "without arguments when the worker has finished its requests. If it fails, or if threads "
        "remain, no worker is forked from this one. Each fork calls `after_fork`.",
    )
