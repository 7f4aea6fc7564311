"""Leaves the frames of the server and of the import system out of tracebacks of applications."""

from __future__ import annotations

import os

from poorhttp.errors import Failure

#: Folder of the server's modules.
SERVER_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# Files of the import system, whose frames Python itself leaves out of an ImportError.
_IMPORTING = ("<frozen importlib", os.path.join("importlib", "__init__.py"))


def application_traceback(error: BaseException) -> str:
    """Return the traceback of an application's exception without the server's frames.

    Begins with a newline; empty if there is no frame of the application. Does not modify `error`.
    """
    import traceback

    while isinstance(error, Failure) and error.__cause__ is not None:
        error = error.__cause__
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(SERVER_FOLDER) and not is_importing(frame.filename)
    ]
    if not frames and not isinstance(error, SyntaxError):
        return ""
    lines = traceback.format_list(frames) + traceback.format_exception_only(error)
    return "\nTraceback (most recent call last):\n" + "".join(lines)


def is_importing(file: str) -> bool:
    """Tell whether a file belongs to the import system."""
    return file.startswith(_IMPORTING[0]) or file.endswith(_IMPORTING[1])
