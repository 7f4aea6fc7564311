"""The options of compression of responses."""

from __future__ import annotations

from poorhttp.config.options.option import Option, WordList
from poorhttp.config.parsers import boolean, size
from poorhttp.config.suggestions import suggestion

#: Content codings in order of preference, with their lowest and highest level.
CODINGS = {"zstd": (-7, 9), "br": (0, 6), "gzip": (1, 9)}


def codings(text: str) -> tuple[str, ...]:
    """Read content codings with commas or spaces; `on` is all of them, `off` none.

    `static` among them limits compression to static files; alone it is all codings.
    """
    try:
        return tuple(CODINGS) if boolean(text) else ()
    except ValueError:
        names = tuple(dict.fromkeys(text.lower().replace(",", " ").split()))
    if names == ("static",):
        return ("static", *CODINGS)
    for name in names:
        if name == "static":
            continue
        if name not in CODINGS:
            raise ValueError(
                f'"{text}" is neither on nor off nor static nor a list of {", ".join(CODINGS)}'
                f"{suggestion(name, tuple(CODINGS))}"
            )
    if not names:
        raise ValueError(f"write on, off, static or a list of {', '.join(CODINGS)}")
    return names


codings.words = ("on", "off", "static")  # type: ignore[attr-defined]


def coding_level(text: str) -> tuple[str, int]:
    """Read `CODING=LEVEL`."""
    name, equals, level = text.partition("=")
    lowest, highest = CODINGS.get(name, (0, 0))
    if not equals or name not in CODINGS:
        raise ValueError(f'"{text}" is not CODING=LEVEL, such as gzip=6, of {", ".join(CODINGS)}')
    if not _is_level(level) or not lowest <= int(level) <= highest:
        raise ValueError(f'"{text}": write a level of {name} from {lowest} to {highest}')
    return name, int(level)


def media_types(text: str) -> str:
    """Read a media type, `TYPE/*`, `+SUFFIX` or `*`."""
    kind, slash, subtype = text.partition("/")
    if text == "*" or (text.startswith("+") and len(text) > 1 and not slash) or (kind and subtype):
        return text
    raise ValueError(f'"{text}" is not a media type; write text/html, text/*, +json or *')


def _is_level(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= 19


class Compression:
    """Compression of responses while they are sent."""

    GROUP = "Compression"

    compress = Option(
        codings,
        "off",
        "Compress responses for clients that accept it: `on`, `static` for static files alone, or "
        "codings in order of preference, `zstd, br, gzip`.",
        metavar="CODINGS",
        reason="For responses of applications, CGI programs and files up to 1 MiB. `on` is `zstd, "
        "br, gzip`, and `static, br` is Brotli for static files. Of the codings that the client "
        "prefers in `Accept-Encoding`, the first of this list is used. Each piece that an "
        "application sends can be decoded when it arrives. The server does not compress responses "
        "with `Content-Encoding`, `Cache-Control: no-transform`, a digest, a range or a cookie. A "
        "response header `X-Compress`, `on` or `off`, overrides this "
        "(docs/guides/compression.md). Off, because a proxy in front often compresses, and "
        "because an attacker may guess a secret that is compressed together with text from the "
        "attacker (docs/reference/security.md). nginx `gzip` (off).",
        fixed={"compress-responses": "on"},
    )
    compress_types = WordList(
        media_types,
        (
            "text/*",
            "+json",
            "+xml",
            "application/json",
            "application/javascript",
            "application/xml",
            "application/wasm",
            "application/x-ndjson",
            "application/vnd.ms-fontobject",
            "font/otf",
            "font/ttf",
            "image/bmp",
            "image/vnd.microsoft.icon",
            "image/x-icon",
        ),
        "Media types that are compressed, such as `text/html`; `text/*` is all of a type, `+json` "
        "all with this suffix, `*` all.",
        metavar="TYPE",
        reason="Images, videos, archives and most fonts are already compressed. nginx has only "
        "`text/html`.",
    )
    compress_min_size = Option(
        size(0, 2**40),
        "1K",
        "Smallest response that is compressed, if its length is known.",
        reason="A response that fits into one packet does not arrive sooner when compressed. "
        "nginx 20 bytes, Caddy 512, Flask-Compress 500.",
    )
    compress_level = WordList(
        coding_level,
        ("zstd=3", "br=5", "gzip=5"),
        "Level of a coding, `CODING=LEVEL`: zstd -7 to 9, br 0 to 6, gzip 1 to 9.",
        metavar="LEVEL",
        reason="Beyond these levels, more CPU time saves little (docs/benchmarks/compress.md). A "
        "coding that you do not name keeps its default. Higher levels of zstd and br need tens of "
        "megabytes for each response. nginx gzip 1.",
    )
