"""Ini files, sources of settings, their precedence, and messages about mistakes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp.config import ini as ini_file
from poorhttp.config import loader
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ConfigError, Failure, UsageError
from tests.testkit.server import ROOT


@pytest.fixture
def ini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of an ini file that is not yet there, in the current directory."""
    monkeypatch.chdir(tmp_path)
    return Path("x.ini")


def load(ini: Path, text: str) -> Settings:
    ini.write_text(text)
    return loader.load({}, {}, str(ini))[0]


def test_the_command_line_beats_the_environment_beats_the_file_beats_the_default(ini: Path) -> None:
    ini.write_text("[http]\nthreads = 1\nbacklog = 1\nmax_headers = 1\n")
    environ = {"POORHTTP_THREADS": "2", "POORHTTP_BACKLOG": "2", "PATH": "/bin"}
    settings = loader.load({"threads": ["3"]}, environ, str(ini))[0]
    assert (settings.threads, settings.backlog, settings.max_headers) == (3, 2, 1)
    assert settings.workers == 0
    origins = map(settings.origin, ("threads", "backlog", "max_headers", "workers"))
    assert [*origins] == ["--threads", "POORHTTP_BACKLOG", "x.ini:4: max_headers", "workers"]


#: Each option takes one of these that is not its default: lists, numbers, words, paths and others.
VALUES = (
    *("10.0.0.0/8, unix", "x-forwarded-for forwarded", "gzip=9, zstd=-1", "x/y, +z", "/x, /y/z"),
    *("77", "0.5", "1MiB", "1.3", "on", "off", "debug", "single", "json", "optional", "asyncio"),
    *("127.0.0.1:9090", "/x=y: z", ".x=y/z", "x:y"),
)


def differs(name: str, text: str, default: object) -> bool:
    """Whether an option takes a text, as something else than its default."""
    try:
        return bool(Settings(**{name: text}).value(name) != default)
    except ConfigError:
        return False


# What `plugins` names has to be installed.
@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - {"plugins"}))
def test_every_option_can_be_written_in_every_place(name: str, ini: Path) -> None:
    default = Settings().value(name)
    text = next(text for text in VALUES if differs(name, text, default))
    expected = Settings(**{name: text}).value(name)
    assert load(ini, f"[http]\n{name} = {text}\n").value(name) == expected
    assert loader.load({}, {OPTIONS[name].variable: text})[0].value(name) == expected
    assert loader.load({name: [text]}, {})[0].value(name) == expected


