"""Functions and classes of the extension module `_core` that only plug-ins of the server use."""

from poorhttp._core import (
    Inotify,
    TlsConfig,
    TlsSettings,
    UpgradedConnection,
    advance_tickets,
    self_signed,
    use_kernel_tls,
)

__all__ = [
    "Inotify",
    "TlsConfig",
    "TlsSettings",
    "UpgradedConnection",
    "advance_tickets",
    "self_signed",
    "use_kernel_tls",
]
