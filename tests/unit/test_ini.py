"""Parser of ini files, with the line of each option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poorhttp.config import ini
from poorhttp.errors import ConfigError

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
    http, other = ini.parse(EXAMPLE, "x.ini")
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


def test_an_indented_first_option_is_an_option() -> None:
    (section,) = ini.parse("[http]\n  mode = single\n", "x.ini")
    assert section.entries[0].name == "mode"


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
def test_mistakes(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        ini.parse(text, "x.ini")


def test_windows_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_bytes(b"\xef\xbb\xbf[http]\r\nmode = single\r\n")
    (section,) = ini.read(str(file))
    assert section.entries[0].values == [(2, "single")]


def test_unreadable(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_bytes(b"[http]\nmode = \xff\n")
    with pytest.raises(ConfigError, match=r"x\.ini:2: is not UTF-8 text$"):
        ini.read(str(file))
    with pytest.raises(ConfigError, match=r"none\.ini: cannot be read: No such file or directory$"):
        ini.read(str(tmp_path / "none.ini"))
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        ini.read(str(tmp_path))


@given(st.lists(st.sampled_from("[]=#; \n\ra") | st.text()).map("".join))
def test_any_text_is_read_or_has_a_line_with_a_mistake(text: str) -> None:
    try:
        ini.parse(text, "x.ini")
    except ConfigError as error:
        found = re.match(r"x\.ini:(\d+): ", str(error))
        assert found, error  # noqa: PT017
        line = text.split("\n")[int(found[1]) - 1].strip()
        assert line in str(error) or line.partition("=")[0].strip() in str(error)  # noqa: PT017
