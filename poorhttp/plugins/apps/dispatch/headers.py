"""Header fields of a request or an answer, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class Headers:
    """Header fields in order, looked up without regard to case (RFC 9110 section 5.1).

    A missing name gives None, as in `wsgiref.headers`. Setting replaces every field of the name,
    `add` adds one more (`Set-Cookie`). Values are converted to text, and refused if they cannot be
    sent: a line break would let a value add headers of its own.
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields = list(fields)

    def __getitem__(self, name: str) -> str | None:
        return self.get(name)

    def __setitem__(self, name: str, value: object) -> None:
        field = _checked(name, value)
        del self[name]
        self._fields.append(field)

    def __delitem__(self, name: str) -> None:
        lower = name.lower()
        self._fields = [field for field in self._fields if field[0].lower() != lower]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __len__(self) -> int:
        return len(self._fields)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __repr__(self) -> str:
        return f"Headers({self._fields!r})"

    def get(self, name: str, default: str | None = None) -> str | None:
        """The first value of a name, or the default."""
        lower = name.lower()
        for field, value in self._fields:
            if field.lower() == lower:
                return value
        return default

    def get_all(self, name: str) -> list[str]:
        """Every value of a name, in order."""
        lower = name.lower()
        return [value for field, value in self._fields if field.lower() == lower]

    def add(self, name: str, value: object) -> None:
        """Add one more field.

        Raises:
            ValueError: name or value cannot stand in a header.
        """
        self._fields.append(_checked(name, value))

    def setdefault(self, name: str, value: object) -> str:
        """The value of a name, which is set first if there is none."""
        found = self.get(name)
        if found is None:
            self.add(name, value)
            return str(value)
        return found

    def keys(self) -> list[str]:
        """Every name, in order, repeated ones too."""
        return [name for name, _ in self._fields]

    def values(self) -> list[str]:
        """Every value, in order."""
        return [value for _, value in self._fields]

    def items(self) -> list[tuple[str, str]]:
        """Every field as a new list of (name, value), the form `start_response` takes."""
        return self._fields.copy()


def _checked(name: str, value: object) -> tuple[str, str]:
    text = str(value)
    if not name or not name.isascii() or not name.isprintable() or " " in name or ":" in name:
        raise ValueError(f"{name!r} is not the name of a header")
    for character in text:
        code = ord(character)
        if (code < 32 and code != 9) or code == 127 or code > 255:
            raise ValueError(
                f"header {name} cannot carry the character {character!r} of {text!r}: "
                "only printable Latin-1 characters and tabs are allowed"
            )
    return name, text
