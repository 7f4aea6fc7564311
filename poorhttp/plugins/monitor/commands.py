"""The commands `poorhttp ctl` and `poorhttp top`."""

from __future__ import annotations

from poorhttp.config.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Line


def ctl(line: Line) -> int:
    """Show or control a running server."""
    from poorhttp.plugins.monitor.ctl import main as run

    return run(line.words if line.command == "ctl" else [line.command, *line.words])


CTL = Command(
    ctl, "Show a running server, or control it: status, reload, stop, stacks, …", own_words=True
)
TOP = Command(
    ctl,
    "Show a running server live in the terminal. Takes the options of ctl.",
    own_words=True,
)
