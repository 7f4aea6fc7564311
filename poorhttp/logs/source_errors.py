"""Adds the file name to compiler errors of Python that lack it, such as those of null bytes.

It does not for null bytes, and for source that is nested too deeply. If the module was imported by
a statement, Python also removes from the traceback what would tell.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import Any

#: Larger files are not read.
MAX_SIZE = 16 << 20

#: How a file begins that some editors have saved in UTF-16.
UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def name_file(error: BaseException) -> None:
    """Add file and line to an error of the compiler that has none. Never raises."""
    if isinstance(error, SyntaxError):
        if error.filename is not None:
            return
    elif type(error) not in (ValueError, MemoryError, RecursionError):
        return
    if type(error) is ValueError and "null bytes" not in str(error):
        return
    with suppress(Exception):
        for path in _candidates(error):
            content = _content(path)
            if content is not None and _fails(content, path, error):
                _add(error, path, content)
                return


def _add(error: BaseException, path: str, content: bytes) -> None:
    place = content.find(b"\0")
    if place < 0:
        text = str(error) or "it is nested too deeply to be compiled"
        if path not in text:
            error.args = (f"{text} ({path})",)
        return
    line = content.count(b"\n", 0, place) + 1
    hint = "; it is in UTF-16, save it in UTF-8" if content.startswith(UTF_16) else ""
    if isinstance(error, SyntaxError):
        error.msg = f"{error.msg}{hint}"
        error.filename, error.lineno = path, line
        error.args = (error.msg, (path, line, None, None))
    elif path not in str(error):
        error.args = (f"{error}{hint} ({path}, line {line})",)


def _content(path: str) -> bytes | None:
    with suppress(OSError):
        if os.path.getsize(path) <= MAX_SIZE:
            with open(path, "rb") as file:
                return file.read()
    return None


def _fails(content: bytes, path: str, error: BaseException) -> bool:
    """Whether compiling a file raises an error of the same type."""
    try:
        compile(content, path, "exec", dont_inherit=True)
    except BaseException as another:
        return type(another) is type(error)
    return False


def _candidates(error: BaseException) -> Iterator[str]:
    """Yield the files that may have been compiled when an error was raised."""
    last = None
    traceback = error.__traceback__
    while traceback is not None:
        last = traceback
        frame = traceback.tb_frame
        if frame.f_code.co_name == "source_to_code":
            path = frame.f_locals.get("path")
            if isinstance(path, str):
                yield path
        traceback = traceback.tb_next
    if last is not None:
        yield from filter(None, map(_first_missing, _imported(last.tb_frame, last.tb_lasti)))


def _imported(frame: FrameType, offset: int) -> Iterator[str]:
    """Yield the names that an instruction imports: a module, and what may be modules in it."""
    import dis
    from importlib.util import resolve_name

    before: list[Any] = []
    for each in dis.get_instructions(frame.f_code):
        if each.offset == offset and each.opname == "IMPORT_NAME":
            level, names = before[-2:]
            module = resolve_name("." * level + each.argval, frame.f_globals["__package__"])
            yield from (module, *(f"{module}.{name}" for name in names or ()))
        elif each.opname != "EXTENDED_ARG":
            before.append(each.argval)


def _first_missing(name: str) -> str:
    """Return the file of the first package or module of a dotted name that is not loaded."""
    from importlib.machinery import PathFinder

    parts = name.split(".")
    folders = None
    for number in range(1, len(parts) + 1):
        whole = ".".join(parts[:number])
        if whole in sys.modules:
            folders = getattr(sys.modules[whole], "__path__", None)
            continue
        spec = PathFinder.find_spec(whole, folders)
        return spec.origin or "" if spec is not None else ""
    return ""
