"""Reader of trust cases (`tests/cases/trust`, described in `tests/cases/schema`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.testkit.cases.blocks import FOLDER, blocks

#: What a case does not name of these variables is as if nobody had said anything.
WATCHED = (
    *("REMOTE_ADDR", "REMOTE_PORT", "wsgi.url_scheme", "HTTPS", "HTTP_HOST"),
    *("SERVER_NAME", "SERVER_PORT", "SCRIPT_NAME", "PATH_INFO"),
)


@dataclass(frozen=True)
class Case:
    """What somebody says of where a request comes from, and what is made of that."""

    #: Name of its file, without the ending.
    file: str
    name: str
    #: Of the server.
    options: tuple[str, ...]
    peer: str
    preamble: bytes
    request: bytes
    fields: tuple[str, ...]
    #: Status and reason; empty if it is answered.
    refusal: str
    #: `None`: is not there.
    environ: dict[str, str | None]

    def expected(self, plain: dict[str, str | None]) -> dict[str, str | None]:
        """What the application finds, if `plain` is what it would find otherwise."""
        expected = dict(plain)
        if "REMOTE_ADDR" in self.environ:
            expected["REMOTE_PORT"] = ""
        return expected | self.environ


def read(*paths: Path) -> Iterator[Case]:
    """The cases of files. ValueError for one that is not written as it should be."""
    options: tuple[str, ...] = ()
    for block in blocks(paths, "trust", "forwarded"):
        if block.kind == "trust":
            words = " ".join(block["trust"])
            options = ("--trusted-proxies", words) if words else ()
            if "hears" in block:
                options += ("--forwarded-headers", block["hears"])
            if "proxied" in block:
                options += ("--proxy-protocol", "on")
            continue
        status, _, reason = block["expect"].partition(" ")
        if (status == "200") == bool(reason):
            raise block.error("expect needs 200, or a status and a reason")
        host, target = block.get("host", "a"), block.get("target", "/")
        fields = tuple(block.get("field", ()))
        lines = [f"GET {target} HTTP/{'1.0' if host == '-' else '1.1'}"]
        lines += [f"Host: {host}"] if host != "-" else []
        environ: dict[str, str | None] = {}
        if "://" in target:
            environ["HTTP_HOST"] = target.partition("://")[2].rstrip("/")
        elif target != "/":
            environ["PATH_INFO"] = target
        if host != "a":
            environ["HTTP_HOST"] = None if host == "-" else host
        yield Case(
            file=block.file,
            name=block["name"],
            options=options,
            peer=block.get("from", "127.0.0.1"),
            preamble=block.get("preamble", b"") + block.get("hex", b""),
            request="\r\n".join([*lines, *fields, "", ""]).encode("latin-1"),
            fields=fields,
            refusal=f"{status} {reason}" if reason else "",
            environ=environ | dict(block.get("environ", ())),
        )


def read_all() -> list[Case]:
    """Every case of both files."""
    return list(read(*(FOLDER / "trust" / name for name in ("forwarded.txt", "preamble.txt"))))
