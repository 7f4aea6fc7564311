"""The options of the access log and the error log."""

from __future__ import annotations

from poorhttp.config.options.option import Option
from poorhttp.config.parsers import choice, line, log_place, or_off, path, seconds

#: The named formats of the access log; anything else is a format string.
LOG_FORMATS = ("common", "combined", "json")


def access_log_place(text: str) -> str:
    """Read the destination of the access log: `terminal`, or as of the error log."""
    return text if text == "terminal" else log_place(text)


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
        or_off(access_log_place),
        "off",
        "Destination of the access log, one line for each request: a file, `-` (standard output), "
        "`syslog`, `journald`, `terminal` (coloured, for people), or `off`.",
        metavar="FILE",
        reason="Off, because the proxy in front usually writes one. gunicorn and waitress have "
        "it off too. `terminal` is standard error, in a format of its own, and the default of "
        "`poorhttp dev`. `syslog` is the facility `local0`, level `info`; for the rest see "
        "`error_log`. Lines that cannot be written are counted, and the error log reports their "
        "number; no request ever waits for a log.",
    )
    access_log_format = Option(
        log_format,
        "combined",
        "Format of the access log: `common`, `combined`, `json`, or a format string with the "
        "directives of Apache.",
        metavar="FORMAT",
        reason="Apache's combined format is what log analysers expect. nginx and gunicorn write "
        "it too. `%L` is the number by which the error log names a request, counted in each "
        "worker; `%P` is the worker's process, `%D` the time in microseconds. A line is written "
        "when the kernel has taken the last byte of the response, or the connection has ended: "
        "`%b` and `%B` are the bytes of content that it took, `%O` all bytes including the head, "
        "and `%X` is `X` if the response is not complete, `+` if the connection stays open and "
        "`-` if not. `json` writes an object on each line: `time`, `remote_addr`, `method`, "
        "`target`, `protocol`, `referer`, `user_agent`, `worker`, `status`, `size` (as `%B`), "
        "`complete`, `sent` (as `%O`), `duration_us`, `request` (as `%L`), `kept` (earlier "
        "requests on this connection) and `pid`.",
    )
    error_log = Option(
        log_place,
        "-",
        "Destination of the error log, which has all other messages: a file, `-` (standard error), "
        "`syslog` or `journald`.",
        shared=True,
        metavar="FILE",
        reason="USR1 reopens the file, for logrotate. `syslog:PATH` and `journald:PATH` name "
        "another socket than `/dev/log` (facility `daemon`) and `/run/systemd/journal/socket`; "
        "levels become priorities there, and also on a standard error that systemd has connected "
        "to its journal. A file of that name is written `./syslog`.",
    )
    log_level = Option(
        choice("debug", "info", "warning", "error"),
        "info",
        "Lowest level of messages that are logged: `debug`, `info`, `warning` or `error`.",
        shared=True,
        metavar="LEVEL",
        reason="`debug` also shows the traceback of an error that stops the server.",
    )
    slow_request = Option(
        seconds(0),
        "0",
        "Log requests that take longer than this, and where the time went; 0 logs none.",
        reason="A warning in the error log says how long the request waited for a thread, how long "
        "the application took, and how long the response was sent. The time counts from the moment "
        "in which the request was complete, because the server is not responsible for the time "
        "that a client takes to send it. While all threads are busy nothing is read, so the time "
        "of waiting is an upper bound.",
    )
    log_config = Option(
        or_off(path),
        "off",
        "Configuration file of Python's `logging` (`.ini`, `.json`, `.toml`) for both logs.",
        shared=True,
        metavar="FILE",
        reason="The loggers `poorhttp.error` and `poorhttp.access` then get the lines of the "
        "server instead of `error_log` and `access_log`, and the application's own loggers are "
        "set up before it is loaded. Requests are only logged if `access_log` is anything but "
        "`off`, each at level `INFO` and in `access_log_format`. Records have the attributes "
        "`worker` and `request` (its number, or `None`). `log_level` still applies. After USR1, "
        "handlers reopen their files. With `user`, handlers run as that user only, and the main "
        "process, which stays root, logs to `error_log`.",
    )
