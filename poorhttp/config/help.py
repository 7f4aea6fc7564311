"""The text of `--help`: the options of a command, by their groups."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from poorhttp.config.options.option import Option
from poorhttp.config.settings import OPTIONS

WIDTH = 100
#: Column at which the sentences of `--help` begin.
COLUMN = 32

#: The options that `--help` shows, beside those of plug-ins that say so; `--help-all` shows all.
COMMON = (
    *("bind", "mode", "workers", "threads", "max_requests", "env", "user"),
    *("request_timeout", "graceful_timeout", "max_body"),
    *("trusted_proxies", "access_log", "error_log", "log_level", "mount", "static"),
)


def option_help(common: Sequence[str] = (), *, everything: bool = True) -> str:
    """Return the lines of `--help` for the options of a command, by their groups.

    Args:
        common: the most important options; by default those of `serve`.
        everything: show all.
    """
    common = common or [name for name, one in OPTIONS.items() if one.common or name in COMMON]
    lines = []
    for group, options in option_groups().items():
        shown = [option for option in options if everything or option.name in common]
        lines += [f"\n{group}:\n"] * bool(shown)
        for option in shown:
            default = ", ".join(option.default_texts)
            others = ", ".join(f"--{name}" for name in (*option.aliases, *option.fixed))
            notes = ["repeatable"] * option.repeatable + [f"default: {default}"] * bool(default)
            notes += [f"also {others}"] * bool(others and everything)
            note = f" ({'; '.join(notes)})" if notes else ""
            lines.append(entry(flag_and_value(option), option.summary.replace("`", "") + note))
    return "".join(lines)


def entry(left: str, right: str) -> str:
    """Return one entry of `--help`: the option in the left column, the folded text beside it."""
    if len(left) + 2 > COLUMN - 1:
        # Too long for its column: the text begins on the next line.
        return f"  {left}\n" + fill(right, " " * COLUMN, " " * COLUMN)
    return fill(right, f"  {left}".ljust(COLUMN - 1) + " ", " " * COLUMN)


def option_groups() -> dict[str, list[Option[object]]]:
    """Return all options by the headings under which help lists them."""
    groups: dict[str, list[Option[object]]] = {}
    for option in OPTIONS.values():
        groups.setdefault(option.group, []).append(option)
    return groups


def flag_and_value(option: Option[object]) -> str:
    """Return how an option is written on the command line: `-w, --workers N`."""
    names = f"-{option.short}, {option.flag}" if option.short else option.flag
    if option.words:
        return f"{names}[={option.metavar}]"
    return f"{names} {option.metavar}".strip()


def fill(text: str, first: str = "", indent: str = "") -> str:
    """Fold a text, with `first` before its first line and `indent` before all others."""
    fold = textwrap.TextWrapper(
        WIDTH, first, indent, break_on_hyphens=False, break_long_words=False
    )
    return fold.fill(text.strip()) + "\n"
