"""Signals to stop that arrive during the start."""

from __future__ import annotations

import signal
import sys
import weakref
from typing import TYPE_CHECKING, cast

import pytest

from poorhttp.config.settings import Settings
from poorhttp.errors import Stopped
from poorhttp.worker.stop_signals import StopSignals

if TYPE_CHECKING:
    from poorhttp._core import Reactor


class Thing:
    """Something that can be referred to weakly."""


def test_a_stop_that_is_lost_in_a_callback_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda one: lost.append(one.exc_type))
    with StopSignals(Settings(), supervised=True) as signals:
        thing = Thing()
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
        # Python goes on behind a callback that raises.
        del thing
        assert reference() is None
        with pytest.raises(Stopped):
            signals.attach(cast("Reactor", None))
        assert lost == []
        # Faults of others are still reported.
        thing = Thing()
        reference = weakref.ref(thing, lambda _: 1 // 0)
        del thing
    assert lost == [ZeroDivisionError]
