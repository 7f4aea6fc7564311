"""Prints the options: the text of `--help`, and the page docs/reference/options.md."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Sequence

from poorhttp.config.options.option import Option
from poorhttp.config.registry import registry
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import printable

WIDTH = 100
#: Column at which the sentences of `--help` begin.
COLUMN = 32

#: The options that `--help` shows, beside those of plug-ins that say so; `--help-all` shows all.
COMMON = (
    *("bind", "mode", "workers", "threads", "max_requests", "env", "user"),
    *("request_timeout", "graceful_timeout", "max_body"),
    *("trusted_proxies", "access_log", "error_log", "log_level", "mount", "static"),
)


def page() -> str:
    """Return the reference page, Markdown; `help.md` is its beginning."""
    import pkgutil  # needed only here

    parts = [(pkgutil.get_data("poorhttp.config", "help.md") or b"").decode()]
    for group, options in _groups().items():
        parts.append(f"\n## {group}\n\n| option | default | |\n|---|---|---|\n")
        parts += [
            f"| [`{option.name}`](#{option.name}) | {_default(option)} | {option.summary} |\n"
            for option in options
        ]
        for option in options:
            names = [_flag(option), f"{option.name} =", option.variable]
            if option.ini_name:
                names.insert(2, f"{option.ini_name} =")
            spellings = " · ".join(f"`{name}`" for name in names)
            parts.append(f"\n### {option.name}\n\n{spellings}\n\n")
            parts.append(_fill(_linked(f"{option.summary} {option.reason}")))
            others = ", ".join(f"`--{name}`" for name in (*option.aliases, *option.fixed))
            if others:
                parts.append("\n" + _fill(f"Other servers' names on the command line: {others}."))
            repeatable = " Repeatable." if option.repeatable else ""
            hosted = " Also in `[host:NAME]`." if option.hosted else ""
            parts.append(f"\nDefault: {_default(option)}.{repeatable}{hosted}\n")
    return printable("".join(parts))


def common_options() -> list[str]:
    """Return the names of the options that `--help` shows for `serve`."""
    return [name for name, option in OPTIONS.items() if option.common or name in COMMON]


def option_help(common: Sequence[str] = (), *, everything: bool = True) -> str:
    """Return the lines of `--help` for the options of a command, by their groups.

    Args:
        common: the most important options; by default those of `serve`.
        everything: show all.
    """
    common = common or common_options()
    lines = []
    for group, options in _groups().items():
        shown = [option for option in options if everything or option.name in common]
        lines += [f"\n{group}:\n"] * bool(shown)
        for option in shown:
            default = ", ".join(option.default_texts)
            others = ", ".join(f"--{name}" for name in (*option.aliases, *option.fixed))
            notes = ["repeatable"] * option.repeatable + [f"default: {default}"] * bool(default)
            notes += [f"also {others}"] * bool(others and everything)
            note = f" ({'; '.join(notes)})" if notes else ""
            lines.append(entry(_flag(option), option.summary.replace("`", "") + note))
    return "".join(lines)


def entry(left: str, right: str) -> str:
    """Return one entry of `--help`: the option in the left column, the folded text beside it."""
    if len(left) + 2 > COLUMN - 1:
        # Too long for its column: the text begins on the next line.
        return f"  {left}\n" + _fill(right, " " * COLUMN, " " * COLUMN)
    return _fill(right, f"  {left}".ljust(COLUMN - 1) + " ", " " * COLUMN)


def _groups() -> dict[str, list[Option[object]]]:
    groups: dict[str, list[Option[object]]] = {}
    for option in OPTIONS.values():
        groups.setdefault(option.group, []).append(option)
    return groups


def _flag(option: Option[object]) -> str:
    names = f"-{option.short}, {option.flag}" if option.short else option.flag
    if option.words:
        return f"{names}[={option.metavar}]"
    return f"{names} {option.metavar}".strip()


def _linked(text: str) -> str:
    """Return a text with links in place of the names of pages, as seen from docs/reference."""

    def link(found: re.Match[str]) -> str:
        opening, part, name = found.groups()
        if part == "reference":
            return f"{opening}[{name.capitalize()}]({name}.md)"
        word = part.removesuffix("s")
        return f"{opening}[{word if opening else f'the {word}'}](../{part}/{name}.md)"

    return re.sub(r"(\(?)docs/(\w+)/([\w-]+)\.md", link, text)


def _default(option: Option[object]) -> str:
    return ", ".join(f"`{text}`" for text in option.default_texts if text) or "none"


def _fill(text: str, first: str = "", indent: str = "") -> str:
    """Fold a text, with `first` before its first line and `indent` before all others."""
    fold = textwrap.TextWrapper(
        WIDTH, first, indent, break_on_hyphens=False, break_long_words=False
    )
    return fold.fill(text.strip()) + "\n"


if __name__ == "__main__":
    registry.use([("POORHTTP_PLUGINS", os.environ.get("POORHTTP_PLUGINS", ""))])
    print(page(), end="")
