"""Functions and classes of the extension module `_core` that only plug-ins of the server use."""

from poorhttp._core import (
    Inotify,
    UpgradedConnection,
    set_log_level,
    share_log_level,
    sum_figures,
    use_kernel_tls,
    worker_metrics,
)

__all__ = [
    "Inotify",
    "UpgradedConnection",
    "set_log_level",
    "share_log_level",
    "sum_figures",
    "use_kernel_tls",
    "worker_metrics",
]
