"""curl, nghttp and httpx speak HTTP/2 to the server; `make interop` has more clients."""

from __future__ import annotations

import pytest

from tests.interop.programs import CHECKS, CLIENTS, served, visit

#: What these do not show: curl sends no trailers, and httpx neither sends them nor has an interface
#: for interim responses; of curl without TLS, see there.
NOT_SHOWN = {
    ("curl", "http"): {"trailers", "parallel"},
    ("curl", "https"): {"trailers"},
    ("httpx", "http"): {"trailers", "hints"},
    ("httpx", "https"): {"trailers", "hints"},
}


@pytest.mark.parametrize("scheme", [pytest.param("http", marks=pytest.mark.full), "https"])
def test_clients(scheme: str) -> None:
    with served() as (server, folder):
        for name in ("curl", "nghttp", "httpx"):
            if not CLIENTS[name].is_installed():
                pytest.skip(f"{name} is not installed: {CLIENTS[name].package}")
            expected = dict.fromkeys(set(CHECKS) - NOT_SHOWN.get((name, scheme), set()), "ok")
            seen = visit(name, scheme, server, folder)
            assert {check: text.strip() for check, text in seen.items()} == expected, name
