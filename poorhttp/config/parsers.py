"""Parsers of options: each turns a text into a value.

A ValueError has a sentence with the text and a correction; the caller adds name and place of the
option.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from poorhttp.config.suggestions import suggestion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

#: Longest time that can be set, a year. More is a mistake, and could overflow timers.
YEAR = 365 * 24 * 3600.0

UNITS = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": 1024 * GIB}


def integer(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from `minimum` to `maximum`, both included."""

    def parse(text: str) -> int:
        if not _is_number(text):
            raise ValueError(
                f'"{text}" is not a whole number; write one from {minimum} to {maximum}'
            )
        number = int(text)
        if not minimum <= number <= maximum:
            raise ValueError(
                f"{number} is out of range; write a number from {minimum} to {maximum}"
            )
        return number

    return parse


class Automatic(int):
    """A number with which the server begins, and which it changes by itself; `auto` as a text."""

    def __str__(self) -> str:
        return "auto"


def auto_or(parse: Callable[[str], int]) -> Callable[[str], int]:
    """Return a parser that accepts `auto` too, for which a plug-in sets the number."""
    return lambda text: Automatic(0) if text == "auto" else parse(text)


def size(minimum: int, maximum: int) -> Callable[[str], int]:
    """Return a parser of sizes: bytes, or a unit of powers of 1024: `8192`, `8k`, `1M`, `1 GiB`."""

    def parse(text: str) -> int:
        digits = text.rstrip("bBiIkKmMgGtT ")
        unit = text[len(digits) :].strip().lower()
        short = unit[0] if unit in ("kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib") else unit
        if short not in UNITS or not _is_number(digits):
            raise ValueError(
                f'"{text}" is not a size; write bytes or a unit, for example 8192, 16K, 1M, 1GiB'
            )
        number = int(digits) * UNITS[short]
        if not minimum <= number <= maximum:
            raise ValueError(
                f'"{text}" is out of range; write a size from {size_text(minimum)} to '
                f"{size_text(maximum)}"
            )
        return number

    return parse


