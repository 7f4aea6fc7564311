"""Reader of the files of test cases, which `tests/cases/schema` describes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "cases"

ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.|$)")
REPEAT = re.compile(r"(\d+) \* (.*)")
SIMPLE = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\", "e": ""}


@dataclass(frozen=True)
class Block:
    """A block of a file; `lines` are its values as written, `values` what they stand for."""

    #: File and line, for messages.
    place: str
    #: Name of its file, without the ending.
    file: str
    heading: str
    kind: str
    lines: dict[str, list[str]]
    values: dict[str, Any]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def get(self, key: str, default: object = None) -> Any:
        """The value of a key, or `default` without it."""
        return self.values.get(key, default)

    def error(self, fault: object) -> ValueError:
        """A ValueError that says where the block stands."""
        return ValueError(f"{self.place}: {fault}")


def unescape(text: str) -> str:
    r"""The characters that `text` stands for; ValueError for an unknown escape."""

    def character(match: re.Match[str]) -> str:
        name = match[1]
        if name in SIMPLE:
            return SIMPLE[name]
        if len(name) in (3, 5):
            return chr(int(name[1:], 16))
        raise ValueError(f"unknown escape \\{name} in {text!r}")

    return ESCAPE.sub(character, text)


def repeated(text: str) -> str:
    """The characters that `text` stands for, as often as it says."""
    if match := REPEAT.fullmatch(text):
        return unescape(match[2]) * int(match[1])
    return unescape(text)


def pairs(lines: list[str]) -> list[tuple[str, str | None]]:
    """Names and values; `None` for a name that must not be there."""
    found: list[tuple[str, str | None]] = []
    for line in lines:
        match = REPEAT.fullmatch(line)
        times, text = (int(match[1]), match[2]) if match else (1, line)
        name, mark, value = text.partition(": ")
        if text.startswith("not ") and not mark:
            found.append((unescape(text.removeprefix("not ")), None))
        elif mark or text.endswith(":"):
            pair = unescape(name if mark else text[:-1]), repeated(value)
            found += [pair] * times
        else:
            raise ValueError(f"neither `name: value` nor `not name`: {line!r}")
    return found


#: What the lines of a value stand for, by its type.
TYPES: dict[str, Callable[[list[str]], Any]] = {
    "text": " ".join,
    "words": lambda lines: [unescape(word) for word in " ".join(lines).split()],
    "number": lambda lines: int(" ".join(lines)),
    "octal": lambda lines: int(" ".join(lines), 8),
    "lines": lambda lines: [repeated(line) for line in lines],
    "bytes": lambda lines: "".join(map(repeated, lines)).encode("latin-1"),
    "hex": lambda lines: bytes.fromhex(" ".join(lines)),
    "pairs": pairs,
}


@dataclass(frozen=True)
class Kind:
    """The keys of a kind of block, and the types of their values."""

    required: dict[str, str]
    optional: dict[str, str]

    @property
    def first(self) -> str:
        """The key that every block of this kind has, and no other."""
        return next(iter(self.required))


def split(path: Path) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    """The place and the heading of each block of a file, and the lines of each key."""
    heading = key = place = ""
    block: dict[str, list[str]] = {}
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), ""], 1):
        if not line.isascii():
            raise ValueError(f"{path.name}:{number}: not ASCII: {line!r}")
        if line.startswith("#"):
            heading = line[3:] if line.startswith("## ") else heading
        elif not line:
            if block:
                yield place, heading, block
            block, key = {}, ""
        elif line.startswith("    ") and key:
            block[key].append(line[4:])
        else:
            place = place if block else f"{path.name}:{number}"
            key, colon, rest = line.partition(":")
            if not colon or key in block:
                raise ValueError(f"{path.name}:{number}: not a new key: {line!r}")
            block[key] = [rest.strip()] if rest.strip() else []


@cache
def schema() -> dict[str, Kind]:
    """The kinds of blocks by name."""

    def types(lines: list[str]) -> dict[str, str]:
        keys = [line.partition(": ") for line in lines if not line.startswith(" ")]
        return {key: text.split()[0] for key, _, text in keys}

    return {
        block["kind"][0]: Kind(types(block["required"]), types(block.get("optional", [])))
        for _, _, block in split(FOLDER / "schema")
    }


def blocks(paths: Iterable[Path], *kinds: str) -> Iterator[Block]:
    """The blocks of files, each of one of `kinds`; ValueError for what is none, or a name again."""
    names: dict[str, str] = {}
    for path in paths:
        for place, heading, lines in split(path):
            found = [kind for kind in kinds if schema()[kind].first in lines]
            if len(found) != 1:
                raise ValueError(f"{place}: not one of {', '.join(kinds)}: {found}")
            values = read_values(place, schema()[found[0]], lines)
            if "name" in values and names.setdefault(values["name"], place) != place:
                raise ValueError(f"{place}: {values['name']} is also at {names[values['name']]}")
            yield Block(place, path.stem, heading, found[0], lines, values)


def read_values(place: str, kind: Kind, lines: dict[str, list[str]]) -> dict[str, Any]:
    """The values of a block; ValueError for one that is not as its kind says."""
    if missing := [key for key in kind.required if key not in lines]:
        raise ValueError(f"{place}: without {', '.join(missing)}")
    types = kind.required | kind.optional
    values = {}
    for key, text in lines.items():
        if key not in types:
            raise ValueError(f"{place}: unknown key {key}")
        try:
            values[key] = TYPES[types[key]](text)
        except ValueError as error:
            raise ValueError(f"{place}: {key}: {error}") from None
        if key in kind.required and types[key] == "text" and not values[key]:
            raise ValueError(f"{place}: nothing behind {key}")
    return values
