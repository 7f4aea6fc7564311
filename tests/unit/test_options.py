"""Parsers of option values and addresses, the option table, its settings, its reference page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp.config import address, parsers
from poorhttp.config.address import UNIX_PATH_MAX
from poorhttp.config.help import option_help
from poorhttp.config.options.server import MODES
from poorhttp.config.resources import usable_cpus
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ConfigError
from poorhttp.plugins.compression import options as compression
from poorhttp.plugins.setup.options_page import page
from poorhttp.worker import mode as modes
from tests.support.plug_in import install, known
from tests.testkit.server import ROOT, run


def test_which_options_a_host_may_set() -> None:
    names = (
        "target mount static stream_request_body cgi_timeout cgi_time_limit cgi_environment "
        "cgi_pass_authorization pages_reload pages_modules session_key session_lifetime"
    )
    hosted = {*names.split()}
    hosted |= {option for option in OPTIONS if option.startswith("static_")} - {"static_cache"}
    assert {name for name, option in OPTIONS.items() if option.hosted} == hosted


def test_which_options_are_secret() -> None:
    """Neither the status page nor a title of a process shows them."""
    assert {name for name, option in OPTIONS.items() if option.secret} == {"cgi_environment", "env"}


def test_values_of_a_program() -> None:
    settings = Settings(
        bind=["127.0.0.1:0", address.parse("fd:3")],
        pythonpath=Path("lib"),
        threads=4,
        graceful_timeout=0.5,
        max_body="16M",
        access_log=Path("access.log"),
    )
    assert [str(item) for item in settings.bind] == ["127.0.0.1:0", "fd:3"]
    assert settings.pythonpath == ("lib",)
    assert (settings.threads, settings.graceful_timeout, settings.max_body) == (4, 0.5, 16 << 20)
    assert settings.access_log == "access.log"
    changed = "pythonpath bind threads graceful_timeout max_body access_log"
    assert settings.changed() == changed.split()
    assert Settings().threads == 8, "one object must not change another"


@pytest.mark.parametrize(
    ("overrides", "complaint"),
    [
        ({"thread": 4}, r'^unknown setting "thread"; did you mean "threads"\?'),
        ({"threads": 0}, "^threads: 0 is out of range; write a number from 1 to 4096$"),
        ({"threads": 1.5}, '^threads: "1.5" is not a whole number'),
        ({"threads": True}, '^threads: "on" is not a whole number'),
        ({"threads": [1, 2]}, r"^threads: \[1, 2\] is not a text"),
        ({"access_log": None}, "^access_log: None is not a text"),
        ({"bind": []}, "^bind: needs at least one value$"),
        ({"bind": ""}, '^bind: "" has no port'),
        ({"bind": ["fd:3", "8080"]}, '^bind: "8080" has no host'),
        ({"mode": "thread"}, r'^mode: unknown value "thread"; did you mean "threading"\?'),
        ({"mode": "zebra"}, "^mode: unknown value .*single, forking, threading, gevent"),
        ({"access_log_format": "jsn"}, r'; did you mean "json"\?'),
        ({"access_log_format": "%h\n"}, "control character"),
        ({"server_header": "x\r\nSet-Cookie: y"}, "control character"),
        ({"header_timeout": 0}, '^header_timeout: "0" is out of range'),
        ({"max_body": -1}, '^max_body: "-1" is out of range'),
    ],
)
def test_mistakes_of_a_program(overrides: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        Settings(**overrides)


def test_mode_of_a_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path,
        "turbo",
        {"modes": "turbo = turbo:Mode"},
        {"turbo": "class Mode:\n    run = print\n"},
    )
    with known(tmp_path, monkeypatch):
        assert Settings(mode="turbo").mode == "turbo"
        assert modes.load(Settings(mode="turbo")) is sys.modules["turbo"].Mode
        with pytest.raises(ConfigError, match=r'did you mean "turbo"\?'):
            Settings(mode="turb")


def test_automatic_workers() -> None:
    usable = usable_cpus()
    for mode in MODES:
        expected = max(2, usable) if mode == "forking" else 1
        assert Settings(mode=mode).worker_count == expected, mode
    assert Settings(mode="forking", workers=1).worker_count == 1
    assert Settings(workers=3).worker_count == 3


def test_every_option_is_explained() -> None:
    reference, shown = page(), option_help()
    for name, option in OPTIONS.items():
        assert option.summary.endswith("."), name
        assert option.metavar.isupper(), name
        assert f"\n### {name}\n" in reference
        assert f" {option.flag or option.metavar}" in shown


def test_the_reference_page_is_current() -> None:
    made = run(sys.executable, "-m", "poorhttp.plugins.setup.options_page")
    assert made.stderr == ""
    how = "run: python -m poorhttp.plugins.setup.options_page > docs/reference/options.md"
    assert (ROOT / "docs/reference/options.md").read_text() == made.stdout, how


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


def test_size_text() -> None:
    texts = {0: "0", 1000: "1000", 8192: "8KiB", 1 << 30: "1GiB", 1 << 40: "1TiB"}
    assert {number: parsers.size_text(number) for number in texts} == texts
    assert {parsers.size(0, 1 << 40)(text): text for text in texts.values()} == texts


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("127.0.0.1:8080", "tcp", {"host": "127.0.0.1", "port": 8080}),
        ("0.0.0.0:0", "tcp", {"host": "0.0.0.0", "port": 0}),
        ("localhost:65535", "tcp", {"host": "localhost", "port": 65535}),
        ("[::1]:80", "tcp", {"host": "::1", "port": 80}),
        ("[::]:80", "tcp", {"host": "::", "port": 80}),
        ("[fe80::1%eth0]:80", "tcp", {"host": "fe80::1%eth0", "port": 80}),
        ("unix:run/my server.sock", "unix", {"path": "run/my server.sock"}),
        ("fd:3", "fd", {"fd": 3}),
    ],
)
def test_parts_of_an_address(text: str, kind: str, parts: dict[str, object]) -> None:
    found = address.parse(text)
    assert found.kind == kind
    assert {name: getattr(found, name) for name in parts} == parts
    assert str(found) == text
    assert found.url == (f"http://{text}" if kind == "tcp" else text)


def test_other_spellings_of_addresses() -> None:
    # A port alone is every IPv4 interface.
    assert str(address.parse(":8080")) == "0.0.0.0:8080"
    assert address.parse("fd://3") == address.parse("fd:3")
    # A path behind a gateway protocol may have any marks in it.
    found = address.parse("uwsgi+unix:a://b+c")
    assert (found.kind, found.protocol, found.path) == ("unix", "uwsgi", "a://b+c")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no port"),
        ("8080", "write 127.0.0.1:8080"),
        ("localhost", "write it as HOST:PORT"),
        ("localhost:", '"" in "localhost:" is not a port'),
        ("localhost:http", '"http" in "localhost:http" is not a port'),
        ("localhost:65536", "a number from 0 to 65535"),
        ("localhost:" + "9" * 5000, "a number from 0 to 65535"),
        ("localhost:-1", "is not a port"),
        ("localhost:٣", "is not a port"),
        ("::1:8080", r"stands in brackets: \[::1\]:8080"),
        ("[::1]", "is not a port"),
        ("[nonsense]:80", "not an IPv6 address"),
        ("[]:80", "not an IPv6 address"),
        ("a host:80", "not a host name"),
        ("http://127.0.0.1:8080/", r"write the address alone: 127\.0\.0\.1:8080$"),
        ("unix:", "has no path"),
        ("unix:a\0b", "NUL"),
        ("unix:" + "x" * (UNIX_PATH_MAX + 1), "is too long"),
        ("unix:" + "é" * (UNIX_PATH_MAX // 2 + 1), "is too long"),
        ("fd:", "write it as fd:3"),
        ("fd:-1", "write it as fd:3"),
        ("fd:2147483648", "a number from 0 to 2147483647"),
        ("fd:" + "9" * 5000, "a number from 0 to 2147483647"),
        ("fd:a:b", "write it as fd:3"),
        ("fd:drei\n", "write it as fd:3"),
        ("unix:@", "write it as unix:@poorhttp$"),
    ],
)
def test_mistakes_of_addresses(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        address.parse(text)


#: What is nearly an address.
PIECES = [
    *("unix:", "fd:", "http://", "https://", "://", "+", ":", "[", "]", "%", "@", "/", "\0"),
    *("127.0.0.1", "localhost", "[::1]", "::", "web", "-", "0", "80", "65535", "65536", "٣"),
    *address.protocols(),
]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3)).map("".join))
def test_any_text_is_an_address_or_refused_with_a_remedy(text: str) -> None:
    try:
        found = address.parse(text)
    except ValueError as error:
        remedies = ("; write ", "; it is a number", "in brackets", "the system allows", "NUL")
        assert any(remedy in str(error) for remedy in remedies), error  # noqa: PT017
    else:
        assert address.parse(str(found)) == found
