"""Formats of access logs: gunicorn's atoms and uWSGI's variables as directives of Apache."""

from __future__ import annotations

import re
from collections.abc import Callable

from poorhttp.config.other_servers.translations import ATOMS
from poorhttp.plugins.setup.migrate.equivalents.plan import Plan, Setting

#: gunicorn's own default.
GUNICORN_DEFAULT = '%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s"'

#: Atoms without a directive, and what is written in their place.
MISSING = {"L": ("%D", "seconds with decimals there; %D has microseconds")}

#: uWSGI's variables, `%(method)`.
VARIABLES = {
    "method": "%m",
    "uri": "%U%q",
    "status": "%s",
    "addr": "%h",
    "host": "%V",
    "user": "%u",
    "size": "%O",
    "rsize": "%B",
    "cl": "%{Content-Length}i",
    "pid": "%P",
    "msecs": "%{ms}T",
    "micros": "%D",
    "secs": "%T",
    "time": "%{sec}t",
    "ltime": "%t",
    "ctime": "%t",
    "ftime": "%t",
    "proto": "%H",
    "referer": "%{Referer}i",
    "uagent": "%{User-Agent}i",
    "epoch": "%{sec}t",
    "tmsecs": "%{msec}t",
}


def from_gunicorn(plan: Plan, setting: Setting) -> None:
    """Plan `access_log_format` from atoms of gunicorn."""
    text = setting.one
    if text == GUNICORN_DEFAULT:
        plan.set("access_log_format", "combined", setting)
        return
    _plan(plan, setting, re.compile(r"%\((?P<name>[^)]{0,200})\)[sd]|%%|%"), _atom)


def from_uwsgi(plan: Plan, setting: Setting) -> None:
    """Plan `access_log_format` from variables of uWSGI."""
    _plan(plan, setting, re.compile(r"%\((?P<name>[^)]{0,200})\)|%"), _variable)


def _atom(name: str) -> tuple[str, str]:
    """Return the directive of an atom, and a difference; an empty directive if there is none."""
    if field := re.fullmatch(r"\{([^}]*)\}([ioe])", name):
        return f"%{{{field[1]}}}{field[2]}", ""
    if name in MISSING:
        return MISSING[name]
    return ATOMS.get(name, ""), ""


def _variable(name: str) -> tuple[str, str]:
    if name.startswith("var."):
        variable = name[4:]
        if variable.startswith("HTTP_"):
            return f"%{{{variable[5:].replace('_', '-').title()}}}i", ""
        return f"%{{{variable}}}e", ""
    return VARIABLES.get(name, ""), ""


def _plan(
    plan: Plan,
    setting: Setting,
    pattern: re.Pattern[str],
    directive: Callable[[str], tuple[str, str]],
) -> None:
    missing: list[str] = []
    notes: list[str] = []

    def replace(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None:
            return "%%"
        text, note = directive(name)
        if not text:
            missing.append(found[0])
            return "-"
        if note:
            notes.append(f"{found[0]}: {note}")
        return text

    text = pattern.sub(replace, setting.one)
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        notes.append(f"{names}: not known here, a hyphen stands for it; see docs/reference/logs.md")
    plan.set("access_log_format", text, setting, "; ".join(notes))
