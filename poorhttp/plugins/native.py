"""Functions of the extension module that plug-ins use; what to do if a module is not compiled."""

from __future__ import annotations

import os

from poorhttp._core import (
    Inotify,
    UpgradedConnection,
    adopt_orphans,
    set_log_level,
    set_thread_name,
    share_log_level,
    sum_figures,
    use_kernel_tls,
    worker_metrics,
)

__all__ = [
    "Inotify",
    "UpgradedConnection",
    "adopt_orphans",
    "not_built",
    "set_log_level",
    "set_thread_name",
    "share_log_level",
    "sum_figures",
    "use_kernel_tls",
    "worker_metrics",
]


def not_built(error: ModuleNotFoundError) -> str:
    """Return what is to be done if an extension module is missing, for messages.

    A clone is built in steps, and the server never starts a compiler.
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if os.path.exists(os.path.join(root, "Makefile")):
        how = f"run `make modules` in {root}"
    else:
        how = "install the server again: then all of its modules are built"
    return f"the extension module {error.name} is not built; {how}"
