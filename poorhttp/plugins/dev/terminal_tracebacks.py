"""Shows tracebacks in the terminal, with the project's own lines highlighted.

It uses the package rich, which is imported with the first traceback. Without rich or a terminal,
tracebacks are shown as Python writes them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from poorhttp.logs.frames import with_sources
from poorhttp.plugins.dev import template_errors
from poorhttp.plugins.dev.escape import for_terminal
from poorhttp.plugins.dev.frames import format_traceback, short_path, strip_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from traceback import FrameSummary, TracebackException
    from typing import Any

    from rich.console import Console
    from rich.text import Text

    from poorhttp.plugins.dev.template_errors import Excerpt

#: Lines of source shown before and after that of a frame.
CONTEXT = 2

#: Characters of an exception's message, and of a line of source, that are shown.
MAX_MESSAGE = 4000
MAX_LINE = 300

#: Equal frames in a row, and frames of libraries in a row, that are shown one by one.
MAX_RECURSION_SHOWN = 3
MAX_LIBRARY_FRAMES = 4

#: Exceptions of a group that are shown.
MOST_MEMBERS = 10

#: Control characters of a traceback.
LAYOUT = "\n\t"

_CAUSE_LINE = "The above exception was the direct cause of the following one:"
_CONTEXT_LINE = "While the above exception was handled, another one occurred:"


def show(message: str, error: BaseException, owns: Callable[[str], bool]) -> None:
    """Show an exception on standard error.

    Args:
        message: the line above the traceback.
        error: the exception; the server's frames are removed.
        owns: tells whether a file is the user's own.
    """
    stream = sys.stderr
    template = template_errors.excerpt(error)
    if not (_wants_colour(stream) and _has_rich()):
        text = f"{format_traceback(error)}{template.text if template else ''}"
        stream.write(f"{for_terminal(message)}\n{for_terminal(text, keep=LAYOUT)}")
        stream.flush()
        return
    from io import StringIO

    from rich.console import Console

    # Written at once, since lines of requests go to the same terminal.
    drawn = StringIO()
    console = Console(file=drawn, force_terminal=True, soft_wrap=True, highlight=False)
    renderer = _Renderer(console, owns)
    renderer.show(message, strip_frames(error))
    if template is not None:
        renderer.show_template(template)
    stream.write(drawn.getvalue())
    stream.flush()


class _Renderer:
    """Draws a traceback."""

    def __init__(self, console: Console, owns: Callable[[str], bool]) -> None:
        self.console = console
        self.owns = owns
        self._here = os.getcwd() + os.sep

    def show(self, message: str, error: BaseException) -> None:
        """Draw an exception and those that have caused it, below a message."""
        from traceback import TracebackException

        self._line(for_terminal(message), "bold red")
        self._exception(with_sources(lambda: TracebackException.from_exception(error)), "")

    def show_template(self, template: Excerpt) -> None:
        """Draw the lines of a template."""
        first, *lines = template.text.splitlines()
        self._line(for_terminal(first), "bold cyan")
        for line in lines:
            self._line(for_terminal(line.expandtabs(4)), "red" if line[2:3] == ">" else "dim")

    def _exception(self, error: TracebackException, indent: str) -> None:
        # Without recursion: the chain of causes may be long.
        chain = [(error, "")]
        while True:
            latest = chain[-1][0]
            if latest.__cause__ is not None:
                chain.append((latest.__cause__, _CAUSE_LINE))
            elif latest.__context__ is not None and not latest.__suppress_context__:
                chain.append((latest.__context__, _CONTEXT_LINE))
            else:
                break
        for each, link in reversed(chain):
            self._frames(each, indent)
            self._message(each, indent)
            if link:
                self._line(f"{indent}{link}", "italic")

    def _frames(self, error: TracebackException, indent: str) -> None:
        library: list[FrameSummary] = []
        equal, last = 0, ("", 0)
        for frame in error.stack:
            place = (frame.filename, frame.lineno or 0)
            equal = equal + 1 if place == last else 0
            last = place
            if frame.filename.startswith("<") or not self.owns(frame.filename):
                library.append(frame)
                continue
            self._library_frames(library, indent)
            if equal == MAX_RECURSION_SHOWN:
                self._line(f"{indent}  ... and so on", "dim")
            elif equal < MAX_RECURSION_SHOWN:
                self._own_frame(frame, indent)
        self._library_frames(library, indent)

    def _library_frames(self, frames: list[FrameSummary], indent: str) -> None:
        """Draw frames of libraries; of many, the first and the last ones."""
        half = MAX_LIBRARY_FRAMES // 2
        for number, frame in enumerate(frames):
            if len(frames) <= MAX_LIBRARY_FRAMES or not half <= number < len(frames) - half:
                self._line(f"{indent}  {self._place(frame)}", "dim")
            elif number == half:
                self._line(f"{indent}  ... {len(frames) - 2 * half} more of libraries", "dim")
        frames.clear()

    def _own_frame(self, frame: FrameSummary, indent: str) -> None:
        """Draw a frame of the project, with its source."""
        self._line(f"{indent}> {self._place(frame)}", "bold cyan")
        number = frame.lineno or 0
        for line, source in self._source(frame.filename, number):
            current = line == number
            mark = ">" if current else " "
            head = f"{indent}  {mark} {line:>4} | "
            self._line(head, "red" if current else "dim", source, current=current)

    def _place(self, frame: FrameSummary) -> str:
        # In the format that terminals and editors make links of.
        file = short_path(frame.filename.removeprefix(self._here))
        return for_terminal(f"{file}:{frame.lineno} in {frame.name}")

    def _source(self, file: str, number: int) -> Iterator[tuple[int, str]]:
        import linecache

        for line in range(max(1, number - CONTEXT), number + CONTEXT + 1):
            source = linecache.getline(file, line)
            if source:
                yield line, for_terminal(source.expandtabs(4).rstrip()[:MAX_LINE])

    def _message(self, error: TracebackException, indent: str) -> None:
        lines = "".join(error.format_exception_only()).rstrip("\n")
        whole = for_terminal(lines, keep="\n")
        if len(whole) > MAX_MESSAGE:
            whole = f"{whole[:MAX_MESSAGE]}... ({len(whole) - MAX_MESSAGE} characters more)"
        first, *rest = whole.split("\n")
        style = "bold red"
        if rest and isinstance(error.exc_type, type) and issubclass(error.exc_type, SyntaxError):
            # The last line is the message, those above show the place.
            first, rest = whole, []
        self._line("\n".join(f"{indent}{line}" for line in first.split("\n")), style)
        for line in rest:
            self._line(f"{indent}{line}", "red")
        # Python 3.10 has no groups.
        members: list[TracebackException] = getattr(error, "exceptions", None) or []
        for number, member in enumerate(members[:MOST_MEMBERS], 1):
            self._line(f"{indent}  {number} of {len(members)}:", "italic")
            self._exception(member, f"{indent}    ")

    def _line(self, text: str, style: str, source: str = "", *, current: bool = False) -> None:
        from rich.text import Text

        line = Text(text, style=style)
        if source:
            line = Text.assemble(line, self._highlighted(source, current=current))
        self.console.print(line)

    def _highlighted(self, source: str, *, current: bool) -> Text:
        from rich.syntax import Syntax

        syntax: Any = Syntax("", "python", theme="ansi_dark")
        text: Text = syntax.highlight(source)
        text.rstrip()
        text.stylize("bold" if current else "dim")
        return text


def _wants_colour(stream: Any) -> bool:
    """Whether to draw in colours: to a terminal, or if FORCE_COLOR is set (force-color.org)."""
    if os.environ.get("FORCE_COLOR"):
        return True
    try:
        return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):
        return False


def _has_rich() -> bool:
    from importlib.util import find_spec

    return find_spec("rich") is not None
