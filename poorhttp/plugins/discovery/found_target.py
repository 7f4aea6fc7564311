"""The application that the search of a folder has found: target, folder, paths, environment."""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence

from poorhttp.config.settings import Settings

#: Origin of options that are set here, for messages.
ORIGIN = "the search for the application"


class FoundTarget:
    """The target that was found, with further settings.

    Attributes:
        target: to be served; may be empty if there is a mount.
        mount: `/PREFIX=TARGET` each.
        folder: value of `chdir`; may be empty.
        pythonpath: folders of its modules.
        environment: variables to be set unless they are.
        sentence: message that describes it.
        is_flask: it is an application of Flask, for which `.env` and `.flaskenv` are read.
    """

    def __init__(
        self,
        target: str,
        sentence: str,
        *,
        mount: Sequence[str] = (),
        folder: str = "",
        pythonpath: Sequence[str] = (),
        environment: dict[str, str] | None = None,
        is_flask: bool = False,
    ) -> None:
        self.target = target
        self.sentence = sentence
        self.mount = list(mount)
        self.folder = folder
        self.pythonpath = list(pythonpath)
        self.environment = environment or {}
        self.is_flask = is_flask

    def apply(self, settings: Settings, environ: MutableMapping[str, str]) -> None:
        """Set options and environment variables."""
        place = settings.origin("target") if settings.target else ORIGIN
        if self.target:
            settings.set("target", [(place, self.target)])
        if self.mount:
            settings.set("mount", [(ORIGIN, text) for text in self.mount])
        if self.folder:
            chdir = os.path.join(settings.chdir, self.folder)
            settings.set("chdir", [(place, chdir)])
        if self.pythonpath:
            given = [
                (settings.origin("pythonpath", number), text)
                for number, text in enumerate(settings.written("pythonpath"))
            ]
            found = [(ORIGIN, folder) for folder in self.pythonpath]
            settings.set("pythonpath", [*given, *found])
        for name, value in self.environment.items():
            environ.setdefault(name, value)
