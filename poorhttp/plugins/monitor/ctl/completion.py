"""The words of `poorhttp ctl` and `poorhttp top`, for the completion of shells and man pages."""

from __future__ import annotations

from poorhttp.config.command_line import COMMANDS
from poorhttp.config.settings import OPTIONS as SETTINGS
from poorhttp.plugins.monitor.ctl.arguments import COMMON, OPTIONS, SHORT, SUBCOMMANDS
from poorhttp.plugins.setup.shell.vocabulary import Switch, Word

#: The values of an argument, by its placeholder.
CHOICES = {"LEVEL": getattr(SETTINGS["log_level"].parse, "choices", ())}


def words() -> dict[str, Word]:
    """Return both commands by their names."""
    subcommands = [
        Word(name, known.summary, choices=CHOICES.get(known.arguments[0], ()))
        if known.arguments
        else Word(name, known.summary)
        for name, known in SUBCOMMANDS.items()
    ]
    return {
        "ctl": Word("ctl", COMMANDS["ctl"].summary, _switches([*OPTIONS]), words=subcommands),
        "top": Word("top", COMMANDS["top"].summary, _switches([*COMMON])),
    }


def _switches(names: list[str]) -> list[Switch]:
    shorts = {long: short for short, long in SHORT.items()}
    found = [
        Switch(
            [*([shorts[name]] if name in shorts else []), name],
            OPTIONS[name].summary,
            OPTIONS[name].metavar,
        )
        for name in names
    ]
    return [*found, Switch(("-h", "--help"), "Show help.")]
