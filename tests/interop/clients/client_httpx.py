"""Checks a server with httpx: client_httpx.py URL AUTHORITY.pem."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import sys
import time
from collections.abc import Awaitable, Callable

import httpx

url, authority = sys.argv[1:]
name = f"httpx{url}"


def made() -> httpx.AsyncClient:
    """A client that speaks HTTP/2 alone."""
    context = ssl.create_default_context(cafile=authority)
    return httpx.AsyncClient(
        http1=False, http2=True, base_url=url, verify=context, timeout=240, trust_env=False
    )


async def text(client: httpx.AsyncClient, path: str) -> str:
    response = await client.get(path)
    assert (response.status_code, response.http_version) == (200, "HTTP/2"), response
    return str(response.text)


async def get(client: httpx.AsyncClient) -> None:
    assert await text(client, "/hello") == "hello\n"


async def post(client: httpx.AsyncClient) -> None:
    body = b"0123456789" * 100_000
    response = await client.post("/digest", content=body)
    assert response.text == f"{len(body)} {hashlib.sha256(body).hexdigest()}\n", response.text


async def parallel(client: httpx.AsyncClient) -> None:
    found = await asyncio.gather(*(text(client, "/hello") for _ in range(100)))
    assert set(found) == {"hello\n"}


async def events(client: httpx.AsyncClient) -> None:
    found = ""
    async with client.stream("GET", f"/events?{name}") as response:
        async for piece in response.aiter_text():
            found += piece
            await text(client, f"/next?{name}")
    assert found == "data: 1\n\ndata: 2\n\n", found


async def cancel(client: httpx.AsyncClient) -> None:
    # It resets no stream whose response is closed, but ends the connection with the client.
    async with made() as own, own.stream("GET", f"/endless?{name}") as response:
        async for _ in response.aiter_bytes():
            break
    end = time.monotonic() + 60
    while await text(client, f"/left?{name}") != "yes\n":
        assert time.monotonic() < end, "the server goes on"
        await asyncio.sleep(0.05)


async def download(client: httpx.AsyncClient) -> None:
    size = 0
    async with client.stream("GET", "/large") as response:
        async for piece in response.aiter_bytes():
            size += len(piece)
            await asyncio.sleep(0.002)
    assert size == 10_000_000, size


CHECKS: tuple[Callable[[httpx.AsyncClient], Awaitable[None]], ...]
CHECKS = (get, post, parallel, events, cancel, download)


async def main() -> None:
    async with made() as client:
        for check in CHECKS:
            try:
                await check(client)
                print(check.__name__, "ok")
            except Exception as error:
                print(check.__name__, repr(error))


asyncio.run(main())
