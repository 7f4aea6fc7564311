"""The option `log_config`: a configuration file of Python's `logging`."""

from __future__ import annotations

import json
import logging
import logging.config
import os
from collections.abc import Callable
from configparser import ConfigParser
from configparser import Error as IniError
from importlib import import_module

from poorhttp.config.ini import read_file
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError


def apply(settings: Settings, folder: str) -> None:
    """Configure `logging` from the file; a relative path is relative to `folder`.

    Raises:
        ConfigError: with file and line of a syntax error, otherwise with the message of `logging`.
    """
    path = str(settings.log_config)
    place = settings.origin("log_config")
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
    try:
        READERS[suffix](text)
    except ConfigError as error:
        raise ConfigError(f"{place}: {path}: {error}") from error
    except Exception as error:
        line = _line(error)
        raise ConfigError(
            f"{place}: {path}{f':{line}' if line else ''}: {_message(error)}"
        ) from error


def reopen() -> None:
    """Make handlers that write to files reopen them with the next record."""
    loggers = [logging.getLogger(), *logging.getLogger().manager.loggerDict.values()]
    for logger in loggers:
        for handler in logger.handlers if isinstance(logger, logging.Logger) else ():
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
    logging.config.fileConfig(parser, disable_existing_loggers=False)


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
