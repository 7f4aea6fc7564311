"""The text of `poorhttp plugins`: what each plug-in adds, and what cannot be loaded and why."""

from __future__ import annotations

from contextlib import suppress

from poorhttp.config.help import entry as line
from poorhttp.config.registry import CONTRACT, GROUPS, STARTED_BY_ROOT, Entry, Plugin, registry
from poorhttp.errors import ConfigError, printable, visible

USAGE = """\
Usage: poorhttp plugins [NAME ...]

List plug-ins: what they add, from where, and what failed to load. As root, installed plug-ins of
others are loaded only if NAME, or the variable POORHTTP_PLUGINS, names them.
"""


def plugin_list() -> str:
    """Return the list: what the server has, then the plug-ins of others that are installed.

    For root, those of others are listed and not loaded, unless they are named.
    """
    ours = [entry for group in GROUPS for entry in registry.entries[group].values()]
    parts = [f"Part of the server (contract {CONTRACT}):\n"]
    parts += _entries([entry for entry in ours if not entry.plugin])
    for plugin in registry.installed():
        parts += [f"\n{visible(f'{plugin.name} {plugin.version}, from {plugin.folder}')}:\n"]
        parts += _added(plugin)
    return "".join(parts)


def _added(plugin: Plugin) -> list[str]:
    """Return the lines of a plug-in of others."""
    if STARTED_BY_ROOT and not plugin.used:
        return [
            "  not loaded: root uses only plug-ins that are named\n",
            *_entries(plugin.entries, load=False),
        ]
    try:
        registry.add(plugin)
    except ConfigError as error:
        return [f"  not used: {printable(str(error))}\n"]
    return _entries(plugin.entries)


def _entries(entries: list[Entry], *, load: bool = True) -> list[str]:
    """Return a line for each group, and one for each entry that cannot be loaded."""
    parts = []
    for group in GROUPS:
        of_group = [entry for entry in entries if entry.group == group]
        if of_group:
            parts.append(line(group, visible(", ".join(entry.name for entry in of_group))))
        parts += [_failure(entry) for entry in of_group if load]
    return parts


def _failure(entry: Entry) -> str:
    """Return a line that says why an entry cannot be used; empty if it can."""
    with suppress(ConfigError):
        entry.load()
    return f"  {printable(f'{entry} {entry.failure}')}\n" if entry.failure else ""
