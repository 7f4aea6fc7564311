"""Parsers of option values."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from poorhttp.config import parsers
from poorhttp.plugins.compression import options as compression

NUMBER = parsers.integer(1, 10)
SIZE = parsers.size(0, 1 << 40)
SOME_SIZE = parsers.size(64, 16 << 20)
LEVEL = parsers.choice("debug", "info")

#: Values by their texts, of each parser.
READ: list[tuple[Callable[[str], object], dict[str, object]]] = [
    (NUMBER, {"1": 1, "10": 10, "007": 7}),
    (SIZE, {"0": 0, "8192": 8192, "10b": 10, "8k": 8 << 10, "16K": 16 << 10, "16KB": 16 << 10}),
    (SIZE, {"1M": 1 << 20, "1 MiB": 1 << 20, "1GiB": 1 << 30, "2gb": 2 << 30, "1t": 1 << 40}),
    (parsers.seconds(0), {"30": 30.0, "0.5": 0.5, "30s": 30.0, "0": 0.0}),
    (parsers.permissions, {"0660": 0o660, "22": 0o22, "0o666": 0o666}),
    (parsers.boolean, dict.fromkeys(("on", "yes", "true", "1", "On"), True)),
    (parsers.boolean, dict.fromkeys(("off", "no", "FALSE", "0"), False)),
    (parsers.path, {"~/log": os.path.expanduser("~/log"), "a b/../c": "a b/../c"}),
    (parsers.line, {"žluť": "žluť"}),
    (parsers.header, {"poor/1 (x)": "poor/1 (x)"}),
    (parsers.prefix_header, {"/a=X-Own: x": ("/a", "X-Own", "x")}),
    (parsers.prefix_header, {"/a=X-Own: *": ("/a", "X-Own", "*")}),
    (LEVEL, {"info": "info"}),
    (compression.codings, {"on": ("zstd", "br", "gzip"), "off": (), "gzip": ("gzip",)}),
    (compression.codings, {"gzip, ZSTD gzip": ("gzip", "zstd"), "br, static": ("br", "static")}),
    (compression.codings, {"static": ("static", "zstd", "br", "gzip")}),
    (compression.media_types, {text: text for text in ("text/html", "text/*", "+json", "*")}),
]

#: Texts that each parser refuses, and in which words: `{}` is the text.
REFUSED: list[tuple[Callable[[str], object], str, tuple[str, ...]]] = [
    (
        *(NUMBER, "is not a whole number; write one from 1 to 10"),
        ("", "many", "1.5", "1_0", "٣", "0x1", " 1", "--1", "9" * 5000),
    ),
    (NUMBER, "^{} is out of range; write a number from 1 to 10", ("0", "11", "-3")),
    (
        *(SIZE, "is not a size; write bytes or a unit"),
        ("", "k", "1.5M", "1X", "1Kib b", "1 0", "ten", "1kk", "1ib"),
    ),
    (SOME_SIZE, "out of range; write a size from 64 to 16MiB", ("-1", "63", "17M")),
    (parsers.seconds(0), "is not a time; write seconds", ("", "s", "soon", "5min")),
    (
        *(parsers.seconds(0.001), r"out of range; write seconds from 0\.001 to 31536000"),
        ("-1", "nan", "inf", "1e9", "0"),
    ),
    (
        *(parsers.permissions, "is not an octal number of permissions; write it as 0660"),
        ("", "rw", "0888", "-22", "777777"),
    ),
    (parsers.boolean, '"maybe" is neither on nor off', ("maybe",)),
    (parsers.path, "empty", ("",)),
    (parsers.path, "NUL", ("a\0b",)),
    (parsers.line, "control character", ("a\nb", "a\x1b[31m", "\x7f")),
    (parsers.header, "control character", ("a\nb", "a\x1b[31m", "\x7f")),
    (parsers.header, "ASCII", ("žluť",)),
    (
        *(parsers.prefix_header, "the server sets it"),
        ("/a=Server: x", "/a=date: x", "/a=Content-Length: x", "/a=Connection: x"),
    ),
    (parsers.prefix_header, r'^"/a\*" is a pattern.*static_immutable', ("/a*=X-Own: x",)),
    (parsers.mapping("FOLDER"), r'^"/a/\*/b": a prefix is no pattern', ("/a/*/b=x",)),
    (LEVEL, r'unknown value "infos"; did you mean "info"\?', ("infos",)),
    (compression.codings, "on", ("", "deflate", "gzip, off", "gzip=5", " , ")),
    (compression.codings, "neither on nor off nor static nor a list", ("statics",)),
    (
        *(compression.coding_level, '"{}": write a level of'),
        ("gzip=0", "gzip=10", "br=7", "zstd=10", "zstd=-8"),
    ),
    (compression.coding_level, "is not CODING=LEVEL", ("", "5", "gzip", "deflate=5", "=5")),
    (compression.media_types, "is not a media type", ("", "html", "/html", "text/", "+")),
]


@pytest.mark.parametrize(("parse", "values"), READ)
def test_what_is_read(parse: Callable[[str], object], values: dict[str, object]) -> None:
    found = {text: parse(text) for text in values}
    assert found == values
    assert [*map(type, found.values())] == [*map(type, values.values())]


@pytest.mark.parametrize(("parse", "why", "texts"), REFUSED)
def test_what_is_refused(parse: Callable[[str], object], why: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        with pytest.raises(ValueError, match=why.replace("{}", text)):
            pytest.fail(f"{text!r} is {parse(text)!r}")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1000, "1000"), (8192, "8KiB"), (1 << 30, "1GiB"), (1 << 40, "1TiB")],
)
def test_size_text(number: int, text: str) -> None:
    assert parsers.size_text(number) == text
    assert parsers.size(0, 1 << 40)(text) == number
