"""The option `log_config`: a file that configures Python's `logging` for both logs."""

from __future__ import annotations

from poorhttp.config.options.option import Option
from poorhttp.config.parsers import or_off, path


class LogConfig:
    """Both logs by Python's `logging`."""

    GROUP = "Logs"

    log_config = Option(
        or_off(path),
        "off",
        "Configuration file of Python's `logging` (`.ini`, `.json`, `.toml`) for both logs.",
        shared=True,
        metavar="FILE",
        reason="The loggers `poorhttp.error` and `poorhttp.access` then get the lines instead of "
        "`error_log` and `access_log`. The application's own loggers are set up before it is "
        "loaded. Requests are logged only if `access_log` is not `off`, at level `INFO` and in "
        "`access_log_format`. Records have the attributes `worker`, `request` (its number, or "
        "`None`), `request_id`, `trace_id` and `span_id`. `log_level` still applies. USR1 makes "
        "handlers reopen their files. Classes are also looked for where the application is: in "
        "the folder of the target, in `chdir` and in `pythonpath`; each process imports them. With "
        "`user`, handlers run as that user only, and the main process, which stays root, logs to "
        "`error_log`. `poorhttp check` reads the file, and opens no handler. `conf/logging.json` "
        "writes JSON lines.",
        aliases=("log-config-json",),
    )