def test_a_repeatable_option_is_replaced_as_a_whole(ini: Path) -> None:
    ini.write_text("[http]\nbind =\n  fd:3\n  # not this\n  fd:4\npythonpath = a b\n  c\n")
    settings = loader.load({}, {}, str(ini))[0]
    assert [str(item) for item in settings.bind] == ["fd:3", "fd:4"]
    assert settings.pythonpath == ("a b", "c")
    environ = {"POORHTTP_BIND": "fd:5\n fd:6 \n"}
    settings = loader.load({}, environ, str(ini))[0]
    assert [str(item) for item in settings.bind] == ["fd:5", "fd:6"]
    settings = loader.load({"bind": ["fd:7", "fd:8"]}, environ, str(ini))[0]
    assert [str(item) for item in settings.bind] == ["fd:7", "fd:8"]
    assert loader.load({}, {"POORHTTP_PYTHONPATH": ""}, str(ini))[0].pythonpath == ()


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("pythonpath =", "pythonpath", ()),
        ("trusted_proxies = off", "trusted_proxies", ()),
        ("forwarded_headers = off", "forwarded_headers", ()),
        ("proxy_protocol = off", "proxy_protocol", ()),
        ("type = forking", "mode", "forking"),
    ],
)
def test_nothing_and_another_name(text: str, name: str, value: object, ini: Path) -> None:
    assert load(ini, f"[http]\n{text}\n").value(name) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", r"^x\.ini: has no section \[http\]; write it above the options$"),
        ("threads = 4\n", r'^x\.ini:1: "threads" is in no section'),
        ("[htpp]\n", r"^x\.ini:1: unknown section \[htpp\]; did you mean \[http\]\?$"),
        ("[http]\n[zebra]\n", r"^x\.ini:2: unknown section \[zebra\]; .* in \[service:N"),
        ("[http]\n\nthread = 4\n", r'^x\.ini:3: unknown option "thread"; '),
        ("[http]\n\nthread = 4\n", r'option "thread"; did you mean "threads"\?$'),
        ("[http]\nmax-body = 4\n", r'^x\.ini:2: unknown option "max-body"; .*"max_body"\?$'),
        ("[http]\nTHREADS = 4\n", r'^x\.ini:2: unknown option "THREADS"; .*"threads"\?$'),
        ("[http]\ntyp = single\n", r'^x\.ini:2: unknown option "typ"; did you mean "type"\?$'),
        ("[http]\nzebra = 4\n", r'^x\.ini:2: unknown option "zebra"$'),
        ("[http]\nthreads = many\n", r'^x\.ini:2: threads: "many" is not a whole number'),
        ("[http]\nthreads =\n", r'^x\.ini:2: threads: "" is not a whole number'),
        ("[http]\nthreads = 4 # few\n", r"threads: .*; a comment needs a line of its own$"),
        ("[http]\ntype = thread\n", r'^x\.ini:2: type: unknown value "thread"; .*"threading"\?$'),
        (
            "[http]\nthreads = 4\nmode = single\nthreads = 5\n",
            r'^x\.ini:4: "threads" is set a second time; the first time is on line 2$',
        ),
        (
            "[http]\nbind = fd:3\nbind = fd:4\n",
            r"^x\.ini:3: .*second time.*line 2; write its values below each other, indented$",
        ),
        (
            "[http]\nmode = single\ntype = single\n",
            r'^x\.ini:3: "type" is another name for "mode", which line 2 has set$',
        ),
        (
            "[http]\nmode = single\n  threads = 4\n",
            r'^x\.ini:3: an indented line continues "mode" of line 2.*left margin$',
        ),
        ("[http]\nbind =\n  fd:3\n  8080\n", r'^x\.ini:4: bind: "8080" has no host'),
        (
            "[http]\nforwarded_headers = off forwarded\n",
            r"^x\.ini:2: forwarded_headers: off cannot stand beside other values$",
        ),
        ("[http]\nbind =\n", r'^x\.ini:2: bind: "" has no port'),
    ],
)
def test_mistakes_in_a_file(text: str, complaint: str, ini: Path) -> None:
    with pytest.raises(ConfigError, match=complaint):
        load(ini, text)


def test_a_mistake_in_the_file_counts_even_where_another_place_wins(ini: Path) -> None:
    ini.write_text("[http]\nthreads = many\n")
    with pytest.raises(ConfigError, match=r"^x\.ini:2"):
        loader.load({"threads": ["3"]}, {}, str(ini))


