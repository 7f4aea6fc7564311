"""The text of `poorhttp plugins`: what each plug-in adds, and what cannot be loaded and why."""

from __future__ import annotations

import os

from poorhttp.config.help import entry as line
from poorhttp.config.registry import GROUPS, Entry, registry
from poorhttp.errors import ConfigError, printable


def plugin_list() -> str:
    """Return the list: those of the server, then those of others that are installed.

    As root, those of others are listed and not loaded, unless the option `plugins` names them.
    """
    parts = ["Part of the server:\n"]
    for group in GROUPS:
        names = [each.name for each in registry.entries[group].values() if not each.plugin]
        parts.append(line(group, ", ".join(names)) if names else "")
        parts += [_failure(each) for each in registry.entries[group].values() if not each.plugin]
    for distribution in registry.installed():
        parts.append(f"\n{distribution.name} {distribution.version}:\n")
        if os.geteuid() == 0 and not registry.is_added(distribution):
            parts.append("  not loaded: root uses only what the option plugins names\n")
            continue
        try:
            registry.add(distribution)
        except ConfigError as error:
            parts.append(f"  {printable(str(error))}\n")
        for group in GROUPS:
            of_group = [
                each
                for each in registry.entries[group].values()
                if each.plugin.partition(" ")[0] == distribution.name
            ]
            for each in of_group:
                parts.append(line(group, f"{each.name}: {each.place}"))
                parts.append(_failure(each))
    return "".join(parts)


def _failure(entry: Entry) -> str:
    """Return a line that says why an entry cannot be used; empty if it can."""
    try:
        entry.load()
    except ConfigError as error:
        return f"  {printable(str(error))}\n"
    return ""
