"""Being told to stop before there is anything to stop."""

from __future__ import annotations

import signal
import weakref
from typing import TYPE_CHECKING, cast

import pytest

from poorhttp.errors import Stopped
from poorhttp.stopping import StopSignals

if TYPE_CHECKING:
    from poorhttp._core import Reactor


class Thing:
    """Something that can be referred to weakly."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_stop_that_is_lost_in_a_callback_is_remembered() -> None:
    with StopSignals(supervised=True) as signals:
        thing = Thing()
        reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
        # Python prints what is raised here, and goes on.
        del thing
        assert reference() is None
        with pytest.raises(Stopped):
            signals.watch(cast("Reactor", None))