@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("POORHTTP_THREADS", "many", '^POORHTTP_THREADS: "many" is not a whole number'),
        ("POORHTTP_THREADS", "4\n5", '^POORHTTP_THREADS: takes one value, and .* "5"$'),
        ("POORHTTP_BIND", "", '^POORHTTP_BIND: "" has no port'),
    ],
)
def test_mistakes_in_the_environment(variable: str, value: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        loader.load({}, {variable: value})


#: The end of messages about quotes around a whole value.
QUOTED = ": the value stands in quotes, which would be a part of it; write it without$"


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("target", '"shop:app"', QUOTED),
        ("target", "'shop:app'", QUOTED),
        ("mode", '"threading"', QUOTED),
        ("workers", "'4'", QUOTED),
        ("preload", '"on"', QUOTED),
        ("access_log", "`/var/log/shop.log`", QUOTED),
        ("bind", '"127.0.0.1:80"', QUOTED),
        ("bind", "'127.0.0.1:80', '127.0.0.1:81'", QUOTED),
        ("bind", "127.0.0.1:80,127.0.0.1:81", "has 2 values; write each by itself: "),
        ("bind", "[::1]:80, [::1]:81 :82", "has 3 values; write each by itself: "),
        ("bind", "unix:a.sock,unix:b.sock", "has 2 values; write each by itself: "),
        ("bind", '["[::1]:80", "[::1]:81"]', "has 2 values; write each by itself: "),
        ("bind", "[::1]:80,", r"do not belong to it; write \[::1\]:80$"),
        ("bind", '["127.0.0.1:80"]', r"do not belong to it; write 127.0.0.1:80$"),
        ("bind", "'localhost':80", "do not belong to it; write localhost:80$"),
        ("workers", "4;", "do not belong to it; write 4$"),
        ("mode", "threading,", "do not belong to it; write threading$"),
        ("request_timeout", "1,5", "is not a time; write seconds"),
    ],
)
def test_quotes_and_commas_of_others(name: str, text: str, complaint: str, ini: Path) -> None:
    with pytest.raises(ConfigError, match=rf"^x\.ini:2: {name}.*{complaint}"):
        load(ini, f"[http]\n{name} = {text}\n")
    variable = OPTIONS[name].variable
    with pytest.raises(ConfigError, match=rf"^{variable}.*{complaint}"):
        loader.load({}, {variable: text})
    flag = OPTIONS[name].flag or "TARGET"
    with pytest.raises(UsageError, match=rf"^{flag}.*{complaint}"):
        loader.load({name: [text]}, {})


def test_quotes_and_commas_of_a_value() -> None:
    values = [
        *[("access_log_format", '"%r" "%{Referer}i"'), ("access_log_format", '"%r"')],
        *[("bind", "unix:/run/a,b.sock"), ("target", 'shop:create("test")')],
        ("target", "static:/srv/Joe's"),
    ]
    read = [(name, *loader.load({name: [text]}, {})[0].written(name)) for name, text in values]
    assert read == values


@pytest.mark.parametrize("service", ["POORHTTP", "POORHTTP_ADMIN", "POORHTTP_2_METRICS"])
def test_variables_of_kubernetes_are_not_ours(service: str) -> None:
    """Those of its documentation, "Environment variables" of a Service."""
    names = (
        *("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8080_TCP"),
        *("PORT_8080_TCP_PROTO", "PORT_8080_TCP_PORT", "PORT_8080_TCP_ADDR"),
        *("PORT_53_UDP", "PORT_53_UDP_ADDR"),
    )
    environ = {f"{service}_{name}": "tcp://10.0.0.11:8080" for name in names}
    assert loader.load({}, environ)[0].changed() == []


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("POORHTTP_ZEBRA", ""),
        ("POORHTTP_THREAD", "POORHTTP_THREADS"),
        ("POORHTTP_REUSE_PORTS", "POORHTTP_REUSE_PORT"),
        ("POORHTTP_ADMIN_HOST", "POORHTTP_ADMIN"),
        ("POORHTTP_ADMIN_TCP_ADDR", ""),
        ("POORHTTP_PORT_TCP_ADDR", ""),
        ("POORHTTP_SERVICE_ADDRESS", "POORHTTP_SERVER_HEADER"),
    ],
)
def test_variables_that_are_unknown(variable: str, meant: str) -> None:
    hint = rf'; did you mean "{meant}"\?$' if meant else "$"
    with pytest.raises(ConfigError, match=f'^unknown environment variable "{variable}"{hint}'):
        loader.load({}, {variable: "10.0.0.11"})


def test_mistakes_on_the_command_line() -> None:
    with pytest.raises(UsageError, match=r'^--max-body: "big" is not a size'):
        loader.load({"max_body": ["big"]}, {})
    second = r'^--threads: takes one value, and there is a second, "5"$'
    with pytest.raises(UsageError, match=second):
        loader.load({"threads": ["4", "5"]}, {})


