"""The options of hooks: functions that are called when a worker starts or ends, and on a reload.

In an ini file they stand in `[hooks]` without their prefix; `worker_start = module:function`.
"""

from __future__ import annotations

from poorhttp.config.options.option import Repeatable

#: What the names of the options begin with, except in the section `[hooks]`.
PREFIX = "hook_"

#: The placeholder of options that name functions to call. Those of hooks get an argument, the
#: others get none.
FUNCTION = "FUNCTION"

#: The options whose functions run in a process of their own; the others run in the workers.
IN_OWN_PROCESS = ("hook_server_ready", "hook_worker_exit", "hook_worker_timeout", "hook_reload")


def function(text: str) -> str:
    """Read `package.module:function`; an empty text is no function."""
    module, _, name = text.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if text and not all(part.isidentifier() for part in parts):
        raise ValueError(f'"{text}" names no function; write it as package.module:function')
    return text


class Hooks:
    """Functions that are called for events."""

    GROUP = "Hooks"

    hook_server_ready = Repeatable(
        function,
        (),
        "Function to call when all workers serve for the first time, with a `ServerInfo`.",
        metavar=FUNCTION,
        shared=True,
        reason="It runs in the process of the hooks, after each start and upgrade (USR2), but not "
        "after a reload. gunicorn `when_ready`.",
    )
    hook_worker_start = Repeatable(
        function,
        (),
        "Function to call in each worker before it serves, with a `WorkerInfo`.",
        metavar=FUNCTION,
        reason="It runs in each worker when the application is loaded, after the functions of "
        "`after_fork`, also with `preload`. Open connections and start threads here. If it fails, "
        "the worker does not serve. gunicorn `post_fork` and `post_worker_init`.",
    )
    hook_worker_exit = Repeatable(
        function,
        (),
        "Function to call when a worker has ended or was killed, with a `WorkerInfo`.",
        metavar=FUNCTION,
        reason="It runs in the process of the hooks. Workers of a start or reload that fails do "
        "not call it. `reason` tells how the worker ended: `recycled`, `reloaded`, `upgraded`, "
        "`stopped`, `timeout`, `promoted` (others are forked from it), `killed` or `exited`. "
        "With `preload` it also reports the preloading process, as number 0. gunicorn "
        "`child_exit`.",
    )
    hook_worker_timeout = Repeatable(
        function,
        (),
        "Function to call when the server gives up on a worker, with a `WorkerInfo`.",
        metavar=FUNCTION,
        reason="It runs in the process of the hooks, when a request cannot be interrupted "
        "(`request_timeout`), when the worker does not end within `graceful_timeout`, or when it "
        "stays stopped (SIGSTOP). gunicorn `worker_abort`, which runs in the worker.",
        needs_main=True,
    )
    hook_reload = Repeatable(
        function,
        (),
        "Function to call when a reload (HUP) has succeeded or failed, with a `ReloadInfo`.",
        metavar=FUNCTION,
        shared=True,
        reason="It runs in the process of the hooks of the version that serves from then on: the "
        "new one, or the previous one after a failure. gunicorn `on_reload`, which runs before.",
        needs_main=True,
    )
