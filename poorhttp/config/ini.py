"""Reads an ini file, with line numbers for error messages.

# a comment, on a line of its own (; begins one too)
[section]
name = value
name =
    one value
    on each indented line
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from poorhttp.errors import ConfigError

#: Opens a file for reading, and returns the descriptor.
Opener = Callable[[str], int]

#: Most bytes of a file. The longest configuration that was seen has a few kilobytes.
MOST_BYTES = 16 << 20


class Entry:
    """One `name = value` of a file.

    Attributes:
        name: the name in the file.
        line: number of its line, from 1.
        values: pairs of line number and text: the text after `=`, then the indented lines. An empty
            text after `=` is left out if indented lines follow.
    """

    def __init__(self, name: str, line: int, value: str) -> None:
        self.name = name
        self.line = line
        self.values = [(line, value)]


class Section:
    """A section with its entries in their order, and the line of its header."""

    def __init__(self, name: str, line: int) -> None:
        self.name = name
        self.line = line
        self.entries: list[Entry] = []


def open_file(path: str) -> int:
    """Open a configuration file as `os.open` does, without waiting for a pipe or a device.

    Links are followed: who may write the folder of a configuration file decides what it says
    anyway.
    """
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def read_file(path: str, limit: int = -1, opener: Opener = open_file) -> bytes:
    """Return the content of a regular file, at most `limit` bytes if it is not negative.

    Not of a named pipe, whose opening could block, and which a reload could not read again.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    fd = opener(path)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        content = file.read(limit if limit >= 0 else MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES} bytes")
    return content


def read(file: str, opener: Opener | None = None) -> list[Section]:
    """Read a file (UTF-8), which `opener` opens; by default `open_file`.

    Raises:
        ConfigError: it cannot be read, a line is not valid, or a section is repeated; with file and
            line.
    """
    try:
        content = read_file(file, opener=opener or open_file)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        number = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}:{number}: is not UTF-8 text") from error
    # Undecodable bytes as in the command line, so that paths name the same files.
    return parse(os.fsdecode(text.encode()), file)


def parse(text: str, file: str) -> list[Section]:
    """Read the text of a file; `file` is its name for the errors, as of `read`."""
    sections: list[Section] = []
    entry: Entry | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        where = f"{file}:{number}"
        if not line or line[0] in "#;":
            continue
        if raw[0] in " \t" and entry is not None:
            if entry.values == [(entry.line, "")]:
                entry.values.clear()
            entry.values.append((number, line))
        elif line[0] == "[":
            name = line[1:-1].strip()
            if line[-1] != "]" or not name:
                raise ConfigError(
                    f'{where}: "{line}" is not a section header; write it as [http], with comments '
                    "on their own line"
                )
            first = next((section.line for section in sections if section.name == name), 0)
            if first:
                raise ConfigError(
                    f"{where}: section [{name}] begins a second time; the first is on line {first}"
                )
            sections.append(Section(name, number))
            entry = None
        else:
            before, equals, value = line.partition("=")
            name = before.strip()
            if not equals or not name:
                raise ConfigError(
                    f'{where}: "{line}" is neither "name = value" nor a [section]; a comment '
                    "begins with #"
                )
            if not sections:
                raise ConfigError(
                    f'{where}: "{name}" is in no section; write [http] on a line above it'
                )
            entry = Entry(name, number, value.strip())
            sections[-1].entries.append(entry)
    return sections
