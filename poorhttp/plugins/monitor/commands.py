"""The commands `poorhttp ctl` and `poorhttp top`."""

from __future__ import annotations

from poorhttp.config.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Line, Words


def ctl(line: Line) -> int:
    """Show or control a running server."""
    from poorhttp.plugins.monitor.ctl import main as run

    return run(line.words if line.command == "ctl" else [line.command, *line.words])


def ctl_words() -> Words:
    """Return the options and subcommands of `ctl`."""
    from poorhttp.plugins.monitor.ctl.completion import ctl_words as words

    return words()


def top_words() -> Words:
    """Return the options of `top`."""
    from poorhttp.plugins.monitor.ctl.completion import top_words as words

    return words()


CTL = Command(
    ctl,
    "Show a running server, or control it: status, reload, stop, stacks, …",
    own_words=True,
    words=ctl_words,
)
TOP = Command(
    ctl,
    "Show a running server live in the terminal. Takes the options of ctl.",
    own_words=True,
    words=top_words,
)
