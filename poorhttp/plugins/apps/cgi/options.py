"""The options of CGI programs."""

from __future__ import annotations

from poorhttp.config.options.option import Option, Repeatable
from poorhttp.config.parsers import boolean, integer, line, seconds


def assignment(text: str) -> tuple[str, str | None]:
    """Read `NAME` or `NAME=VALUE`; without a value it is None."""
    name, equals, value = text.partition("=")
    if not (name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()):
        raise ValueError(f'"{text}" is not a variable; write it as NAME or NAME=VALUE')
    return name, line(value) if equals else None


class CgiPrograms:
    """Limits and environment of CGI programs."""

    GROUP = "CGI programs"

    cgi_timeout = Option(
        seconds(0.001),
        "60",
        "Longest time that a program may run without writing anything. Then it is killed, with "
        "all processes that it has started.",
        hosted=True,
        reason="The client gets 504 if nothing was sent. Otherwise its connection is cut, so that "
        "half a response does not look complete. Apache `CGIScriptTimeout` (60), lighttpd "
        "`read-timeout` in `cgi.limits`.",
    )
    cgi_time_limit = Option(
        seconds(0),
        "0",
        "Longest time that a program may run in total; 0 sets no limit.",
        hosted=True,
        reason="The program is killed as by `cgi_timeout`. No limit by default, because a "
        "download takes as long as its client needs.",
    )
    cgi_pass_authorization = Option(
        boolean,
        "off",
        "Pass the header `Authorization` on to programs, as `HTTP_AUTHORIZATION`.",
        hosted=True,
        reason="Off, because it holds passwords, which the server should check (RFC 3875 section "
        "4.1.18). Turn it on for programs that check them. Apache `CGIPassAuth`.",
    )
    cgi_processes = Option(
        integer(0, 65535),
        "0",
        "Number of programs that a worker runs at the same time; 0 means four for each usable CPU.",
        reason="Further requests wait until a program ends, because more programs at a time are "
        "slower. A worker in mode `single` or `forking` runs one at a time.",
    )
    cgi_environment = Repeatable(
        assignment,
        ("PATH",),
        "Variable of the server's environment to pass on, `NAME`, or to set, `NAME=VALUE`.",
        metavar="VARIABLE",
        hosted=True,
        secret=True,
        reason="Programs get no other variables, because these may hold passwords.",
    )
