"""Networks between client and server: none, a local network, a wide-area network."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from loadtests.errors import LabError
from loadtests.network.hosts import Network, Unavailable


@dataclass(frozen=True)
class Way:
    """Bits a second and seconds, each way."""

    name: str
    title: str
    rate: float
    delay: float


LAN = Way("LAN", "in a local network of 100 Mbit/s", 100e6, 0.0)
"""The document's, in which client and server were."""
OUTSIDE = Way(
    "outside", "from outside of the local network: 10 Mbit/s and 13 ms each way", 10e6, 0.013
)
"""The document's PC was in a network of 10 Mbit/s, and a request took it 54 ms at least, 68 in the
mean. Here a request is two round trips (the connection, then question and answer) and 7 ms for the
page: 60 ms."""


@contextlib.contextmanager
def apart(way: Way) -> Iterator[Network]:
    """A `client` and a `server` with this way between them. Raises LabError without a network."""
    with contextlib.ExitStack() as stack:
        try:
            network = stack.enter_context(Network("client", "server"))
            network["server"].disturb(delay=way.delay, rate=way.rate)
        except Unavailable as reason:
            raise LabError(str(reason)) from None
        except (OSError, RuntimeError) as error:
            raise LabError(f"the network cannot be made: {error}") from None
        yield network
