"""A backend that applications wait for: answers each line after 20 ms. Its argument is the port."""

from __future__ import annotations

import asyncio
import sys

SECONDS = 0.02


class Upstream(asyncio.Protocol):
    """A connection. Lines do not wait for each other."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps what answers are written to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answers each line with a line."""
        loop = asyncio.get_running_loop()
        for _ in range(data.count(b"\n")):
            loop.call_later(SECONDS, self._transport.write, b"ready\n")


async def main(port: int) -> None:
    """Serves for ever."""
    server = await asyncio.get_running_loop().create_server(
        Upstream, "127.0.0.1", port, backlog=1024
    )
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
