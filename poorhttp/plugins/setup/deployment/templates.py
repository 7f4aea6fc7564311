"""Reads and changes the files of `conf/` and `proxy/`, from which others are made.

An installation has them beside this file, a clone of the source at its top.
"""

from __future__ import annotations

from pathlib import Path

INSTALLED = Path(__file__).parent / "files"
SOURCE = Path(__file__).parents[4]


def folder(name: str) -> Path:
    """Return the path of a folder of templates, such as `conf/kubernetes`."""
    return (INSTALLED if INSTALLED.is_dir() else SOURCE) / name


class Template:
    """The text of a file, which is changed part by part.

    A part that is missing is an error: the file has been changed, and not what is made of it.
    """

    def __init__(self, name: str, text: str | None = None) -> None:
        self.name = name
        self.text = folder(name).read_text(encoding="utf-8") if text is None else text

    def replace(self, old: str, new: str) -> None:
        """Replace a text wherever it stands."""
        if old not in self.text:
            raise LookupError(f"{self.name} has no {old!r}")
        self.text = self.text.replace(old, new)

    def replace_between(self, start: str, end: str, new: str) -> None:
        """Replace the first part from `start` up to `end`, which stays."""
        first = self.text.find(start)
        last = self.text.find(end, first + len(start))
        if first < 0 or last < 0:
            raise LookupError(f"{self.name} has nothing from {start!r} to {end!r}")
        self.text = self.text[:first] + new + self.text[last:]

    def drop(self, *lines: str) -> None:
        """Remove lines."""
        for line in lines:
            self.replace(f"{line}\n", "")
