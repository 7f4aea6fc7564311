"""The exceptions of this package, with the exit codes of those that prevent a start.

The message of a Failure is one sentence for the user: the mistake, its place, and a correction.
"""

from __future__ import annotations


class Failure(Exception):
    """The server cannot start. The command prints the message and exits with `exit_code`."""

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
    """The server cannot listen on an address."""

    exit_code = 5


class NoResponse(BaseException):
    """An application cannot finish its response; the log has the reason.

    Not an Exception, because frameworks catch those and answer with an error page.

    Attributes:
        status: status of the response, if nothing was sent yet.
    """

    status = "502 Bad Gateway"


class RequestTimeout(NoResponse):
    """Raised in an application whose request takes longer than `request_timeout`."""

    status = "504 Gateway Timeout"


class BodyRefused(NoResponse):
    """Raised where an application reads a request body that it receives while it runs.

    The body is too large or malformed, or comes too slowly.
    """

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Stopped(SystemExit):
    """A stop signal arrived before the server has begun to serve.

    A SystemExit, because gevent's hub passes only those on to the main greenlet.
    """


def how_to_install(extra: str) -> str:
    """Return the command that installs an extra, for messages.

    Not from PyPI, where `poorhttp` is another project, and this one (`poorhttpd`) is missing.
    """
    return f"pip install '.[{extra}]' in the folder of the server's source"


def visible(text: str) -> str:
    """Return a text with escapes for what is not printable, or changes the order of letters."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def printable(text: str) -> str:
    """Return a message of several lines for a terminal: `visible` but for line ends and tabs.

    It may quote a file of somebody else, whose escape sequences a terminal would obey.
    """
    # Bytes of file names that are no UTF-8 stay as they are.
    return "".join(
        each if each in "\n\t" or "\udc80" <= each <= "\udcff" else visible(each) for each in text
    )
