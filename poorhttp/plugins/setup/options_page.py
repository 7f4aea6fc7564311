"""Prints the page docs/reference/options.md: `python -m poorhttp.plugins.setup.options_page`."""

from __future__ import annotations

import os
import pkgutil
import re

from poorhttp.config.help import fill, flag_and_value, option_groups
from poorhttp.config.options.option import Option
from poorhttp.config.registry import registry
from poorhttp.errors import printable


def page() -> str:
    """Return the page, Markdown; `options.md` is its beginning."""
    parts = [(pkgutil.get_data("poorhttp.plugins.setup", "options.md") or b"").decode()]
    for group, options in option_groups().items():
        parts.append(f"\n## {group}\n\n| option | default | |\n|---|---|---|\n")
        parts += [
            f"| [`{option.name}`](#{option.name}) | {_default(option)} | {option.summary} |\n"
            for option in options
        ]
        for option in options:
            names = [flag_and_value(option), f"{option.name} =", option.variable]
            if option.ini_name:
                names.insert(2, f"{option.ini_name} =")
            spellings = " · ".join(f"`{name}`" for name in names)
            parts.append(f"\n### {option.name}\n\n{spellings}\n\n")
            parts.append(fill(_linked(f"{option.summary} {option.reason}")))
            others = ", ".join(f"`--{name}`" for name in (*option.aliases, *option.fixed))
            if others:
                parts.append("\n" + fill(f"Other servers' names on the command line: {others}."))
            repeatable = " Repeatable." if option.repeatable else ""
            hosted = " Also in `[host:NAME]`." if option.hosted else ""
            parts.append(f"\nDefault: {_default(option)}.{repeatable}{hosted}\n")
    return printable("".join(parts))


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


if __name__ == "__main__":
    registry.use([("POORHTTP_PLUGINS", os.environ.get("POORHTTP_PLUGINS", ""))])
    print(page(), end="")
