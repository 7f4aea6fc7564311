"""Searches for the application where `poorhttp dev` is given none, or a folder or file only.

The search (`search.py`) reads source without running it, in a process of its own: the memory that
parsing takes would stay in every process of the server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from poorhttp.errors import ConfigError, UsageError, visible
from poorhttp.plugins.discovery import child_answer, options
from poorhttp.plugins.discovery.found_target import FoundTarget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.config.settings import Settings
    from poorhttp.plugins.discovery.django.collected import StaticFiles

#: Seconds for a search.
TIMEOUT = 60.0


class Discovery:
    """Searches once: the result is kept when the configuration is read again.

    Attributes:
        changes: differs after a file was saved that may name another application.
        found_flask: an application of Flask was found.
    """

    changes = ""
    found_flask = False

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str, bool, bool, str], FoundTarget | None] = {}
        self._sentences: set[str] = set()
        self._static: dict[str, StaticFiles] = {}

    def complete(self, services: Sequence[Settings]) -> None:
        """Complete settings, and print the results on standard error.

        Raises:
            UsageError: nothing was found, or more than one application.
        """
        for settings in services:
            django = settings.of(options.Discovery).django
            # A configuration of several services must name the target of each.
            if settings.service:
                if django:
                    raise ConfigError(
                        f"{settings.origin('django')}: only for a server of one service; name "
                        "the target of each"
                    )
                continue
            if settings.serves and not (settings.target or django):
                continue
            chdir, target = settings.chdir, settings.target
            debug = settings.is_enabled("debug")
            question = chdir, target, django, debug, self.changes
            is_complete = ":" in target and not os.path.exists(os.path.join(chdir, target))
            if is_complete and not django:
                # It names a callable, not only a folder, a file or a module.
                continue
            if question not in self._answers:
                self._answers[question] = found = _search(*question[:4])
                if found is not None and found.sentence not in self._sentences:
                    self._sentences.add(found.sentence)
                    # The project's names are in it.
                    print(f"poorhttp: {visible(found.sentence)}", file=sys.stderr)
            found = self._answers[question]
            if found is not None:
                found.apply(settings, os.environ)
                self.found_flask |= found.is_flask
            if django and not debug:
                self._add_static_files(settings)

    def _add_static_files(self, settings: Settings) -> None:
        """Serve `STATIC_ROOT` of a Django project."""
        if settings.chdir not in self._static:
            from poorhttp.plugins.discovery.django import collected

            self._static[settings.chdir] = files = collected.find(settings)
            for line in files.lines():
                print(f"poorhttp: {visible(line)}", file=sys.stderr)
        self._static[settings.chdir].apply(settings)


def _search(chdir: str, target: str, django: bool, debug: bool) -> FoundTarget | None:
    """Search in a process of its own.

    Raises:
        UsageError: as the search.
    """

    def run() -> Any:
        from poorhttp.plugins.discovery import search

        try:
            found = search.search(chdir, target, django=django, debug=debug)
            return ("found", vars(found)) if found else ("named",)
        except UsageError as failure:
            return ("failed", str(failure))
        except OSError as error:
            return ("failed", f"{error.filename}: {error.strerror}; name what is to be served")

    try:
        words: Any = child_answer.ask(lambda: _report_exceptions(run), TIMEOUT)
    except child_answer.NoAnswer:
        raise UsageError(
            "found nothing to serve; name it: poorhttp dev package.module:application"
        ) from None
    if words[0] == "failed":
        raise UsageError(words[1])
    return FoundTarget(**words[1]) if words[0] == "found" else None


def _report_exceptions(run: Callable[[], object]) -> object:
    """Print the traceback of an unexpected exception in the searching process."""
    try:
        return run()
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        raise
