"""Finds the functions that options such as `worker_exit` and `after_fork` name, and calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from poorhttp.config import loader
from poorhttp.config.options.hooks import FUNCTION, PREFIX
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import ApplicationError, Stopped
from poorhttp.targets import module as modules
from poorhttp.targets import wsgi

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.worker.hooks.arguments import Argument


def place(settings: Settings, option: str, number: int) -> str:
    return f"{settings.origin(option, number)}: {settings.value(option)[number]}"


def find(settings: Settings, option: str, number: int) -> Callable[..., object]:
    """Return a function of an option; an ApplicationError if it cannot be found or imported."""
    name: str = settings.value(option)[number]
    where = place(settings, option, number)
    module, _, function = name.partition(":")
    if not (module and function):
        raise ApplicationError(f"{where}: write it as package.module:function")
    try:
        found: object = modules.import_by_name(module)
        for part in function.split("."):
            found = getattr(found, part)
        if not callable(found):
            raise TypeError(f"{name} is not a function")
    except Stopped:
        raise
    except ApplicationError as failure:
        raise ApplicationError(f"{where}: {failure}") from failure.__cause__
    except BaseException as error:
        raise _failure(where, error) from error
    return found


def prepare(settings: Settings) -> None:
    """Have variables, and modules found, as in a worker, in a process that loads no application.

    Raises:
        ConfigError: a folder of `pythonpath` does not exist.
    """
    loader.set_variables(settings)
    loader.extend_path(settings)
    place, _, _ = wsgi.split(settings.target)
    if wsgi.is_path(place):
        folder, _ = modules.package_of(place)
        modules.prepend_to_path(folder)


def call(settings: Settings, option: str, *arguments: Argument) -> None:
    """Call the functions of an option, in their order; errors as of `call_one`."""
    for number in range(len(settings.value(option))):
        call_one(settings, option, number, *arguments)


def call_one(settings: Settings, option: str, number: int, *arguments: Argument) -> None:
    """Call a function of an option; an ApplicationError if it cannot be found, or has failed."""
    function = find(settings, option, number)
    try:
        function(*arguments)
    except Stopped:
        raise
    except BaseException as error:
        raise _failure(place(settings, option, number), error) from error


def check(settings: Settings) -> None:
    """Find all functions of hooks; an ApplicationError if one cannot be called as it will be."""
    import inspect

    for option, number in named(settings):
        arguments = (None,) if option.startswith(PREFIX) else ()
        try:
            signature = inspect.signature(find(settings, option, number))
        except (TypeError, ValueError):
            # Some functions of C modules do not tell it.
            continue
        try:
            signature.bind(*arguments)
        except TypeError as error:
            many = "an argument" if arguments else "no arguments"
            where = place(settings, option, number)
            raise ApplicationError(f"{where} is called with {many}: {error}") from error


def named(settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield the option of each function of hooks, and its number there.

    Not of plug-ins of others, whose functions may get anything.
    """
    for name, option in OPTIONS.items():
        if option.metavar == FUNCTION and not option.plugin:
            for number in range(len(settings.value(name))):
                yield name, number


def _failure(where: str, error: BaseException) -> ApplicationError:
    return ApplicationError(f"{where} has failed: {modules.describe(error)}")
