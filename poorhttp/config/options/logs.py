"""The options of the access log and the error log."""

from __future__ import annotations

from poorhttp.config.options.option import Option, WordList
from poorhttp.config.parsers import boolean, choice, line, log_place, or_off, prefix, seconds, share

#: The named formats of the access log; anything else is a format string.
LOG_FORMATS = ("common", "combined", "json")


def log_format(text: str) -> str:
    """Read the name of a log format, or a format string, which has at least one `%` directive."""
    if "%" not in text:
        return choice(*LOG_FORMATS)(text)
    # Imported only for a format string: the core parses those.
    from poorhttp._core import check_log_format

    check_log_format(line(text))
    return text


class Logs:
    """The access log and the error log."""

    GROUP = "Logs"

    access_log = Option(
        or_off(log_place),
        "off",
        "Destination of the access log, one line for each request: a file, `-` (standard output), "
        "`syslog`, `journald`, `terminal` (coloured, for people), or `off`.",
        metavar="FILE",
        reason="Off, because the proxy in front usually writes one. `terminal` writes to standard "
        "error in a format of its own; it is the default of `poorhttp dev`. `syslog` uses "
        "facility `local0` and level `info`; `error_log` describes the rest. The server counts "
        "lines that cannot be written, and the error log reports their number; no request waits "
        "for a log. Off in gunicorn and waitress, too.",
        aliases=("access-logfile",),
        fixed={"no-access-log": "off", "disable-logging": "off"},
    )
    access_log_format = Option(
        log_format,
        "combined",
        "Format of the access log: `common`, `combined`, `json`, or a format string with the "
        "directives of Apache.",
        metavar="FORMAT",
        reason="Log analysers expect Apache's combined format; nginx and gunicorn write it too. A "
        "line is written when the kernel has taken the last byte of the response, or the "
        "connection has ended. `json` writes an object on each line. docs/reference/logs.md lists "
        "all directives and keys.",
        aliases=("access-logformat",),
        quotes=True,
    )
    access_log_sample = Option(
        share,
        "1",
        "Share of the requests that are logged, from 0 to 1.",
        metavar="SHARE",
        reason="For servers with very many requests. A client cannot influence which requests are "
        "logged. Errors are always logged: a status of 400 or more, or an incomplete response.",
    )
    access_log_exclude = WordList(
        prefix,
        (),
        "Prefixes of paths whose requests are not logged, such as `/static`.",
        metavar="PREFIX",
        reason="For health checks and files. Errors are logged nevertheless, as with "
        "`access_log_sample`. Requests for `health` are never logged.",
    )
    request_id = Option(
        boolean,
        "off",
        "Give each request an id: in the environ, in `X-Request-ID` of the response, and in both "
        "logs.",
        reason="With an id you can find a request in the logs of several servers. The server "
        "takes it from `X-Request-ID` of `trusted_proxies` if it has 1 to 128 letters, digits and "
        "characters of `-_.~:=+/@`. Otherwise it makes 16 hexadecimal digits, unique across "
        "workers and restarts. A proxy must set or remove the header, or clients can choose their "
        "own ids. The environ has the id as `HTTP_X_REQUEST_ID`. An application may set another "
        "`X-Request-ID` in its response. The option also logs a valid `traceparent` (W3C Trace "
        "Context) of any client, as `trace_id` and `span_id`. Off, because it takes time. nginx "
        "`$request_id`; gunicorn has no ids.",
    )
    error_log = Option(
        log_place,
        "-",
        "Destination of the error log, which has all other messages: a file, `-` (standard "
        "error), `syslog` or `journald`.",
        shared=True,
        metavar="FILE",
        reason="USR1 reopens the file, for logrotate. `syslog:PATH` and `journald:PATH` name a "
        "socket other than `/dev/log` (facility `daemon`) or `/run/systemd/journal/socket`. "
        "Levels become priorities there, and on a standard error that systemd has connected to "
        "its journal. Write `./syslog` for a file of that name.",
        aliases=("error-logfile", "log-file", "logto", "log-syslog-to"),
        fixed={"log-syslog": "syslog"},
    )
    error_log_format = Option(
        choice("text", "json"),
        "text",
        "Format of the error log: `text`, or `json` with an object on each line.",
        shared=True,
        metavar="FORMAT",
        reason="`json` is for programs. All keys are always present, with null for unknown values: "
        "`time` (RFC 3339, with milliseconds), `level`, `pid`, `worker`, `logger` "
        "(`poorhttp.error`, or `wsgi.errors` for text that the application writes there), "
        "`message`, `request` (its number), `request_id`, `trace_id`, `span_id` and `exception` (a "
        "traceback as one string). Only the traceback that Python writes when a process crashes is "
        "always text. docs/reference/logs.md has examples.",
    )
    log_level = Option(
        choice("debug", "info", "warning", "error"),
        "info",
        "Lowest level of messages that are logged: `debug`, `info`, `warning` or `error`.",
        shared=True,
        metavar="LEVEL",
        reason="`debug` also shows the traceback of an error that stops the server, and streams of "
        "HTTP/2 that clients reset before their requests run.",
    )
    slow_request = Option(
        seconds(0),
        "0",
        "Log requests that take longer than this, and where the time went; 0 logs none.",
        reason="A warning in the error log says how long the request waited for a thread, how long "
        "the application took, and how long sending the response took. The time counts from the "
        "moment when the server has read the whole request, so the time that a client takes to "
        "send it does not count. While all threads are busy, the server may read a request late.",
        aliases=("slow-requests",),
    )
