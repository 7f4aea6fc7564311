"""Certificates of a service, and TLS sessions for the reactor; the sources are in `core/`.

An extension module of its own, which only a server with TLS loads: it is larger than the rest.
"""

from collections.abc import Callable, Sequence
from typing import Final, final

@final
class TlsSettings:
    """Contents of certificate and key files, wiped with this object, and options of TLS."""

    def __init__(
        self,
        certificates: Sequence[str],
        keys: Sequence[str],
        ocsp: Sequence[str] = (),
        client_ca: str | None = None,
        *,
        opener: Callable[[str], int],
        client_auth_required: bool = False,
        only_tls13: bool = False,
        session_timeout: int = 0,
        kernel: bool = False,
        http2: bool = False,
    ) -> None:
        """Read the files, which have to be regular ones of a limited size.

        Args:
            certificates: paths, each with one in `keys`, and the first ones with one of an OCSP
                response in `ocsp`.
            client_ca: path of the issuers of client certificates.
            opener: as that of `open`; decides which symbolic links are followed.
            session_timeout: in seconds; 0 for no tickets.
            kernel: see `use_kernel_tls` of `poorhttp.plugins.native`.

        Raises:
            ValueError: with a sentence that begins with the name of a file.
        """

@final
class TlsConfig:
    """Certificates of a service. Processes that are forked have them too."""

    def __init__(self, settings: TlsSettings) -> None:
        """Use the certificates; raise ValueError as `replace` does."""

    def replace(self, settings: TlsSettings) -> int:
        """Use others for new connections; return a descriptor with them, for other processes.

        Raises:
            ValueError: with a sentence that begins with the name of a file; nothing has changed.
            OSError: the descriptor cannot be made.
        """

    #: The file of each certificate, its hosts, begin and end (time stamps), and SHA-256.
    certificates: Final[list[tuple[str, list[str], int, int, str]]]
    #: A capsule for the reactor, which uses these certificates and those that replace them.
    shared: Final[object]
    #: What is wrong with the files, although they can be used: sentences.
    warnings: Final[list[str]]

def self_signed(names: Sequence[str], year: int) -> tuple[str, str]:
    """Make a certificate for hosts and addresses, valid around a year; return it and its key."""

def advance_tickets() -> None:
    """Wipe keys of session tickets whose time is over; using tickets does it too."""
