"""Virtual hosts: sections `[host:NAME]` of an ini file, their options and their choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from poorhttp.config import host_names, loader
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ConfigError
from tests.testkit.server import Server

APP = "tests.apps.mounted"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in an empty folder, where `x.ini` is written."""
    monkeypatch.chdir(tmp_path)


def load(
    text: str,
    command_line: dict[str, list[str]] | None = None,
    environ: dict[str, str] | None = None,
) -> list[Settings]:
    Path("x.ini").write_text(text)
    return loader.load(command_line or {}, environ or {}, "x.ini")


def test_names() -> None:
    for name in ("localhost", "*.example.org", "xn--bcher-kva.example", "a_b.c", "[::1]"):
        assert host_names.names(name) == [name]
    several = ["example.org", "www.example.org", "127.0.0.1"]
    assert host_names.names("  ".join(several)) == several


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "names no host"),
        ("Example.org", '^"Example.org": write the host as example.org$'),
        ("*.Example.org.", r"as \*\.example\.org$"),
        ("bücher.example", "as xn--bcher-kva.example$"),
        ("[FE80::1]:80", r"as \[fe80::1\]$"),
        ("http://example.org", '^"http://example.org" is not the name of a host; write it as www'),
        *((name, "is not the name") for name in ("example.org/x", "www.*.org", "*", "*.", "a..b")),
        *((name, "is not the name") for name in ("a" * 64, "a." * 128, "ü" * 64)),
    ],
)
def test_names_that_are_none(name: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        host_names.names(name)


HOSTS = """
[http]
target = x:y
static = /files=here
static_index = start.html
cgi_timeout = 7
threads = 3
[host:other.example]
static_index = home.html
[host:own.example www.own.example]
mount = /a=x:z
"""


def test_what_a_host_does_not_say_is_as_it_is_for_the_service() -> None:
    (settings,) = load(HOSTS)
    assert list(settings.hosts) == ["other.example", "own.example", "www.own.example"]
    other = settings.hosts["other.example"]
    assert (other.static_index, other.value("cgi_timeout"), other.threads) == ("home.html", 7.0, 3)
    assert (other.target, other.static) == ("x:y", (("/files", "here"),))
    assert other.origin("static_index") == "x.ini:9: static_index"
    assert other.hosts == {}
    assert settings.static_index == "start.html"


def test_a_host_that_says_what_it_serves_serves_nothing_else() -> None:
    (settings,) = load(HOSTS)
    own = settings.hosts["own.example"]
    assert own is settings.hosts["www.own.example"]
    assert (own.target, own.mount, own.static) == ("", (("/a", "x:z"),), ())
    assert not own.is_set("target")
    assert own.origin("mount") == "x.ini:11: mount"
    assert (own.static_index, own.value("cgi_timeout")) == ("start.html", 7.0)


def test_the_command_line_and_the_environment_have_the_last_word_but_for_that() -> None:
    words = {"target": ["p:q"], "static_index": ["i"]}
    (settings,) = load(HOSTS, words, {"POORHTTP_CGI_TIMEOUT": "5", "POORHTTP_MOUNT": "/m=x:m"})
    own, other = settings.hosts["own.example"], settings.hosts["other.example"]
    for each in (settings, own, other):
        assert (each.static_index, each.value("cgi_timeout")) == ("i", 5.0)
    assert (settings.target, settings.mount) == ("p:q", (("/m", "x:m"),))
    assert (other.target, other.mount) == ("p:q", (("/m", "x:m"),))
    assert (own.target, own.mount) == ("", (("/a", "x:z"),))


@pytest.mark.parametrize("name", ["mode", "umask"])
def test_options_that_a_host_may_not_have(name: str) -> None:
    where = r"\[http\]" if OPTIONS[name].shared else r"\[http\] or \[service:NAME\]"
    with pytest.raises(
        ConfigError, match=rf'^x\.ini:3: "{name}" is for all .*; write it in {where}$'
    ):
        load(f"[http]\n[host:h]\n{name} = 1\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[host:]", r"^x\.ini:1: names no host; write it as \[host:www"),
        ("[http]\n[host:a b:80]", r'^x\.ini:2: "b:80": write the host as b$'),
        ("[host:a]\n[host:a]", r"^x\.ini:2: section \[host:a\] begins a second time"),
        ("[host:a]\n[host:b a]", r"^x\.ini:2: host a has a section already, on line 1$"),
        ("[hots:a]", r"^x\.ini:1: unknown section \[hots:a\]; did you mean \[host:a\]\?$"),
        ("[host:a]\nmount = x", r'^x\.ini:2: mount: "x" is not a mount; write it as /PREFIX=TAR'),
    ],
)
def test_mistakes(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(text + "\n")


def test_who_answers(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "hosts.ini"
    file.write_text(
        f"[http]\ntarget = {APP}:one\n[host:example.org]\ntarget = {APP}:two\n"
        f"[host:*.example.org]\nmount = /a={APP}:three\n"
    )
    with Server(f"{APP}:one", mode, "-c", str(file)) as server:
        for target, host, expected in (
            ("/", "example.org", "two"),
            ("/", "Example.ORG.:8080", "two"),
            ("/a", "www.example.org", "three"),
            ("/", "www.example.org", 404),
            ("/", "another.example", "one"),
            ("http://example.org/", "another.example", "two"),
            ("http://example.org", "example.org", "two"),
            ("/", "", "one"),
            ("/", "[::1]:80", "one"),
        ):
            with server.connect() as connection:
                end = f"HTTP/1.1\r\nHost: {host}" if host else "HTTP/1.0"
                connection.send(f"GET {target} {end}\r\n\r\n".encode())
                answer = connection.response()
            name = answer.json()["name"] if answer.status == 200 else answer.status
            assert name == expected, (target, host)
