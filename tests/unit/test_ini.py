"""Parser of ini files, with the line of each option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poorhttp.config import ini
from poorhttp.errors import ConfigError

#: Name, line, and the lines with their values.
Entry = tuple[str, int, list[tuple[int, str]]]

INDENTS = st.sampled_from([" ", "\t", "\t "])
SPACES = st.sampled_from(["", " ", "\t", " \t ", "\r"])
#: Text of one line, which begins no comment and has no space around it.
WORDS = (
    st.lists(st.sampled_from("ab=[]#; ") | st.text(max_size=2), min_size=1)
    .map(lambda pieces: "".join(pieces).replace("\n", "").strip())
    .filter(lambda text: text and text[0] not in "#;")
)
NAMES = WORDS.map(lambda text: text.replace("=", "").strip()).filter(
    lambda text: text and text[0] not in "#;["
)
ASIDES = st.sampled_from(["", " ", "# a", " ; b = c", "\t#[d]"])
MARKS = st.sampled_from(["[", "]", "=", "#", ";", " ", "\n", "\r", "a"])
VALUES = st.lists(WORDS, max_size=2)

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


def test_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "x.ini"
    file.write_bytes(b"[http]\nmode = \xff\n")
    with pytest.raises(ConfigError, match=r"x\.ini:2: is not UTF-8 text$"):
        ini.read(str(file))


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.ini: cannot be read: No such file or directory$"):
        ini.read(str(tmp_path / "none.ini"))
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        ini.read(str(tmp_path))


@st.composite
def files(draw: st.DrawFn) -> tuple[str, list[tuple[str, int, list[Entry]]]]:
    """The text of a file, and what it says: sections, with their entries, with their lines."""
    lines: list[str] = []
    sections = []

    def write(line: str) -> int:
        lines.extend(
            draw(st.lists(st.sampled_from(["", " ", "# a", " ; b = c", "\t#[d]"]), max_size=2))
        )
        lines.append(line + draw(SPACES))
        return len(lines)

    for section in draw(st.lists(WORDS, unique=True, max_size=3)):
        at = write(f"[{draw(SPACES)}{section}{draw(SPACES)}]")
        entries: list[Entry] = []
        for name in draw(st.lists(NAMES, max_size=3)):
            # Below a header an option may be indented; below another option it would be its value.
            indent = "" if entries else draw(st.just("") | INDENTS)
            value = draw(st.just("") | WORDS)
            line = write(f"{indent}{name}{draw(SPACES)}={draw(SPACES)}{value}")
            more = [(write(f"{draw(INDENTS)}{text}"), text) for text in draw(VALUES)]
            first = [(line, value)] if value or not more else []
            entries.append((name, line, first + more))
        sections.append((section, at, entries))
    return "\n".join(lines), sections


# The most of the time is taken by making them.
@settings(max_examples=settings().max_examples // 2)
@given(files())
def test_what_is_written_is_read(
    file: tuple[str, list[tuple[str, int, list[Entry]]]],
) -> None:
    text, sections = file
    assert [
        (section.name, section.line, [(e.name, e.line, e.values) for e in section.entries])
        for section in ini.parse(text, "x.ini")
    ] == sections


@given(
    st.lists(st.sampled_from(["[", "]", "=", "#", ";", " ", "\n", "\r", "a"]) | st.text()).map(
        "".join
    )
)
def test_any_text_is_read_or_has_a_line_with_a_mistake(text: str) -> None:
    try:
        ini.parse(text, "x.ini")
    except ConfigError as error:
        found = re.match(r"x\.ini:(\d+): ", str(error))
        assert found, error  # noqa: PT017
        line = text.split("\n")[int(found[1]) - 1].strip()
        assert line in str(error) or line.partition("=")[0].strip() in str(error)  # noqa: PT017
