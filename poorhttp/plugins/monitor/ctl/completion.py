"""The words of `poorhttp ctl` and `poorhttp top`, for the completion of shells and man pages."""

from __future__ import annotations

from collections.abc import Iterable

from poorhttp.config.settings import OPTIONS as SETTINGS
from poorhttp.plugins.monitor.ctl.arguments import COMMON, OPTIONS, SHORT, SUBCOMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Words

#: The values of an argument, by its placeholder.
CHOICES = {"LEVEL": getattr(SETTINGS["log_level"].parse, "choices", ())}


def ctl_words() -> Words:
    """Return the options and subcommands of `ctl`."""
    subcommands = {
        name: (known.summary, CHOICES.get(known.arguments[0], ()) if known.arguments else ())
        for name, known in SUBCOMMANDS.items()
    }
    return {"options": _options(OPTIONS), "subcommands": subcommands}


def top_words() -> Words:
    """Return the options of `top`."""
    return {"options": _options(COMMON)}


def _options(names: Iterable[str]) -> list[tuple[str, str]]:
    shorts = {long: f"{short}, " for short, long in SHORT.items()}
    found = [
        (shorts.get(name, "") + OPTIONS[name].synopsis, OPTIONS[name].summary) for name in names
    ]
    return [*found, ("-h, --help", "Show help.")]
