"""Restores the terminal that a process has left in the modes of a prompt, without echo.

A debugger that is killed at its prompt leaves the terminal in these modes: `pdb` uses readline,
other debuggers have libraries of their own.
"""

from __future__ import annotations

import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Ends what a prompt may have switched on: bracketed paste, a hidden cursor, colours.
RESET = b"\x1b[?2004l\x1b[?25h\x1b[m"

#: The modes of standard input at the start (termios(3)); None if it is no terminal.
_saved: list[Any] | None = None


def save() -> None:
    """Note the modes of the terminal, if standard input is one."""
    global _saved  # noqa: PLW0603
    _saved = None
    if os.isatty(0):
        import termios  # not in production, where standard input is no terminal

        with suppress(termios.error):
            _saved = termios.tcgetattr(0)


def restore() -> None:
    """Restore the modes that were noted, if they have changed. Never raises.

    Nothing happens in the background: then the terminal belongs to the shell, or to a program that
    it has started.
    """
    if _saved is None:
        return
    import termios

    with suppress(OSError, termios.error):
        if os.tcgetpgrp(0) != os.getpgrp() or termios.tcgetattr(0) == _saved:
            return
        termios.tcsetattr(0, termios.TCSANOW, _saved)
        if os.isatty(2) and os.environ.get("TERM", "dumb") != "dumb":
            os.write(2, RESET)
