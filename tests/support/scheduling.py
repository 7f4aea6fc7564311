"""Pytest plugin: the group scheduler of pytest-xdist, corrected for workers that crash.

pytest-xdist 3.8 runs the test that has crashed its worker again, and waits for ever for a new
worker that was given a single test.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController


class GroupScheduling(LoadGroupScheduling):
    """Sends the tests of a group to one worker, those behind a crash to another."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Give away the tests of a worker that has ended; the one that has crashed it."""
        units = self.assigned_work.pop(node)
        crashed: str
        left = [(unit, test) for unit in units.values() for test, done in unit.items() if not done]
        if not left:
            return None
        unit, crashed = left[0]
        unit[crashed] = True
        self.workqueue.update({name: one for name, one in units.items() if not all(one.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def schedule(self) -> None:
        """Distribute the tests, to a worker that replaces another too."""
        replaced = self.collection is not None
        super().schedule()
        if replaced:
            # A worker begins its last test when it has been given more, or told to end.
            super().schedule()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling | None:
    """The scheduler of `--dist loadgroup`."""
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadgroup" else None
