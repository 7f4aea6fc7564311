"""TLS certificate for `localhost` and 127.0.0.1, with the authority that has issued it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import trustme


@dataclass(frozen=True)
class Certificate:
    """A key with its certificate, and the authority that clients have to trust."""

    authority: trustme.CA
    issued: trustme.LeafCert

    def write(self, path: Path) -> None:
        """Write the key and the certificates above each other into one file."""
        self.issued.private_key_and_cert_chain_pem.write_to_path(str(path))

    def client_context(self) -> ssl.SSLContext:
        """What a client connects with; the system's authorities would take 25 ms to load."""
        return ssl.create_default_context(cadata=self.authority.cert_pem.bytes().decode())


@cache
def certificate() -> Certificate:
    """One for all tests of a process."""
    import trustme

    authority = trustme.CA()
    return Certificate(authority, authority.issue_cert("localhost", "127.0.0.1"))
