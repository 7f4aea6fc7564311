"""Finds the line of a template at which an exception was raised, for Django and Mako.

Their tracebacks have only lines of the library or of generated code. Those of Jinja2 and Bottle
have the lines of the template, and Chameleon's messages name them.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from poorhttp.plugins.dev.escape import for_html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Lines that are shown before and after the one that has failed.
CONTEXT = 5

#: Characters of a line that are shown.
MAX_LINE = 300


class Excerpt:
    """Lines of a template.

    Attributes:
        place: name and number of the line that has failed, `basket.html:3`.
        lines: number and text of each line.
        failed: number of the line that has failed.
    """

    def __init__(self, name: str, lines: list[tuple[int, str]], failed: int) -> None:
        self.place = f"{name}:{failed}"
        self.lines = [
            (number, text.rstrip("\n")[:MAX_LINE])
            for number, text in lines
            if abs(number - failed) <= CONTEXT
        ]
        self.failed = failed

    @property
    def text(self) -> str:
        """The place and the lines, as text."""
        lines = "".join(
            f"  {'>' if number == self.failed else ' '} {number:>4} | {text}\n"
            for number, text in self.lines
        )
        return f"In the template {self.place}\n{lines}"

    @property
    def html(self) -> str:
        """The place and the lines, as an element of an error page."""
        lines = "".join(
            f"{'&gt;' if number == self.failed else ' '} {number:>4} | {for_html(text)}\n"
            for number, text in self.lines
        )
        name = for_html(self.place)
        return f'<h2>Template</h2><div class="frame"><h4>{name}</h4><pre>{lines}</pre></div>'


def excerpt(error: BaseException) -> Excerpt | None:
    """Return the lines of the template at which an exception was raised; None: there is none."""
    # The exception may fake its attributes, and libraries change.
    with suppress(Exception):
        details = getattr(error, "template_debug", None)
        if isinstance(details, dict):
            return _of_django(details)
        if "mako.exceptions" in sys.modules:
            return _of_mako(error)
    return None


def _of_django(details: dict[str, Any]) -> Excerpt:
    """Return what Django has noted in `template_debug`."""
    from html import unescape

    lines = [
        # Some versions of Django escape the lines.
        (number, unescape(str(line)) if hasattr(line, "__html__") else line)
        for number, line in details["source_lines"]
    ]
    return Excerpt(str(details["name"]), lines, details["line"])


def _of_mako(error: BaseException) -> Excerpt | None:
    """Return the innermost line of a template in the traceback of an exception."""
    from mako.template import _get_module_info

    found = None
    traceback = error.__traceback__
    while traceback is not None:
        with suppress(KeyError):
            info = _get_module_info(traceback.tb_frame.f_code.co_filename)
            numbers = info.get_module_source_metadata(info.code, full_line_map=True)[
                "full_line_map"
            ]
            failed = numbers[traceback.tb_lineno - 1]
            name = info.template_filename or info.template_uri or "template"
            found = Excerpt(name, list(enumerate(info.source.splitlines(), 1)), failed)
        traceback = traceback.tb_next
    return found
