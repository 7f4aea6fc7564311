"""Checks the names of virtual hosts in `[host:NAME]`."""

from __future__ import annotations

#: Longest name of a host (RFC 1035 section 2.3.4).
LONGEST = 253


def names(text: str) -> list[str]:
    """Return the names in the header of a section, which are separated by spaces.

    Raises:
        ValueError: with the wrong name and a correction.
    """
    found = text.split()
    for name in found:
        right = _right(name)
        if right is None:
            raise ValueError(
                f'"{name}" is not the name of a host; write it as www.example.org, *.example.org, '
                "127.0.0.1 or [::1]"
            )
        if right != name:
            raise ValueError(f'"{name}": write the host as {right}')
    if not found:
        raise ValueError("names no host; write it as [host:www.example.org]")
    return found


def _right(name: str) -> str | None:
    """Return the normalized form of a name, as in requests; None if it is no host name."""
    if name.startswith("["):
        address, bracket, port = name.lower()[1:].partition("]")
        hexadecimal = set(address) <= set("0123456789abcdef:.") and ":" in address
        return f"[{address}]" if bracket and hexadecimal and _is_port(port) else None
    host, colon, port = name.partition(":")
    if not _is_port(colon + port):
        return None
    star = "*." if host.startswith("*.") else ""
    host = host.removeprefix("*.").removesuffix(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return None
    labels = host.lower().split(".")
    known = all(
        label and len(label) < 64 and label.replace("-", "a").replace("_", "a").isalnum()
        for label in labels
    )
    return star + ".".join(labels) if known and len(host) <= LONGEST else None


def _is_port(text: str) -> bool:
    return not text or (text[0] == ":" and text[1:].isdigit())
