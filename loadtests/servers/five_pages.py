"""The five pages, as files and as an application."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loadtests.apps.pages import PAGES
from loadtests.servers.application import Application
from loadtests.servers.material import Published

TARGETS = tuple(PAGES)
APPLICATION = Application("loadtests/apps", "pages")


@contextlib.contextmanager
def published() -> Iterator[Published]:
    """The pages in a folder, which vanishes."""
    with tempfile.TemporaryDirectory(prefix="loadtests-site-") as name:
        folder = Path(name)
        # Apache gives up root's rights before it reads anything.
        folder.chmod(0o755)
        for target, page in PAGES.items():
            (folder / target[1:]).write_bytes(page)
        yield Published(name)