def test_the_example_file_has_every_option_with_its_default() -> None:
    file = ROOT / "conf/poorhttp.ini"
    settings = loader.load({}, {}, str(file))[0]
    assert settings.changed() == ["target"]
    names = [name.removeprefix("hook_") for name in OPTIONS]
    missing = [name for name in names if f"\n{name} =" not in file.read_text()]
    assert missing == []


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir("/")
    monkeypatch.setattr(sys, "path", ["first"])
    settings = Settings(chdir=tmp_path, pythonpath=["a", "b"])
    loader.change_folder(settings)
    loader.extend_path(settings)
    assert os.getcwd() == str(tmp_path)
    assert sys.path == [str(tmp_path / "a"), str(tmp_path / "b"), "first"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("chdir = none", r'^x\.ini:2: chdir: "none": No such file or directory$'),
        ("chdir = x.ini", r'^x\.ini:2: chdir: "x\.ini": Not a directory$'),
        ("pythonpath = none", r'^x\.ini:2: pythonpath: "none" is not a folder; .* from /'),
    ],
)
def test_folders_that_are_not_there(text: str, complaint: str, ini: Path) -> None:
    settings = load(ini, f"[http]\n{text}\n")
    with pytest.raises(Failure, match=complaint) as failure:
        (loader.change_folder if "chdir" in text else loader.extend_path)(settings)
    assert failure.value.exit_code == 3


EXAMPLE = """\
# a comment
; another

[http]
mode=single
  # an indented comment is no value
target = a=b:c
[other]
empty =
bind =
    127.0.0.1:8080

\tunix:/run/x
more = one
  two
"""


def test_sections_entries_and_lines() -> None:
    http, other = ini_file.parse(EXAMPLE, "x.ini")
    assert (http.name, http.line, other.name, other.line) == ("http", 4, "other", 8)
    assert [(e.name, e.line, e.values) for e in http.entries] == [
        ("mode", 5, [(5, "single")]),
        ("target", 7, [(7, "a=b:c")]),
    ]
    assert [(e.name, e.line, e.values) for e in other.entries] == [
        ("empty", 9, [(9, "")]),
        ("bind", 10, [(11, "127.0.0.1:8080"), (13, "unix:/run/x")]),
        ("more", 14, [(14, "one"), (15, "two")]),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("mode = single\n", r'^x\.ini:1: "mode" is in no section; write \[http\]'),
        ("[http]\n\nmode\n", r'^x\.ini:3: "mode" is neither'),
        ("[http]\n= single\n", r"^x\.ini:2: .* is neither"),
        ("[http\n", r'^x\.ini:1: "\[http" is not a section header'),
        ("[http] # ours\n", r"^x\.ini:1: .*not a section header.*comments on their own line"),
        ("[]\n", r"^x\.ini:1: .*not a section header"),
        ("[http]\n[x]\n[http]\n", r"^x\.ini:3: section \[http\] begins a second time.*line 1$"),
    ],
)
def test_mistakes_of_the_form(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        ini_file.parse(text, "x.ini")


def test_windows_line_ends_byte_order_mark_and_an_indented_first_option(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_bytes(b"\xef\xbb\xbf[http]\r\n  mode = single\r\n")
    (section,) = ini_file.read(str(file))
    assert section.entries[0].name == "mode"
    assert section.entries[0].values == [(2, "single")]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_bytes(b"[http]\nmode = \xff\n")
    with pytest.raises(ConfigError, match=r"x\.ini:2: is not UTF-8 text$"):
        ini_file.read(str(file))
    with pytest.raises(ConfigError, match=r"none\.ini: cannot be read: No such file or directory$"):
        ini_file.read(str(tmp_path / "none.ini"))
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        ini_file.read(str(tmp_path))


@given(st.lists(st.sampled_from("[]=#; \n\ra") | st.text()).map("".join))
def test_any_text_is_read_or_has_a_line_with_a_mistake(text: str) -> None:
    try:
        ini_file.parse(text, "x.ini")
    except ConfigError as error:
        found = re.match(r"x\.ini:(\d+): ", str(error))
        assert found, error  # noqa: PT017
        line = text.split("\n")[int(found[1]) - 1].strip()
        assert line in str(error) or line.partition("=")[0].strip() in str(error)  # noqa: PT017
