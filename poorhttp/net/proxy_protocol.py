"""Finds the addresses whose connections begin with a PROXY protocol header (`proxy_protocol`)."""

from __future__ import annotations

import os
from collections.abc import Iterable

from poorhttp.config.address import GATEWAYS, Address, is_raw_tcp, parse
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError


def proxy_protocol_addresses(settings: Settings, addresses: Iterable[Address]) -> set[str]:
    """Return the texts of the addresses that the option `proxy_protocol` names.

    Raises:
        ConfigError: no proxy is trusted, or one of the option's addresses is not among `addresses`.
    """
    words = settings.proxy_protocol
    place = settings.origin("proxy_protocol")
    if len(words) > 1 and "on" in words:
        raise ConfigError(f"{place}: write on, or addresses, and not both")
    if not settings.trusted_proxies:
        raise ConfigError(
            f"{place}: only trusted_proxies may speak the PROXY protocol, and there are none; "
            "name the proxies, for example trusted_proxies = 10.0.0.0/8"
        )
    if is_raw_tcp(settings.target):
        raise ConfigError(
            f"{place}: it is for HTTP, and {settings.target} reads its connections itself"
        )
    known = {_written(address): address for address in addresses}
    if words == ("on",):
        # The gateway protocols name the client themselves.
        return {str(address) for address in known.values() if address.protocol not in GATEWAYS}
    meant = {_written(parse(word)): word for word in words}
    for text, word in meant.items():
        if text not in known:
            raise ConfigError(
                f'{place}: "{word}" is not one of the addresses of bind; write one of '
                f"{', '.join(map(str, known.values()))}, or on for all of them"
            )
        if known[text].protocol in GATEWAYS:
            raise ConfigError(
                f"{place}: it is for HTTP; in {known[text].protocol}, the web server names "
                "the client without it"
            )
    return {str(known[text]) for text in meant}


def _written(address: Address) -> str:
    """Return one spelling for all ways to write the same address."""
    if address.kind == "unix" and not address.abstract:
        return f"unix:{os.path.abspath(address.path)}"
    return str(address)
