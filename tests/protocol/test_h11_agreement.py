"""Agreement of our request parser with `h11`, except for listed differences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.h11_agreement import Difference, Ours, compare, differences, inputs, theirs


@pytest.fixture(scope="module")
def ours() -> Iterator[Ours]:
    with Ours() as process:
        yield process


def test_everything_known(ours: Ours) -> None:
    seen = 0
    for octets in inputs():
        compare(octets, ours.read(octets), theirs(octets))
        seen += 1
    assert seen > 200


@pytest.mark.parametrize("difference", differences(), ids=lambda difference: difference.name)
def test_difference(ours: Ours, difference: Difference) -> None:
    """None of them is only thought of."""
    octets = difference.send
    assert compare(octets, ours.read(octets), theirs(octets)) == difference.name
