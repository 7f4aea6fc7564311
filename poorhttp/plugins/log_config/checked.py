"""Reads the file of `log_config` for `poorhttp check`, without opening a handler.

A server of the same configuration may run, and a handler of the mode `w` would empty its file.
"""

from __future__ import annotations

import errno
import os

from poorhttp.config import loader
from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError, Failure
from poorhttp.plugins.log_config.options import LogConfig
from poorhttp.process import fork
from poorhttp.process.privileges import Privileges
from poorhttp.process.signals import signal
from poorhttp.targets.module import describe

#: Ends the message of the child process: another process, which that has forked, may keep its pipe.
END = b"\0"


def check(settings: Settings, folder: str) -> None:
    """Apply the file in a child process, as the workers' user; `folder`: that of relative paths.

    Raises:
        ConfigError: the file is missing or wrong.
    """
    privileges, parent = Privileges(settings), os.getpid()
    read, write = os.pipe2(os.O_CLOEXEC)

    def run() -> None:
        os.close(read)
        message = _message(settings, folder, privileges, parent).encode(errors="backslashreplace")
        with open(write, "wb") as pipe:
            pipe.write(message.replace(END, b"") + END)
        os._exit(0)

    # Who has started this may have ignored it, and then nobody could wait for a child.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = fork.fork(run)
    os.close(write)
    message = b""
    with open(read, "rb", 0) as pipe:
        while not message.endswith(END) and (more := pipe.read(1 << 16)):
            message += more
    fork.wait(pid)
    if not message.endswith(END):
        path = settings.of(LogConfig).log_config
        raise ConfigError(f"{settings.origin('log_config')}: {path}: it has ended the process")
    if message != END:
        raise ConfigError(message.removesuffix(END).decode())


def _message(settings: Settings, folder: str, privileges: Privileges, parent: int) -> str:
    """Return what is wrong with the file, in a process that does nothing else; empty: nothing."""
    from poorhttp.plugins.log_config import configuration, project_modules  # large

    path, place = str(settings.of(LogConfig).log_config), settings.origin("log_config")
    try:
        privileges.drop()
        # Killed, as TERM is blocked.
        fork.set_parent_death_signal(parent, 0.0)
        loader.set_variables(settings)
        _open_no_handlers()
        with project_modules.found(settings, folder):
            configuration.apply(path, place, folder)
    except Failure as error:
        return str(error)
    except BaseException as error:
        return f"{place}: {path}: {describe(error)}"
    return ""


def _open_no_handlers() -> None:
    """Have each class of handlers make a handler that does nothing, if its arguments fit."""
    import inspect
    import logging

    class Unopened(logging.NullHandler):
        def setTarget(self, target: logging.Handler) -> None:  # noqa: N802
            """Ignore the target of a `MemoryHandler`."""

    def make(kind: type[logging.Handler], *arguments: object, **named: object) -> logging.Handler:
        given = inspect.signature(kind.__init__).bind(None, *arguments, **named).arguments
        if issubclass(kind, logging.FileHandler) and "filename" in given:
            path = os.path.abspath(given["filename"])
            if not os.path.isdir(os.path.dirname(path)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        # Its `__init__` is not called: it is no object of `kind`.
        handler: Unopened = object.__new__(Unopened)
        logging.NullHandler.__init__(handler)
        return handler

    logging.Handler.__new__ = make  # type: ignore[assignment, method-assign]
