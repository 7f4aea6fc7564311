"""A certificate for this machine, made at the first start with `--https` and kept.

It is its own issuer, so a browser asks once whether to go on, and remembers the answer as long as
the certificate stays the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress

from poorhttp.config.address import Address
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.native import not_built
from poorhttp.process.safe_open import make_folders, open_regular, write_file

#: Names of this machine for itself.
NAMES = ("localhost", "127.0.0.1", "::1")

#: Addresses of every interface, which no browser goes to.
EVERYWHERE = ("0.0.0.0", "::")

#: Seconds for which a kept certificate must be valid yet.
LEAST_REST = 30 * 24 * 3600


def apply(settings: Settings) -> None:
    """Serve `https` at the addresses of `bind`; unless a certificate is given, with one of our own.

    Raises:
        ConfigError: it cannot be kept.
    """
    addresses = [_secure(address) for address in settings.bind]
    settings.set("bind", [(settings.origin("bind", n), text) for n, text in enumerate(addresses)])
    # Without the plug-in that has the option, the address is refused in a sentence.
    if "tls_certificate" in OPTIONS and not settings.value("tls_certificate"):
        hosts = [address.host for address in settings.bind if address.kind == "tcp"]
        place = settings.origin("https")
        settings.set("tls_certificate", [(place, _kept(hosts, place))])


def _secure(address: Address) -> str:
    is_plain = address.kind == "tcp" and address.protocol == "http"
    return f"https://{address}" if is_plain else str(address)


def _kept(hosts: Sequence[str], place: str) -> str:
    """Return the path of the file with a valid certificate for the hosts, and its key."""
    try:
        from poorhttp.plugins.tls._tls import TlsConfig, TlsSettings, self_signed
    except ModuleNotFoundError as error:
        raise ConfigError(f"{place}: {not_built(error)}") from None
    others = sorted({*hosts} - {*NAMES, *EVERYWHERE})
    names = [*NAMES, *others]
    name = "localhost"
    if others:
        import hashlib  # takes memory

        name += "-" + hashlib.sha256("\n".join(others).encode()).hexdigest()[:8]
    folder = os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "poorhttp"
    )
    path = os.path.join(folder, f"{name}.pem")
    with suppress(OSError, ValueError):
        kept = TlsConfig(TlsSettings([path], [path], opener=open_regular))
        ((_, _, _, end, _),) = kept.certificates
        if end - time.time() > LEAST_REST:
            return path
    try:
        make_folders(folder, 0o700)
        text = "".join(self_signed(names, time.gmtime().tm_year))
        write_file(path, text.encode("ascii"), replace=True, mode=0o600)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{place}: no certificate can be kept in {folder}: {error}") from None
    return path
