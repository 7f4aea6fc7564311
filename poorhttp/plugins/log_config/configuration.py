"""Applies a configuration file of Python's `logging`, and keeps its handlers open."""

from __future__ import annotations

import atexit
import json
import logging
import logging.config
import os
from collections.abc import Callable, Iterator
from configparser import ConfigParser, SectionProxy
from configparser import Error as IniError
from importlib import import_module
from traceback import walk_tb

from poorhttp.config.ini import read_file
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def apply(path: str, place: str, folder: str) -> None:
    """Configure `logging` from a file; a relative path is relative to `folder`.

    `place` is where the file was named.

    Raises:
        ConfigError: with file and line of a syntax error, otherwise with the message of `logging`.
    """
    suffix = os.path.splitext(path)[1]
    if suffix not in READERS:
        raise ConfigError(
            f"{place}: {path}: the name of the file ends in .ini, .json or .toml, which says "
            "its format"
        )
    try:
        text = read_file(os.path.join(folder, path)).decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{place}: cannot open {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{place}: {path} is not UTF-8 text") from error
    # They are replaced, and closed as at any other configuration.
    _share_handlers()
    before = list(_handler_references())
    try:
        READERS[suffix](text)
    except ConfigError as error:
        raise ConfigError(f"{place}: {path}: {error}") from error
    except Exception as error:
        line = _line(error)
        raise ConfigError(
            f"{place}: {path}{f':{line}' if line else ''}: {_message(error)}"
        ) from error
    _keep_handlers(before)
    for logger in SERVER_LOGGERS:
        logger.configured()


class ServerLogger:
    """One of the server's loggers, which no configuration of the application can silence.

    A later `dictConfig` or `fileConfig` disables existing loggers by default, and replaces level
    and handlers of the root logger. What the application sets for the server's own loggers does
    count, and handlers that it adds to the root.
    """

    def __init__(self, name: str) -> None:
        self.logger = logging.getLogger(name)
        self.configured()

    def configured(self) -> None:
        """Keep the level and the handlers that it inherits: `log_config` was applied."""
        self._root_level = self.logger.root.level
        self._root_handlers = list(self.logger.root.handlers)

    def forget_handlers(self) -> None:
        """Keep no handlers of the root any more: the process ends."""
        self._root_handlers.clear()

    def is_enabled(self, level: int) -> bool:
        """Whether records of this level are handled.

        Neither `logging.disable` counts, nor the level that the root logger has got since.
        """
        logger: logging.Logger | None = self.logger
        while logger is not None and logger is not self.logger.root:
            if logger.level:
                return level >= logger.level
            logger = logger.parent
        return level >= self._root_level

    def handle(self, record: logging.LogRecord) -> None:
        """Pass a record to the handlers: to those that the root had, if it has none of them."""
        self.logger.disabled = False
        had, has = self._root_handlers, self.logger.root.handlers
        if not had or any(handler in has for handler in had):
            self.logger.handle(record)
        elif self.logger.filter(record):
            for handler in self._reached(had):
                if record.levelno >= handler.level:
                    handler.handle(record)

    def _reached(self, root_handlers: list[logging.Handler]) -> Iterator[logging.Handler]:
        """Yield the handlers that records reach if the root has these."""
        logger: logging.Logger | None = self.logger
        while logger is not None:
            yield from root_handlers if logger is logger.root else logger.handlers
            logger = logger.parent if logger.propagate else None


ERRORS = ServerLogger("poorhttp.error")
REQUESTS = ServerLogger("poorhttp.access")
SERVER_LOGGERS = (ERRORS, REQUESTS)

#: References to the handlers of `log_config`, taken from the list of `logging`.
_kept: list[Any] = []


def _handler_references() -> list[Any]:
    """Return the list of weak references to handlers that `logging.shutdown` closes."""
    references: list[Any] = getattr(logging, "_handlerList", [])
    return references


def _keep_handlers(before: list[Any]) -> None:
    """Keep handlers that are not among `before` from being closed by the application.

    `logging.config` and `logging.shutdown` close all handlers in the list. One that is closed loses
    its records: a file of the mode `w` is not opened again, `MemoryHandler` has no target.
    """
    references = _handler_references()
    known = {id(each) for each in before}
    _kept.extend(each for each in references if id(each) not in known)
    references[:] = [each for each in references if id(each) in known]


def _share_handlers() -> None:
    """Put the handlers back into the list."""
    _handler_references().extend(_kept)
    _kept.clear()


def _close_handlers() -> None:
    """Close the handlers, and give up those that the application has taken from the root logger.

    Otherwise they last until Python clears its modules, when `logging` can no longer lock its list
    with a lock of gevent, and says so on standard error.
    """
    _share_handlers()
    logging.shutdown()
    for logger in SERVER_LOGGERS:
        logger.forget_handlers()


# `logging` calls `shutdown` later, as it was imported before.
atexit.register(_close_handlers)


def reopen() -> None:
    """Make handlers that write to files reopen them with the next record."""
    for reference in [*_kept, *_handler_references()]:
        handler = reference()
        if isinstance(handler, logging.FileHandler):
            handler.acquire()
            try:
                # A handler without a stream opens its file, as with its option `delay`.
                stream, handler.stream = handler.stream, None
                if stream is not None:
                    stream.close()
            finally:
                handler.release()


def _read_ini(text: str) -> None:
    parser = ConfigParser()
    parser.read_string(text)
    try:
        logging.config.fileConfig(parser, disable_existing_loggers=False)
    except Exception as error:
        if place := _place_in_ini(error):
            raise ConfigError(place) from error
        raise


def _place_in_ini(error: Exception) -> str:
    """Return which section or option is wrong, which `fileConfig` does not say; empty: unknown."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    owner = frames[-1].f_locals.get("self")
    if isinstance(error, KeyError) and isinstance(owner, SectionProxy):
        return f"[{owner.name}] has no {error.args[0]}"
    if isinstance(error, KeyError) and isinstance(owner, ConfigParser):
        return f"there is no section [{error.args[0]}]"
    for frame in reversed(frames):
        if frame.f_code.co_filename == logging.config.__file__:
            section = frame.f_locals.get("section")
            name = section.name if isinstance(section, SectionProxy) else ""
            if name := frame.f_locals.get("sectname", name):
                return f"[{name}]: {_message(error)}"
            if "llist" in frame.f_locals:
                return "[loggers]: keys lacks root"
    return ""


def _read_json(text: str) -> None:
    _use(json.loads(text))


def _read_toml(text: str) -> None:
    try:
        tomllib = import_module("tomllib")
    except ImportError:
        raise ConfigError("TOML needs Python 3.11 or newer; write it as .json or .ini") from None
    _use(tomllib.loads(text))


def _use(config: object) -> None:
    if not isinstance(config, dict):
        raise ConfigError("holds no table; see logging.config.dictConfig")
    # Otherwise loggers that exist already would be disabled.
    logging.config.dictConfig({"disable_existing_loggers": False, **config})


READERS: dict[str, Callable[[str], None]] = {
    ".ini": _read_ini,
    ".json": _read_json,
    ".toml": _read_toml,
}


def _line(error: BaseException) -> int | None:
    """Return the line of a syntax error, or None."""
    errors = getattr(error, "errors", None)
    if isinstance(error, IniError) and errors:
        return int(errors[0][0])
    return getattr(error, "lineno", None)


def _message(error: BaseException) -> str:
    """Return an exception and its causes on one line: `logging` raises nested exceptions."""
    messages = []
    reason: BaseException | None = error
    while reason is not None:
        text = " ".join(str(reason).split())
        messages.append(
            f"{type(reason).__name__}: {text}" if isinstance(reason, LookupError) else text
        )
        reason = reason.__cause__
    return ": ".join(messages)
