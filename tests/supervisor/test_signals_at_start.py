"""Signals to stop that arrive during the start."""

from __future__ import annotations

import signal
import subprocess
import sys
import weakref
from typing import TYPE_CHECKING, cast

import pytest

from poorhttp.config.settings import Settings
from poorhttp.errors import Stopped
from poorhttp.worker.stop_signals import StopSignals
from tests.testkit.client import HANG

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


# A stop while the standard library is patched: a half-patched `threading` never ends.
PATCHING = """
import signal
import subprocess
import sys

from gevent import monkey
from poorhttp.modes import gevent as mode

patch = monkey.patch_thread


def stop(number, frame):
    raise SystemExit


def patch_thread(*arguments, **options):
    signal.raise_signal(signal.SIGTERM)
    return patch(*arguments, **options)


signal.signal(signal.SIGTERM, stop)
monkey.patch_all.__globals__["patch_thread"] = patch_thread
try:
    mode.prepare()
except SystemExit:
    print("stopped", monkey.is_module_patched("threading"))
"""


def test_a_stop_waits_until_gevent_has_patched() -> None:
    command = (sys.executable, "-c", PATCHING)
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True)
    assert done.stdout == "stopped True\n"
