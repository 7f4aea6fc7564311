"""Glob patterns for files of a project: `*.sql`, `data/**/*.json`, `generated/`.

`*` and `?` do not match a slash, `[ab]` and `[!ab]` are sets, and `**` stands for any number of
folders. `fnmatch` is not used: it has no `**`, and imports `re` into processes that must be small.
"""

from __future__ import annotations


class Glob:
    """One pattern.

    Attributes:
        text: as it was written.
        absolute: it matches absolute paths, not paths relative to a folder of the project.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.absolute = text.startswith("/")
        pattern = text.removeprefix("./").strip("/")
        self._parts = pattern.split("/")
        if "/" not in pattern and not self.absolute:
            # A name without a slash matches in every folder.
            self._parts.insert(0, "**")

    def matches(self, path: str) -> bool:
        """Whether the pattern matches a path, or a folder that it is in.

        Args:
            path: relative to a folder of the project, or absolute if the glob is.
        """
        parts = path.strip("/").split("/")
        return any(_match(self._parts, parts[:end]) for end in range(1, len(parts) + 1))


def _match(pattern: list[str], parts: list[str]) -> bool:
    for index, glob in enumerate(pattern):
        if glob == "**":
            rest = pattern[index + 1 :]
            return any(_match(rest, parts[start:]) for start in range(index, len(parts) + 1))
        if index >= len(parts) or not matches_name(glob, parts[index]):
            return False
    return len(pattern) == len(parts)


def matches_name(glob: str, name: str) -> bool:
    """Whether a glob without slashes matches a whole name."""
    at = here = 0
    star = again = -1
    while here < len(name):
        if glob[at : at + 1] == "*":
            star, again = at, here
            at += 1
            continue
        width = _one(glob, at, name[here])
        if width:
            at += width
            here += 1
        elif star >= 0:
            # Backtrack: the last asterisk takes one letter more.
            again += 1
            at, here = star + 1, again
        else:
            return False
    return not glob[at:].strip("*")


def _one(glob: str, at: int, letter: str) -> int:
    """Return the length of the glob's next element if it matches a letter, or else 0."""
    if at >= len(glob):
        return 0
    end = glob.find("]", at + 2) if glob[at] == "[" else -1
    if end > 0:
        inside = glob[at + 1 : end]
        negated = inside[0] in "!^"
        return end + 1 - at if _in_set(inside[negated:], letter) != negated else 0
    return int(glob[at] in ("?", letter))


def _in_set(letters: str, letter: str) -> bool:
    at = 0
    while at < len(letters):
        if letters[at + 1 : at + 2] == "-" and at + 2 < len(letters):
            if letters[at] <= letter <= letters[at + 2]:
                return True
            at += 3
        else:
            if letters[at] == letter:
                return True
            at += 1
    return False
