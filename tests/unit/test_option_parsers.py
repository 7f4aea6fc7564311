"""Parsers of option values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp.config import parsers
from poorhttp.plugins.compression import options as compression


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("10", 10), ("007", 7)])
def test_integer(text: str, number: int) -> None:
    assert parsers.integer(1, 10)(text) == number


@pytest.mark.parametrize("text", ["", "many", "1.5", "1_0", "٣", "0x1", " 1", "--1", "9" * 5000])
def test_not_an_integer(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a whole number; write one from 1 to 10"):
        parsers.integer(1, 10)(text)


@pytest.mark.parametrize("text", ["0", "11", "-3"])
def test_integer_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text} is out of range; write a number from 1 to 10"):
        parsers.integer(1, 10)(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("8192", 8192),
        ("10b", 10),
        ("8k", 8 << 10),
        ("16K", 16 << 10),
        ("16KB", 16 << 10),
        ("1M", 1 << 20),
        ("1 MiB", 1 << 20),
        ("1GiB", 1 << 30),
        ("2gb", 2 << 30),
        ("1t", 1 << 40),
    ],
)
def test_size(text: str, number: int) -> None:
    assert parsers.size(0, 1 << 40)(text) == number


@pytest.mark.parametrize("text", ["on", "yes", "true", "1", "On"])
def test_boolean(text: str) -> None:
    assert parsers.boolean(text) is True
    assert parsers.boolean({"on": "off", "yes": "no", "true": "FALSE"}.get(text, "0")) is False


def test_not_a_boolean() -> None:
    with pytest.raises(ValueError, match='"maybe" is neither on nor off'):
        parsers.boolean("maybe")


@pytest.mark.parametrize(
    ("text", "codings"),
    [
        ("on", ("zstd", "br", "gzip")),
        ("off", ()),
        ("gzip", ("gzip",)),
        ("gzip, ZSTD gzip", ("gzip", "zstd")),
    ],
)
def test_codings(text: str, codings: tuple[str, ...]) -> None:
    assert compression.codings(text) == codings


@pytest.mark.parametrize("text", ["", "deflate", "gzip, off", "gzip=5", " , "])
def test_no_codings(text: str) -> None:
    with pytest.raises(ValueError, match="on"):
        compression.codings(text)


@pytest.mark.parametrize("text", ["gzip=0", "gzip=10", "br=7", "zstd=10", "zstd=-8"])
def test_a_level_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match=f'"{text}": write a level of'):
        compression.coding_level(text)


@pytest.mark.parametrize("text", ["", "5", "gzip", "deflate=5", "=5"])
def test_no_level(text: str) -> None:
    with pytest.raises(ValueError, match="is not CODING=LEVEL"):
        compression.coding_level(text)


@pytest.mark.parametrize("text", ["text/html", "text/*", "+json", "*"])
def test_media_types(text: str) -> None:
    assert compression.media_types(text) == text


@pytest.mark.parametrize("text", ["", "html", "/html", "text/", "+"])
def test_no_media_type(text: str) -> None:
    with pytest.raises(ValueError, match="is not a media type"):
        compression.media_types(text)


@pytest.mark.parametrize(("text", "bits"), [("0660", 0o660), ("22", 0o22), ("0o666", 0o666)])
def test_permissions(text: str, bits: int) -> None:
    assert parsers.permissions(text) == bits


@pytest.mark.parametrize("text", ["", "rw", "0888", "-22", "777777"])
def test_no_permissions(text: str) -> None:
    with pytest.raises(ValueError, match="is not an octal number of permissions; write it as 0660"):
        parsers.permissions(text)


@pytest.mark.parametrize("text", ["", "k", "1.5M", "1X", "1Kib b", "1 0", "ten", "1kk", "1ib"])
def test_not_a_size(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a size; write bytes or a unit"):
        parsers.size(0, 1 << 40)(text)


@pytest.mark.parametrize("text", ["-1", "63", "17M"])
def test_size_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match=r"out of range; write a size from 64 to 16MiB"):
        parsers.size(64, 16 << 20)(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1000, "1000"), (8192, "8KiB"), (1 << 30, "1GiB"), (1 << 40, "1TiB")],
)
def test_size_text(number: int, text: str) -> None:
    assert parsers.size_text(number) == text
    assert parsers.size(0, 1 << 40)(text) == number


@pytest.mark.parametrize(
    ("text", "number"), [("30", 30.0), ("0.5", 0.5), ("30s", 30.0), ("0", 0.0)]
)
def test_seconds(text: str, number: float) -> None:
    assert parsers.seconds(0)(text) == number


@pytest.mark.parametrize("text", ["", "s", "soon", "5min"])
def test_not_a_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time; write seconds"):
        parsers.seconds(0)(text)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1e9", "0"])
def test_seconds_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match=r"out of range; write seconds from 0\.001 to 31536000"):
        parsers.seconds(0.001)(text)


def test_choice() -> None:
    parse = parsers.choice("debug", "info")
    assert parse("info") == "info"
    with pytest.raises(ValueError, match=r'unknown value "infos"; did you mean "info"\?'):
        parse("infos")


def test_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/poor")
    assert parsers.path("~/log") == "/home/poor/log"
    assert parsers.path("a b/../c") == "a b/../c"
    with pytest.raises(ValueError, match=r"empty"):
        parsers.path("")
    with pytest.raises(ValueError, match=r"NUL"):
        parsers.path("a\0b")


@pytest.mark.parametrize("text", ["a\nb", "a\x1b[31m", "\x7f"])
def test_no_control_characters(text: str) -> None:
    with pytest.raises(ValueError, match=r"control character"):
        parsers.line(text)
    with pytest.raises(ValueError, match=r"control character"):
        parsers.header(text)


def test_a_header_is_ascii() -> None:
    assert parsers.header("poor/1 (x)") == "poor/1 (x)"
    assert parsers.line("žluť") == "žluť"
    with pytest.raises(ValueError, match=r"ASCII"):
        parsers.header("žluť")


def test_a_header_of_files_is_none_that_the_server_says() -> None:
    assert parsers.prefix_header("/a=X-Own: x") == ("/a", "X-Own", "x")
    for name in ("Server", "date", "Content-Length", "Connection"):
        with pytest.raises(ValueError, match="the server sets it"):
            parsers.prefix_header(f"/a={name}: x")


def test_a_prefix_is_no_pattern() -> None:
    with pytest.raises(ValueError, match=r'^"/a\*" is a pattern.*static_immutable'):
        parsers.prefix_header("/a*=X-Own: x")
    assert parsers.prefix_header("/a=X-Own: *") == ("/a", "X-Own", "*")
    with pytest.raises(ValueError, match=r'^"/a/\*/b": a prefix is no pattern'):
        parsers.mapping("FOLDER")("/a/*/b=x")


def test_compression_of_static_files_alone() -> None:
    assert compression.codings("static") == ("static", "zstd", "br", "gzip")
    assert compression.codings("br, static") == ("br", "static")
    with pytest.raises(ValueError, match="neither on nor off nor static nor a list"):
        compression.codings("statics")


@given(st.integers(0, 2**63 - 1), st.sampled_from([1, *parsers.UNITS.values()]))
def test_sizes_are_read_as_they_are_written(number: int, unit: int) -> None:
    number -= number % unit
    assert parsers.size(0, 2**63)(parsers.size_text(number)) == number


@given(st.floats(0, parsers.YEAR))
def test_times_are_read_as_they_are_written(number: float) -> None:
    assert parsers.seconds(0)(f"{number!r}s") == parsers.seconds(0)(repr(number)) == number
