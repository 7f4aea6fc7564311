"""Network namespaces as hosts for a test, where the system allows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from loadtests.network.hosts import Network, Unavailable
from tests.packages import need


@contextmanager
def hosts(*names: str) -> Iterator[Network]:
    """Hosts at a switch; without the right to make them the test is skipped."""
    need("ip")
    try:
        network = Network(*names)
    except Unavailable as reason:
        pytest.skip(str(reason))
    with network:
        yield network
