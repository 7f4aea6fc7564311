"""curl, nghttp and httpx speak HTTP/2 to the server; `make interop` has more clients."""

from __future__ import annotations

import pytest

from tests.interop.programs import CHECKS, CLIENTS, served, visit

#: What these do not show: httpx has no interface for interim responses; curl, see there.
NOT_SHOWN = {("httpx", "http"): "hints", ("httpx", "https"): "hints", ("curl", "http"): "parallel"}


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_clients(scheme: str) -> None:
    with served() as (server, folder):
        for name in ("curl", "nghttp", "httpx"):
            if not CLIENTS[name].is_installed():
                pytest.skip(f"{name} is not installed: {CLIENTS[name].package}")
            expected = dict.fromkeys(set(CHECKS) - {NOT_SHOWN.get((name, scheme))}, "ok")
            seen = visit(name, scheme, server, folder)
            assert {check: text.strip() for check, text in seen.items()} == expected, name
