"""Parsers of the `Cookie` header, of queries and of forms, beside those of the standard library."""

from __future__ import annotations

import string
from http.cookies import Morsel, SimpleCookie
from itertools import product
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp import dispatch as http
from poorhttp.plugins.apps.dispatch.cookies import read_cookies, simple_cookie
from poorhttp.plugins.apps.native import read_fields
from poorhttp.plugins.apps.pages.cookies import Cookies, set_cookie
from tests.support.wsgi_call import ask
from tests.unit.test_dispatch_api import serve

NAME = string.ascii_letters + string.digits + "!#%&'*+-.^_`|~:"
#: Names of attributes, which `http.cookies` takes for no cookie.
RESERVED: frozenset[str] = frozenset(Morsel())
NAMES = st.text(NAME, min_size=1, max_size=4).filter(lambda name: name.lower() not in RESERVED)
MARKS = st.sampled_from([*"ab01\"\\';, =é%", "%41", "\t"])
TEXTS = st.lists(MARKS | st.text(max_size=2)).map("".join)
VALUES = TEXTS | TEXTS.map('"{}"'.format)
#: `http.cookies` writes no control characters any more (CVE-2026-0672).
PRINTABLE = VALUES.map(lambda text: "".join(filter(str.isprintable, text)))


def content(cookies: SimpleCookie) -> dict[str, tuple[str, str]]:
    return {name: (morsel.value, morsel.coded_value) for name, morsel in cookies.items()}


@given(st.dictionaries(NAMES, PRINTABLE, max_size=4), st.sampled_from(["; ", ";", " ;  "]))
def test_cookies_that_http_cookies_wrote_are_read_as_it_reads_them(
    cookies: dict[str, str], separator: str
) -> None:
    sent = SimpleCookie(cookies)
    text = separator.join(morsel.OutputString([]) for morsel in sent.values())
    assert content(simple_cookie(text)) == content(SimpleCookie(text)) == content(sent)
    assert {name: value for name, value, _ in read_cookies(text)} == cookies


@given(st.dictionaries(NAMES.filter(lambda name: ":" not in name), VALUES, max_size=4))
def test_cookies_that_a_page_sets_come_back(cookies: dict[str, str]) -> None:
    sent = [set_cookie(name, value).partition(";")[0] for name, value in cookies.items()]
    assert dict(Cookies("; ".join(sent))) == cookies


def test_cookies() -> None:
    cookies = {
        "": [],
        "a=1; b=2": [("a", "1"), ("b", "2")],
        "a=1;b=2;": [("a", "1"), ("b", "2")],
        " a = 1 ; b=": [("a", "1"), ("b", "")],
        "a=b=c==": [("a", "b=c==")],
        "a=1; a=2": [("a", "1"), ("a", "2")],
        'a="1;2"; b="x\\"y\\\\z\\073\\101"': [("a", "1;2"), ("b", 'x"y\\z;A')],
        'a="\\400\\08"': [("a", "40008")],
        'a=""; b="': [("a", ""), ("b", '"')],
        'a="1;b=2': [("a", '"1'), ("b", "2")],
        'a="1"2; b="3" ;c="4"': [("a", '"1"2'), ("b", "3"), ("c", "4")],
        "a=two words": [("a", "two words")],
        "broken; =1; ; a=2": [("a", "2")],
        "$Version=1; path=/; a=2": [("$Version", "1"), ("path", "/"), ("a", "2")],
    }
    found = {text: [(name, value) for name, value, _ in read_cookies(text)] for text in cookies}
    assert found == cookies


def test_of_several_with_one_name_a_table_sees_the_last_and_a_page_the_first() -> None:
    assert simple_cookie("a=1; b=x; a=2")["a"].value == "2"
    assert Cookies("a=1; b=x; a=2")["a"] == "1"


def test_a_page_has_values_percent_decoded_behind_their_quotes() -> None:
    assert dict(Cookies('a="%C3%A9"; b=%22; c="\\""')) == {"a": "é", "b": '"', "c": '"'}


def test_a_cookie_that_cannot_be_held_does_not_hide_the_others() -> None:
    def handler(req: http.Request) -> str:
        return repr(sorted((name, morsel.value) for name, morsel in req.cookies.items()))

    answer = ask(serve(handler), headers={"Cookie": "a=1; na me=2; path=/; é=3; x[]=4; b=5"})
    assert answer.text == "[('a', '1'), ('b', '5')]"


@pytest.mark.parametrize(
    ("text", "names", "length"),
    [
        ('a="' + "\\a" * 30_000 + '"', 1, 30_000),
        ('a="' + '\\"' * 30_000, 1, 60_001),
        ("a=" * 30_000 + '"', 1, 59_999),
        ('a="\\' * 15_000, 1, 59_998),
        ('a="\\";' * 10_000, 1, 3),
        ("a=" + " " * 60_000 + "x", 1, 1),
        ('a=""' + " " * 60_000 + "x", 1, 60_003),
        ("=;" * 30_000, 0, 0),
    ],
)
def test_cookies_that_would_take_long_elsewhere(text: str, names: int, length: int) -> None:
    # Some of these take `http.cookies` seconds (CVE-2024-7592, and a pattern that tries each `=`).
    cookies = {name: value for name, value, _ in read_cookies(text)}
    assert (len(cookies), len(cookies.get("a", ""))) == (names, length)


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


def test_fields() -> None:
    fields = {
        "": [],
        "&&": [],
        "a": [("a", "")],
        "=": [("", "")],
        "a=1=2&a=+3": [("a", "1=2"), ("a", " 3")],
        "name=Uniserve+%26+KLone": [("name", "Uniserve & KLone")],
        "%c5%BE=%zz%": [("ž", "%zz%")],
        "a=%E2%98&b=%e2é%98": [("a", "\ufffd"), ("b", "\ufffdé\ufffd")],
    }
    assert {text: read_fields(text) for text in fields} == fields
    assert {text: expected(text) for text in fields} == fields


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
