"""The target `package.module:callable` or `path/to/file.py:callable`.

The callable may be an attribute of an attribute, and may be made by a call without arguments:
`shop.web:create_app()`. Without one it is `application` or else `app`.
"""

from __future__ import annotations

import os

from ..errors import ApplicationError, Stopped
from ..spelling import nearest
from . import module as modules
from .module import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from _typeshed.wsgi import WSGIApplication

DEFAULTS = ("application", "app")

# Of a factory, the names people give it.
_FACTORIES = ("create_app", "make_app", "create_application", "make_application", "get_app")


def load(target: str) -> WSGIApplication:
    """Load the application that a target names.

    Raises:
        ApplicationError: with one message that says what was wrong, where, and what would be right.
    """
    place, colon, expression = _split(target)
    if not place:
        raise ApplicationError(f"{target} names no module: say package.module:callable")
    if colon and not expression:
        raise ApplicationError(
            f"{target} names no callable behind the colon: say {place}:application, or only {place}"
        )
    dotted = expression.removesuffix("()")
    if expression and not all(part.isidentifier() for part in dotted.split(".")):
        raise ApplicationError(
            f'{target}: "{expression}" is not the name of a callable; it should look like '
            "application, package.application or create_app()"
        )
    if _is_path(place):
        module = modules.by_file(place)
    elif all(part.isidentifier() for part in place.split(".")):
        module = modules.by_name(place)
    else:
        raise ApplicationError(
            f'{target}: "{place}" is neither a module nor a file: '
            "say package.module:callable or path/to/file.py:callable"
        )
    if not expression:
        return _default(module, place)
    found = _attribute(module, dotted, place)
    if dotted != expression:
        return _made(found, place, expression)
    return _checked(found, f"{place}:{expression}")


def names_module(name: str, expression: str) -> bool:
    """Whether there is a module of a name, and the expression could be that of a callable in it."""
    from importlib.util import find_spec

    if not all(part.isidentifier() for part in expression.removesuffix("()").split(".")):
        return False
    if os.path.exists(f"{name}.py") or os.path.exists(name):
        return True
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: loaded, and by nobody who says how
        return False


def _split(target: str) -> tuple[str, str, str]:
    # The last colon: a path may have one too, an expression has none.
    place, colon, expression = target.rpartition(":")
    return (place, colon, expression) if colon else (target, "", "")


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place or os.path.isfile(place)


def _default(module: ModuleType, place: str) -> WSGIApplication:
    for name in DEFAULTS:
        if hasattr(module, name):
            return _checked(getattr(module, name), f"{place}:{name}")
    message = f"{place} has neither application nor app"
    for name in _FACTORIES:
        if callable(getattr(module, name, None)):
            raise ApplicationError(f"{message}; did you mean {place}:{name}()?")
    near = next(filter(None, (nearest(name, _public(module)) for name in DEFAULTS)), None)
    if near is not None:
        raise ApplicationError(f'{message}; did you mean "{place}:{near}"?')
    raise ApplicationError(f"{message}: say which callable it is, as {place}:NAME")


def _attribute(module: ModuleType, dotted: str, place: str) -> object:
    found: object = module
    where = place
    for name in dotted.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as error:
            near = nearest(name, _public(found))
            message = f'{where} has no "{name}"'
            file = getattr(module, "__file__", None)
            if where == place and file and not _is_path(place):
                message += f" ({file})"
            raise ApplicationError(
                message + (f'; did you mean "{near}"?' if near else "")
            ) from error
        where = f"{where}:{name}" if where == place else f"{where}.{name}"
    return found


def _public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def _made(factory: object, place: str, expression: str) -> WSGIApplication:
    target = f"{place}:{expression}"
    if not callable(factory):
        raise ApplicationError(
            f"{target}: {expression.removesuffix('()')} cannot be called, it is {factory!r}"
        )
    try:
        application = factory()
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        raise ApplicationError(f"{target} failed: {told(error)}") from error
    return _checked(application, target)


def _checked(application: object, target: str) -> WSGIApplication:
    if not callable(application):
        raise ApplicationError(
            f"{target} is not an application: it cannot be called, it is {application!r}"
        )
    code = getattr(application, "__code__", None)
    if code is not None and code.co_argcount == 0 and not code.co_flags & 0x04:  # 0x04: *arguments
        raise ApplicationError(
            f"{target} takes no arguments, an application takes two (PEP 3333); "
            f"where it makes the application, say {target}()"
        )
    return application
