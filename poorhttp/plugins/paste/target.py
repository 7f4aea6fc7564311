"""The target `paste:FILE#NAME`: an application that an ini file of PasteDeploy declares.

`paste:production.ini` is the section `[app:main]` of it, as `pserve production.ini` serves it. The
file may configure Python's `logging` too, unless the option `log_config` does.
"""

from __future__ import annotations

import os

from poorhttp.config.settings import Settings
from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.targets.module import describe, prepend_to_path
from poorhttp.targets.target import CONFIGURATION, Target
from poorhttp.targets.wsgi import refuse_asgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


def load(rest: str, settings: Settings | None = None) -> WSGIApplication:
    """Load the application.

    Raises:
        ApplicationError: the file or the section is missing, or the application failed.
    """
    file, _, name = rest.partition("#")
    path = os.path.abspath(file)
    if not os.path.isfile(path):
        raise ApplicationError(_missing_file_message(path))
    try:
        from paste.deploy import loadapp
    except ImportError as error:
        raise ApplicationError(
            f"paste:{rest} needs PasteDeploy, which is not installed: pip install PasteDeploy"
        ) from error
    prepend_to_path(os.getcwd())
    try:
        if settings is None or not settings.is_enabled("log_config"):
            _configure_logging(path)
        application: WSGIApplication = loadapp(
            "config:" + path.replace("%", "%25"), name=name or None
        )
    except (Stopped, ApplicationError):
        raise
    except (Exception, SystemExit) as error:
        raise ApplicationError(f"paste:{rest} cannot be loaded: {describe(error)}") from error
    if not callable(application):
        raise ApplicationError(
            f"paste:{rest} is not an application: it cannot be called, it is {application!r}"
        )
    refuse_asgi(application, f"paste:{rest}")
    return application


def _configure_logging(path: str) -> None:
    """Apply the sections of `logging`, if there are some, as `pserve` does."""
    from configparser import ConfigParser, Error  # takes memory

    parser = ConfigParser({"here": os.path.dirname(path), "__file__": path})
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (OSError, UnicodeDecodeError, Error) as error:
        raise ApplicationError(f"{path} cannot be read: {describe(error)}") from error
    if parser.has_section("loggers"):
        from logging.config import fileConfig

        fileConfig(parser, disable_existing_loggers=False)


def _missing_file_message(path: str) -> str:
    folder, file = os.path.split(path)
    if os.path.isdir(path):
        return f"{path} is a folder, not a file; say paste:{os.path.join(path, 'production.ini')}"
    entries = os.listdir(folder) if os.access(folder, os.R_OK) and os.path.isdir(folder) else []
    near = nearest(file, [entry for entry in entries if entry.endswith(".ini")])
    return f"there is no file {path}" + (f'; did you mean "{near}"?' if near else "")


TARGET = Target(load, CONFIGURATION, takes_settings=True)
