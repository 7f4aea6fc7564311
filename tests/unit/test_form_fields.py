"""Parser of query and form fields, compared with the standard library."""

from __future__ import annotations

from itertools import product
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp.plugins.apps.native import read_fields

#: What texts are put together of: octets that make characters only together, and mistakes.
PIECES = [
    *"aZ09 ;é☃𝄞\0",
    *("&", "=", "+", "%", "%%", "&&", "=="),
    *("%2", "%g0", "%0g", "%2B", "%26", "%3D", "%25", "%00", "%é9"),
    *("%C3", "%a9", "%C3%A9", "%E2", "%98", "%83", "%f0", "%9D", "%84", "%9E"),
    *("%c0%80", "%ED%A0%80", "%F4%90%80%80", "%f8", "%ff"),
]


def expected(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="replace")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", []),
        ("&&", []),
        ("a", [("a", "")]),
        ("=", [("", "")]),
        ("a=1=2&a=+3", [("a", "1=2"), ("a", " 3")]),
        ("name=Uniserve+%26+KLone", [("name", "Uniserve & KLone")]),
        ("%c5%BE=%zz%", [("ž", "%zz%")]),
        ("a=%E2%98&b=%e2é%98", [("a", "\ufffd"), ("b", "\ufffdé\ufffd")]),
    ],
)
def test_fields(text: str, fields: list[tuple[str, str]]) -> None:
    assert read_fields(text) == fields == expected(text)


@given(st.lists(st.sampled_from(PIECES) | st.text()).map("".join))
def test_fields_are_those_of_the_standard_library(text: str) -> None:
    assert read_fields(text) == expected(text)


def test_fields_of_every_two_bytes_and_of_all_limits_of_utf_8() -> None:
    edges = (0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC2, 0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0xF5, 0xFF)
    sequences = [
        *product(range(256), repeat=2),
        *product(edges, repeat=3),
        *product(edges, repeat=4),
    ]
    texts = ["".join(f"%{octet:02x}" for octet in octets) for octets in sequences]
    found = read_fields("&".join(texts))
    assert len(found) == len(texts)
    for text, field in zip(texts, found, strict=True):
        assert [field] == expected(text), text


def test_fields_are_of_text_that_can_be_encoded() -> None:
    with pytest.raises(UnicodeEncodeError):
        read_fields("a=\udcff")
