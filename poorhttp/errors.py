"""What can go wrong before a request is served, and the exit code each failure has.

Each carries one message for the person who started the server: what was wrong, where, and what
would be right.
"""

from __future__ import annotations


class Failure(Exception):
    """The server cannot go on. The command prints the message and exits with `exit_code`."""

    exit_code = 1


class UsageError(Failure):
    """The command line is wrong."""

    exit_code = 2


class ConfigError(Failure):
    """A configuration file, an environment variable or an argument of the library is wrong."""

    exit_code = 3


class ApplicationError(Failure):
    """The application cannot be loaded."""

    exit_code = 4


class BindError(Failure):
    """An address cannot be listened on."""

    exit_code = 5


class NoResponse(BaseException):
    """An application has no answer, or no more of it, and the log says why.

    Not an Exception: frameworks answer those with a page of their own, and go on.

    Attributes:
        status: what the client gets, if nothing was sent yet.
    """

    status = "502 Bad Gateway"


class RequestTimeout(NoResponse):
    """Raised in an application that works on a request for longer than `request_timeout`."""

    status = "504 Gateway Timeout"


class Stopped(SystemExit):
    """We were told to stop before there was anything to stop.

    A SystemExit, because gevent's hub hands those on to the main greenlet, and nothing else.
    """


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, for messages.

    Not by a name of PyPI: `poorhttp` is another project there, and ours, `poorhttpd`, is not there.
    """
    return f"pip install '.[{extra}]' in the folder of the server's source"
