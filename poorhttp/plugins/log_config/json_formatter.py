"""JSON lines from records of Python's `logging`, and the request of each record, for `log_config`.

Imported only where a configuration names it: `conf/logging.json` is an example.
"""

from __future__ import annotations

import json
import logging
import time
import traceback

from poorhttp import logs
from poorhttp.logs.frames import with_sources

#: Keys of a line, in their order; the error log has the same with `error_log_format = json`.
KEYS = (
    "time", "level", "pid", "worker", "logger", "message",
    "request", "request_id", "trace_id", "span_id", "exception",
)  # fmt: skip

#: Levels as the server names them.
LEVELS = {"WARN": "warning", "FATAL": "critical"}

#: Attributes of every record. What else a record has, the application has added (`extra`).
_OWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "source"}


class RequestFilter(logging.Filter):
    """Gives each record `request`, `request_id`, `trace_id` and `span_id` of its request.

    A filter of handlers, not of loggers: it sees the records of all loggers. The attributes are
    None outside of requests; the ids also if the option `request_id` is off.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes, unless the server has; return True."""
        if not hasattr(record, "request_id"):
            name = None if hasattr(record, "worker") else logs.current_request()
            record.request = name and name.number
            record.request_id = name and name.id
            record.trace_id = name and name.trace_id
            record.span_id = name and name.span_id
        if not hasattr(record, "worker"):
            writer = logs.error_log.writer
            record.worker = (writer and writer.label) or None
        return True


class JsonFormatter(logging.Formatter):
    """Writes a record as a JSON object on one line, with the keys of `error_log_format = json`.

    What an application has added to a record (`extra`) follows under its own name, as text unless
    it is a number, a string, true, false or null. Lines of the access log that are JSON already
    stay as they are.
    """

    def __init__(self, *arguments: object, **named: object) -> None:
        """Take the arguments of every formatter, which are not used."""
        super().__init__()
        self._filter = RequestFilter()

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        message = record.getMessage()
        if record.name == "poorhttp.access" and message.startswith("{"):
            return message
        self._filter.filter(record)
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        found: dict[str, object] = {
            "time": f"{seconds}.{int(record.msecs):03}Z",
            "level": LEVELS.get(record.levelname, record.levelname.lower()),
            "pid": record.process,
            "logger": getattr(record, "source", record.name),
            "message": message,
            "exception": self._exception(record),
        }
        fields = {key: found.get(key, getattr(record, key, None)) for key in KEYS}
        for key, value in vars(record).items():
            if key not in _OWN and key not in fields:
                known = isinstance(value, (str, int, float)) or value is None
                fields[key] = value if known else _text(value)
        try:
            # ASCII, so that no character can be taken for the end of a line.
            return json.dumps(fields, allow_nan=False)
        except ValueError:
            return json.dumps({key: _text(value) for key, value in fields.items()})

    def _exception(self, record: logging.LogRecord) -> str | None:
        text = record.exc_text
        if text is None and isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = "".join(with_sources(lambda: traceback.format_exception(error)))
        if record.stack_info:
            text = f"{text}\n{record.stack_info}" if text else record.stack_info
        return text.rstrip("\n") if text else None


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__}: {type(error).__name__}>"
