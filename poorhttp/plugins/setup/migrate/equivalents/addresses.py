"""Addresses of other servers, and the proxies that they trust."""

from __future__ import annotations

import os
import re

from poorhttp.config.address import parse
from poorhttp.plugins.setup.migrate.equivalents.plan import Plan, Setting

#: What stands for "every peer" where one must not trust the whole internet.
PRIVATE = (
    *("127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
    "unix",
)

#: This machine.
LOCAL = ("127.0.0.1", "::1")

#: Every interface, at the port that the environment names.
_AT_PORT = re.compile(r"(?:0\.0\.0\.0|\*|\[::\])?:?\$[({]?PORT[)}]?")

#: The headers that the usual configurations of proxies set.
_NAME_THEM = "name here what your proxy sets; see docs/guides/trusted-proxies.md"
HEADERS = ("x-forwarded-for", "x-forwarded-proto")


def address(text: str, port: int = 8000) -> str:
    """Return an address as `bind` takes it, from what gunicorn, waitress and uWSGI allow.

    `:8000`, `8000`, `HOST`, `*:8000`, `tcp://HOST:PORT`, `unix:PATH`, `unix://PATH`, `/PATH`,
    `@NAME`, `fd://3`. A host that is left out is every IPv4 interface, as it is there.

    Raises:
        ValueError: it is none of these.
    """
    text = text.strip().removeprefix("tcp://")
    if text.startswith("fd://"):
        found = f"fd:{text[5:]}"
    elif text.startswith(("unix:", "/", "@")):
        path = text.removeprefix("unix:")
        found = f"unix:{path[2:] if path.startswith('//') else path}"
    elif text.isdigit():
        found = f"0.0.0.0:{text}"
    else:
        host, colon, number = text.rpartition(":")
        if not colon or text.endswith("]"):
            host, number = text, str(port)
        if host in ("", "*"):
            host = "0.0.0.0"
        found = f"[{host}]:{number}" if ":" in host and host[0] != "[" else f"{host}:{number}"
    return str(parse(found))


def listen(plan: Plan, setting: Setting, text: str, port: int = 8000, before: str = "") -> None:
    """Plan an address; `before` is its protocol, such as `https`."""
    if _AT_PORT.fullmatch(text.strip()):
        plan.follow(
            setting,
            "Without bind, poorhttp listens on 0.0.0.0 at the port that the variable PORT names.",
        )
        return
    if plan.from_environment(setting, "bind"):
        return
    try:
        where = address(text, port)
    except ValueError as error:
        plan.explain(setting, f"{error}.")
        return
    if before:
        where = f"{before}://{where}" if parse(where).kind == "tcp" else f"{before}+{where}"
    plan.set("bind", where, setting)


def bound(plan: Plan) -> list[str]:
    """Return the planned addresses."""
    planned = plan.options.get("bind")
    return planned.values if planned else []


def is_local(text: str) -> bool:
    """Tell whether only this machine reaches an address."""
    found = parse(text)
    return found.kind == "unix" or found.host in ("127.0.0.1", "::1", "localhost")


def trust(plan: Plan, setting: Setting | None, default: str) -> None:
    """Plan the proxies that may name a client.

    Args:
        plan: the plan, with its addresses.
        setting: the setting with the addresses of proxies, if there is one.
        default: the comment if there is none.
    """
    places = bound(plan)
    passed = [each.one for each in plan.settings if plan.has_sockets and each.name == "bind"]
    unix = ["unix"] if _has_unix(places) or any("unix:" in text for text in passed) else []
    if setting is None:
        # Where others connect, X-Forwarded-... stay ordinary fields, as they are there.
        if unix or (places and all(is_local(place) for place in places)):
            local = [] if all(parse(place).kind == "unix" for place in places) else LOCAL
            plan.set("trusted_proxies", [*local, *unix], default)
            plan.set(
                "forwarded_headers",
                HEADERS,
                "name here what your proxy sets; see docs/guides/trusted-proxies.md",
            )
        return
    if plan.from_environment(setting, "trusted_proxies"):
        return
    words = [word.strip() for item in setting.words for word in item.split(",") if word.strip()]
    if "*" in words:
        plan.set("trusted_proxies", PRIVATE, setting, "narrow it to your proxies")
        plan.warnings.append(
            f"{setting.text} trusts everybody. Here, whoever is trusted also names the client's "
            "address, so trusted_proxies has private networks only: name your proxies there."
        )
    else:
        plan.set("trusted_proxies", [*dict.fromkeys([*words, *unix])], setting)
    if "forwarded_headers" not in plan.options:
        plan.set("forwarded_headers", HEADERS, _NAME_THEM)


def default_socket_mode(plan: Plan, mode: str, because: str) -> None:
    """Plan the permissions that another server gives its Unix sockets if none are set."""
    if any(parse(place).kind == "unix" and "unix:@" not in place for place in bound(plan)):
        plan.set("socket_mode", mode, because)


def _has_unix(places: list[str]) -> bool:
    return any(parse(place).kind == "unix" for place in places)


def target(plan: Plan, setting: Setting, text: str, factory: bool = False) -> None:
    """Plan the application: `module`, `module:callable` or a file, with `()` for a factory."""
    text = text.strip()
    if factory and not text.endswith(")"):
        text += "()"
    plan.set("target", text, setting)


def paste(plan: Plan, setting: Setting) -> None:
    """Plan an application of PasteDeploy: `FILE`, `FILE#NAME` or `config:FILE`."""
    if not plan.from_environment(setting, "target"):
        plan.set("target", f"paste:{setting.one.removeprefix('config:')}", setting)


def folder(plan: Plan, setting: Setting) -> None:
    """Plan the folder to change to."""
    if not plan.from_environment(setting, "chdir"):
        plan.set("chdir", os.path.normpath(setting.one), setting)
