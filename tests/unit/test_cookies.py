"""The parser of the `Cookie` header, beside `http.cookies`."""

from __future__ import annotations

import string
from http.cookies import Morsel, SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp import dispatch as http
from poorhttp.plugins.apps.dispatch.cookies import read_cookies, simple_cookie
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


@pytest.mark.parametrize(
    ("text", "cookies"),
    [
        ("", []),
        ("a=1; b=2", [("a", "1"), ("b", "2")]),
        ("a=1;b=2;", [("a", "1"), ("b", "2")]),
        (" a = 1 ; b=", [("a", "1"), ("b", "")]),
        ("a=b=c==", [("a", "b=c==")]),
        ("a=1; a=2", [("a", "1"), ("a", "2")]),
        ('a="1;2"; b="x\\"y\\\\z\\073\\101"', [("a", "1;2"), ("b", 'x"y\\z;A')]),
        ('a="\\400\\08"', [("a", "40008")]),
        ('a=""; b="', [("a", ""), ("b", '"')]),
        ('a="1;b=2', [("a", '"1'), ("b", "2")]),
        ('a="1"2; b="3" ;c="4"', [("a", '"1"2'), ("b", "3"), ("c", "4")]),
        ("a=two words", [("a", "two words")]),
        ("broken; =1; ; a=2", [("a", "2")]),
        ("$Version=1; path=/; a=2", [("$Version", "1"), ("path", "/"), ("a", "2")]),
    ],
)
def test_cookies(text: str, cookies: list[tuple[str, str]]) -> None:
    assert [(name, value) for name, value, _ in read_cookies(text)] == cookies


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
