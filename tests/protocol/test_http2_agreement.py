"""Agreement of our HPACK and HTTP/2 with `hpack` and `h2`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.http2_agreement import Ours, compare_lists, compare_mutants, compare_sessions


@pytest.fixture(scope="module")
def ours() -> Iterator[Ours]:
    with Ours() as process:
        yield process


def test_lists_of_fields(ours: Ours) -> None:
    compare_lists(ours, 1_000, 1)


def test_malformed_blocks(ours: Ours) -> None:
    assert compare_mutants(ours, 1_000, 2) > 100


def test_sessions(ours: Ours) -> None:
    compare_sessions(ours, 10, 3)
