"""How a process ended, in words."""

from __future__ import annotations


def signal_name(number: int) -> str:
    """Return a signal's name, such as SIGKILL."""
    try:
        from signal import Signals

        return Signals(number).name
    except (ValueError, OSError):
        # Most of the real-time signals have none, or there is no descriptor left for the module.
        return f"signal {number}"


def end_of(code: int) -> str:
    """Say how a process ended, by its exit code."""
    return f"was killed by {signal_name(-code)}" if code < 0 else f"ended with {code}"