def size_text(number: int) -> str:
    """Return a size with the largest unit that divides it: `8KiB`, `1GiB`, else in bytes."""
    for name, unit in (("TiB", 1024 * GIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if number and number % unit == 0:
            return f"{number // unit}{name}"
    return str(number)


def seconds(minimum: float) -> Callable[[str], float]:
    """Return a parser of times in seconds: `30`, `0.5`, `30s`."""

    def parse(text: str) -> float:
        try:
            number = float(text.removesuffix("s"))
        except ValueError:
            raise ValueError(
                f'"{text}" is not a time; write seconds, for example 30 or 0.5'
            ) from None
        if not minimum <= number <= YEAR:  # a NaN fails it too
            raise ValueError(
                f'"{text}" is out of range; write seconds from {minimum:g} to {YEAR:.0f}'
            )
        return number

    return parse


def share(text: str) -> float:
    """Read a number from 0 to 1: `0.01`, `1%`."""
    try:
        number = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a share; write a number, for example 0.01') from None
    if not 0 <= number <= 1:  # a NaN fails it too
        raise ValueError(f'"{text}" is out of range; write a number from 0 to 1')
    return number


def auto_or_seconds(text: str) -> float | None:
    """Read a time in seconds, or `auto`, which is None."""
    return None if text == "auto" else seconds(0)(text)


def choice(*words: str) -> Callable[[str], str]:
    """Return a parser that accepts exactly `words`."""

    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f'unknown value "{text}"{suggestion(text, words)}')
        return text

    parse.choices = words  # type: ignore[attr-defined]
    return parse


def boolean(text: str) -> bool:
    """Read `on` or `off`, or another word for them, such as `yes`."""
    if text.lower() in ("on", "yes", "true", "1"):
        return True
    if text.lower() in ("off", "no", "false", "0"):
        return False
    raise ValueError(f'"{text}" is neither on nor off')


boolean.words = ("on", "off")  # type: ignore[attr-defined]


def switch(*others: str) -> Callable[[str], str]:
    """Return a parser of `on`, `off` and further words; it accepts what `boolean` does."""

    def parse(text: str) -> str:
        if text.lower() in others:
            return text.lower()
        try:
            return "on" if boolean(text) else "off"
        except ValueError:
            words = ", ".join(["on", "off", *others[:-1]])
            raise ValueError(f'"{text}" is none of {words} and {others[-1]}') from None

    parse.words = ("on", "off", *others)  # type: ignore[attr-defined]
    return parse


def permissions(text: str) -> int:
    """Read permission bits in octal, as chmod(1) does: `0660`, `022`."""
    digits = text.removeprefix("0o")
    if not (0 < len(digits) <= 5 and all(digit in "01234567" for digit in digits)):
        raise ValueError(f'"{text}" is not an octal number of permissions; write it as 0660')
    number = int(digits, 8)
    if number > 0o777:
        raise ValueError(f'"{text}" is out of range; permissions are 0000 to 0777')
    return number


def path(text: str) -> str:
    """Read a path. A leading `~` is the home folder."""
    if not text:
        raise ValueError("the path is empty")
    if "\0" in text:
        raise ValueError("a path cannot hold a NUL character")
    return os.path.expanduser(text)


def or_off(parse: Callable[[str], T]) -> Callable[[str], T | None]:
    """Return a parser that accepts `off` too, which is None."""
    return lambda text: None if text == "off" else parse(text)


def optional_folder(text: str) -> str:
    """Read a path; it may be empty."""
    return path(text) if text else ""


def file_name(text: str) -> str:
    """Read the name of a file without a folder; it may be empty."""
    if "/" in text or text in (".", "..") or not text.isprintable():
        raise ValueError(f'"{text}" is not the name of a file; write it without a folder')
    return text


def token(text: str) -> str:
    """Read a token (RFC 9110 section 5.6.2); it may be empty."""
    if not all(_is_token_character(letter) for letter in text):
        raise ValueError(f'"{text}" is not one word; write letters, digits and hyphens')
    return text


class ProcessName(str):
    """Name at the beginning of process titles; `requests` is one of `REQUESTS_IN_TITLES`."""

    requests = "path"


#: What process titles may show of a request.
REQUESTS_IN_TITLES = ("path", "query", "none")


def process_name(text: str) -> ProcessName:
    """Read the name of the processes, and what their titles show of requests."""
    name, *words = text.split() or [""]
    found = ProcessName(token(name))
    if words:
        found.requests = choice(*REQUESTS_IN_TITLES)(" ".join(words))
    return found


def prefix(text: str) -> str:
    """Read the beginning of a path: whole segments, `/a/b`; returned without a slash at its end."""
    segments = text.removesuffix("/").split("/")
    if segments[0] or not text:
        raise ValueError(f'"{text}" is not a prefix of a path; it begins with a slash')
    if any(segment in ("", ".", "..") for segment in segments[1:]):
        raise ValueError(f'"{text}": a segment of a prefix must not be empty, . or ..')
    if not text.isprintable() or any(mark in text for mark in "%?#\\"):
        raise ValueError(f'"{text}": write the prefix as it is when it is decoded, without %, ?, #')
    if "*" in text:
        raise ValueError(f'"{text}": a prefix is no pattern; write whole segments, without *')
    return text.removesuffix("/")


def prefix_or_all(text: str) -> str:
    """Read a prefix of paths, or `on`, which is all of them: the empty prefix."""
    return "" if text.lower() in ("on", "yes", "true", "1") else prefix(text)


def mapping(what: str) -> Callable[[str], tuple[str, str]]:
    """Return a parser of `/PREFIX=WHAT`, which returns the prefix, and the rest."""

    def parse(text: str) -> tuple[str, str]:
        before, equals, behind = text.partition("=")
        if not equals or not behind.strip():
            raise ValueError(f'"{text}" is not a mount; write it as /PREFIX={what}')
        rest = line(behind.strip())
        return prefix(before.strip()), path(rest) if what == "FOLDER" else rest

    return parse


#: Headers that the server sets, or that differ between responses. The core refuses them too.
_NOT_ADDED = frozenset(
    (
        *("connection", "content-length", "content-range", "date", "keep-alive"),
        *("proxy-authenticate", "proxy-connection", "server", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    )
)


def prefix_header(text: str) -> tuple[str, str, str]:
    """Read `/PREFIX=NAME: VALUE`."""
    before, _, field = text.partition("=")
    name, colon, value = field.partition(":")
    if not (colon and name.strip() and all(map(_is_token_character, name.strip()))):
        raise ValueError(f'"{text}" is not a header; write it as /PREFIX=Cache-Control: max-age=60')
    name, value = name.strip(), header(value.strip())
    if name.lower() in _NOT_ADDED:
        raise ValueError(f'"{text}": {name} cannot be added, the server sets it')
    if "*" in before:
        raise ValueError(
            f'"{before.strip()}" is a pattern, and a prefix is none; write a folder or one file. '
            "static_immutable finds the files whose names hold a hash"
        )
    return prefix(before.strip()), name, value


def extension_type(text: str) -> tuple[str, str]:
    """Read `.EXT=TYPE/SUBTYPE`; returns the extension in lower case, without its dot."""
    extension, _, media_type = text.partition("=")
    main, _, sub = media_type.strip().partition(";")[0].strip().partition("/")
    named = extension.startswith(".") and len(extension.strip()) > 1
    if not (named and main and sub and all(map(_is_token_character, main + sub))):
        raise ValueError(f'"{text}" is not a media type; write it as .webmanifest=application/json')
    return extension.strip()[1:].lower(), header(media_type.strip())


def variable(text: str) -> tuple[str, str]:
    """Read `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not equals or not name or not name.isprintable():
        raise ValueError(f'"{text}" is not a variable with its value; write it as NAME=VALUE')
    return name, line(value)


def network(text: str) -> str:
    """Read an address, a network (`10.0.0.0/8`), or `unix` for clients of Unix sockets."""
    if text == "unix":
        return text
    import ipaddress  # large, and needed only here

    try:
        found = ipaddress.ip_interface(text)
    except ValueError:
        raise ValueError(
            f'"{text}" is neither an address nor a network; write 10.0.0.1, 10.0.0.0/8, fd00::/8, '
            "or unix for the clients of Unix sockets"
        ) from None
    if int(found.ip) != int(found.network.network_address):
        raise ValueError(f'"{text}" has bits set after its prefix; write {found.network}')
    return str(found.network)


#: Log daemons and their usual sockets.
LOG_DAEMONS = {"syslog": "/dev/log", "journald": "/run/systemd/journal/socket"}


def log_place(text: str) -> str:
    """Read the destination of a log: a path, `-`, or a daemon, `syslog` or `journald:PATH`."""
    daemon, colon, where = text.partition(":")
    if daemon not in LOG_DAEMONS:
        return path(text)
    if not colon:
        return text
    if not where:
        raise ValueError(
            f'"{text}" names no socket; write {daemon} alone, or {daemon}:{LOG_DAEMONS[daemon]}'
        )
    return f"{daemon}:{path(where)}"


def line(text: str) -> str:
    """Read any text without control characters; it may be empty.

    Undecodable bytes of a path are allowed; Python represents them as lone surrogates.
    """
    if not all(letter.isprintable() or "\udc80" <= letter <= "\udcff" for letter in text):
        raise ValueError(f"{text!a} holds a control character; write plain text on one line")
    return text


def header(text: str) -> str:
    """Read a response header: visible ASCII and spaces (RFC 9110 section 5.5), or empty."""
    if not (text.isascii() and text.isprintable()):
        raise ValueError(
            f"{text!a} cannot stand in a header; write ASCII text without control characters"
        )
    return text


def _is_number(text: str) -> bool:
    """Tell whether `text` is a whole number with digits only, not `1_000`, of at most 19 digits."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 19


def _is_token_character(letter: str) -> bool:
    """Tell whether a letter is a `tchar` (RFC 9110 section 5.6.2)."""
    return letter.isascii() and (letter.isalnum() or letter in "!#$%&'*+-.^_`|~")
