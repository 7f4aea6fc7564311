"""The options of the access log and the error log."""

from __future__ import annotations

from poorhttp.config.options.option import Option
from poorhttp.config.parsers import choice, line, log_place, optional_path, seconds

LOGS = "Logs"

#: The named formats of the access log; anything else is a format string.
LOG_FORMATS = ("common", "combined", "json")


def access_log_place(text: str) -> str | None:
    """Read where requests are logged, `terminal`, or `off`, which is None."""
    if text == "off":
        return None
    return text if text == "terminal" else log_place(text)


def log_format(text: str) -> str:
    """Read the name of a log format, or a format string, which has at least one `%` directive."""
    if "%" not in text:
        return choice(*LOG_FORMATS)(text)
    # Only for those who write their own: the core reads the format, so it knows what can be read.
    from poorhttp._core import check_log_format

    check_log_format(line(text))
    return text


class Logs:
    """Where requests and everything else are logged."""

    access_log = Option(
        access_log_place,
        "off",
        "Where a line about each request goes: a file, `-` (standard output), `syslog`, "
        "`journald`, `terminal` (coloured, for people), or `off`.",
        group=LOGS,
        metavar="FILE",
        reason="Off, because the proxy in front usually writes one. gunicorn and waitress have "
        "it off too. `terminal` is standard error, as `poorhttp dev` has it, "
        "in a format of its own. `syslog` is the facility `local0`, level `info`; for the rest see "
        "`error_log`. What cannot be written is counted, and the number told in the error log; no "
        "request ever waits for a log.",
    )
    access_log_format = Option(
        log_format,
        "combined",
        "`common`, `combined`, `json`, or a format string with the directives of Apache.",
        group=LOGS,
        metavar="FORMAT",
        reason="Apache's combined format is what log analysers expect. nginx and gunicorn "
        "write it too. `%L` is the number by which the error log names a request, counted in each "
        "worker; `%P` is the worker's process, `%D` the time in microseconds. A line is written "
        "when the kernel has taken the last byte of the answer, or the connection has ended: `%b` "
        "and `%B` are the bytes of content that it took, `%O` all bytes with the head, and `%X` "
        "is `X` if the answer is not complete, `+` if the connection is kept and `-` if not. "
        "`json` writes an object on each line: `time`, `remote_addr`, `method`, `target`, "
        "`protocol`, `referer`, `user_agent`, `worker`, `status`, `size` (as `%B`), `complete`, "
        "`sent` (as `%O`), `duration_us`, `request` (as `%L`), `kept` (requests on this "
        "connection before) "
        "and `pid`.",
    )
    error_log = Option(
        log_place,
        "-",
        "Where everything else that is reported goes: a file, `-` (standard error), `syslog` or "
        "`journald`.",
        group=LOGS,
        shared=True,
        metavar="FILE",
        reason="Files are reopened at USR1, for logrotate. `syslog:PATH` and `journald:PATH` name "
        "another socket than `/dev/log` (facility `daemon`) and `/run/systemd/journal/socket`; "
        "levels become priorities there, and also on a standard error that systemd has connected "
        "to its journal. A file of such a name is written `./syslog`.",
    )
    log_level = Option(
        choice("debug", "info", "warning", "error"),
        "info",
        "Least important message that is still reported: `debug`, `info`, `warning` or `error`.",
        group=LOGS,
        shared=True,
        metavar="LEVEL",
        reason="`debug` also adds the traceback to an error that stops the server.",
    )
    slow_request = Option(
        seconds(0),
        "0",
        "Log a request that takes longer than this, and where the time went; 0 logs none.",
        group=LOGS,
        metavar="SECONDS",
        reason="A warning in the error log says how long it waited for a thread, was in the "
        "application, and was sent. It counts from when the request was there as a whole: what a "
        "client takes to send it is not ours. While all threads were busy nobody saw it come, so "
        "the time of waiting is the longest that it can have been.",
    )
    log_config = Option(
        optional_path,
        "off",
        "Configuration of Python's `logging` (`.ini`, `.json`, `.toml`) that takes over both logs.",
        group=LOGS,
        shared=True,
        metavar="FILE",
        reason="Loggers `poorhttp.error` and `poorhttp.access` then get the lines of the server "
        "instead of `error_log` and `access_log`, and the application's own loggers are set up "
        "before it is loaded. Requests are only logged if `access_log` is anything but `off`, each "
        "at level `INFO` and in `access_log_format`. Records have the attributes `worker` and "
        "`request` (its number, or `None`). `log_level` still says what is reported at all. At "
        "USR1, handlers open their files anew. With `user`, handlers run as that user only, and "
        "the main process, which stays root, logs to `error_log`.",
    )
