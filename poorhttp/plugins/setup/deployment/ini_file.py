"""Writes poorhttp.ini, and sets options in other ini files."""

from __future__ import annotations

import re
import textwrap

from poorhttp.config import ini
from poorhttp.config.resources import usable_cpus
from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.deployment.plan import Plan
from poorhttp.plugins.setup.deployment.templates import Template

#: Columns of comments.
WIDTH = 100


def text(plan: Plan) -> str:
    """Return the configuration for a server on this machine."""
    lines = [
        f"# {plan.name}, written by poorhttp init. From this folder:",
        "#",
        f"#     poorhttp serve -c {plan.ini}",
        "#",
        "# All options: poorhttp serve --help-all; explained: poorhttp man 5 | man -l -",
        "",
        "[http]",
        *comment(plan.found),
    ]
    for name, values in plan.served.items():
        if name == "mode":
            lines += ["", *comment(*plan.mode.reasons)]
        lines.append(setting(name, values))
    if plan.mode.values["mode"] == "threading" and "workers" not in plan.mode.values:
        lines += [
            *comment("Each worker is a process that uses one core; one for each core:"),
            f"# workers = {max(2, usable_cpus())}",
        ]
    if plan.project.importing({"django"}):
        lines += [
            "",
            *comment("Files of Django: manage.py collectstatic, then the folder of STATIC_ROOT:"),
            "# static = /static=FOLDER",
        ]
    if plan.socket:
        lines += [
            "",
            *comment(
                "Where the web server in front connects; systemd opens it, if the .socket unit of "
                f"{plan.deploy}/ is installed, and decides about its permissions."
            ),
            setting("bind", [plan.bind]),
            setting("socket_mode", ["0660"]),
        ]
    else:
        lines += [
            "",
            *comment("This machine only; 0.0.0.0 would be all networks."),
            setting("bind", [plan.bind]),
        ]
    if plan.proxied:
        lines += [
            "",
            *comment(_trust(plan)),
            setting("trusted_proxies", proxy_options(plan)["trusted_proxies"]),
            *comment("/-/live and /-/ready, for the health checks of the web server."),
            setting("health", proxy_options(plan)["health"]),
        ]
    lines += [
        "",
        *comment(
            "Standard output: the terminal, systemd's journal (journalctl), the container's log."
        ),
        setting("access_log", ["-"]),
    ]
    return "\n".join(lines) + "\n"


def _trust(plan: Plan) -> str:
    """Return the comment on `trusted_proxies`."""
    if plan.socket:
        return (
            "Each program that may open the socket is trusted to name the client's address and "
            "scheme: the web server in front."
        )
    return (
        "The web server in front is trusted to name the client's address and scheme. Other users "
        "of this machine could do so too; a Unix socket (poorhttp init --bind unix:PATH) keeps "
        "them out."
    )


def proxy_options(plan: Plan) -> dict[str, list[str]]:
    """Return the options that a web server in front needs."""
    return {"trusted_proxies": ["unix" if plan.socket else plan.local_host], "health": ["/-"]}


def set_options(template: Template, options: dict[str, list[str]]) -> None:
    """Set options in the section `[http]` of a template; new ones stand behind the target.

    `threads` goes where the mode has none.
    """
    if options.get("mode", [""]) != ["threading"]:
        template.text = re.sub(r"^threads = .*\n", "", template.text, flags=re.MULTILINE)
    for name, values in reversed(options.items()):
        line = setting(name, values)
        pattern = re.compile(rf"^{name} = .*$", re.MULTILINE)
        if pattern.search(template.text):
            template.text = pattern.sub(line.replace("\\", r"\\"), template.text)
        else:
            place = r"^mode = .*$" if name in ("workers", "threads") else r"^target = .*$"
            found = re.search(place, template.text, re.MULTILINE)
            if found is None:
                raise LookupError(f"{template.name} has no target and no mode")
            end = found.end()
            template.text = f"{template.text[:end]}\n{line}{template.text[end:]}"


def setting(name: str, values: list[str]) -> str:
    """Return the lines of an option.

    Raises:
        ConfigError: a value would be read as another one, as nothing or as several.
    """
    lines = f"{name} = {values[0]}" if len(values) == 1 else "\n    ".join([f"{name} =", *values])
    entries = ini.parse(f"[http]\n{lines}\n", name)[0].entries
    if [[value for _, value in entry.values] for entry in entries] != [values]:
        raise ConfigError(
            f"{name}: {', '.join(map(ascii, values))} cannot be written into an ini file, which "
            "takes neither spaces at the ends nor # or ; at the begin of a line; rename it"
        )
    return lines


def comment(*sentences: str) -> list[str]:
    """Return the lines of a comment."""
    return [f"# {line}" for each in sentences for line in textwrap.wrap(each, WIDTH - 2)]
