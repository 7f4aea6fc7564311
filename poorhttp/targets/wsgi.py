"""The target `package.module:callable` or `path/to/file.py:callable`: a WSGI application.

The callable may be an attribute of an attribute, or the result of a call with literal arguments:
`shop.web:create_app()`, `shop.web:create_app("test", debug=True)`. The default is `application`,
then `app`.
"""

from __future__ import annotations

import os
from types import ModuleType

from poorhttp.config.registry import ASGI_MODE, FINDER, registry
from poorhttp.config.suggestions import nearest
from poorhttp.errors import ApplicationError, ConfigError, Stopped
from poorhttp.targets import module as modules
from poorhttp.targets.module import describe
from poorhttp.targets.target import CALLABLE, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import WSGIApplication

    Arguments = tuple[list[Any], dict[str, Any]]

DEFAULTS = ("application", "app")

#: Flag of `compile` for parsing only (ast.PyCF_ONLY_AST); the module `ast` is large.
_ONLY_PARSED = 0x0400

#: Flags of the code of a coroutine function and of an asynchronous generator (inspect).
_ASYNC = 0x80 | 0x200

#: Common names of functions that create an application.
FACTORIES = ("create_app", "make_app", "create_application", "make_application", "get_app")


def load(target: str, mode: str = "") -> WSGIApplication:
    """Load the application that a target names; an ApplicationError says what is wrong."""
    application: WSGIApplication
    application, name = load_callable(target)
    refuse_asgi(application, name, mode)
    _refuse_factory(application, name)
    return application


def load_callable(target: str) -> tuple[Any, str]:
    """Return the callable that a target names, and its full name; errors as of `load`."""
    place, colon, expression = split(target)
    if not place:
        raise ApplicationError(f"{target} names no module: say package.module:callable")
    if colon and not expression:
        raise ApplicationError(
            f"{target} names no callable after the colon: say {place}:application, or only {place}"
        )
    dotted = _callee(expression)
    if expression and not is_dotted(dotted):
        commented = " #" in expression or " ;" in expression
        hint = "; a comment needs a line of its own" if commented else ""
        raise ApplicationError(
            f'{target}: "{expression}" is not the name of a callable; it should look like '
            f"application, package.application or create_app(){hint}"
        )
    arguments = _arguments(target, expression)
    if is_path(place):
        module = modules.import_file(place)
    elif is_dotted(place):
        module = modules.import_by_name(place)
    else:
        raise ApplicationError(
            f'{target}: "{place}" is neither a module nor a file: '
            "say package.module:callable or path/to/file.py:callable"
        )
    if not expression:
        return _default(module, place)
    thing = _attribute(module, dotted, place)
    if arguments is not None:
        thing = _call_factory(thing, place, expression, arguments)
    return _check_callable(thing, f"{place}:{expression}")


def names_module(name: str, expression: str) -> bool:
    """Tell whether a module exists, and `expression` could name a callable in it."""
    from importlib.util import find_spec

    if not is_dotted(_callee(expression)):
        return False
    if os.path.exists(f"{name}.py") or os.path.exists(name):
        return True
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: a loaded module without a spec
        return False


def split(target: str) -> tuple[str, str, str]:
    """Return the module or file of a target, the colon, and the expression; both may be empty."""
    # The last colon, because a path may have one; but not one in the arguments of a call.
    place, colon, _ = target.rpartition(":")
    while colon and target.endswith(")") and not _is_call(target[len(place) + 1 :]):
        place, colon, _ = place.rpartition(":")
    if not colon:
        place, colon, _ = target.rpartition(":")
    return (place, colon, target[len(place) + 1 :]) if colon else (target, "", "")


def _is_call(expression: str) -> bool:
    """Tell whether `expression` is a complete call of a name, rather than the end of one."""
    if not is_dotted(_callee(expression)):
        return False
    try:
        compile(expression, "target", "eval", _ONLY_PARSED, dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def is_dotted(name: str) -> bool:
    """Tell whether a name could be that of a module, or of an attribute."""
    return all(part.isidentifier() for part in name.split("."))


def _callee(expression: str) -> str:
    """Return the name that an expression calls, or the whole expression if it is no call."""
    return expression[: expression.find("(")] if expression.endswith(")") else expression


def _arguments(target: str, expression: str) -> Arguments | None:
    """Return the arguments of a call; None if the expression is no call."""
    if not expression.endswith(")"):
        return None
    if expression.endswith("()"):
        return [], {}
    import ast  # large, and needed only here

    try:
        call = ast.parse(expression, mode="eval").body
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == _callee(expression)):
            raise ValueError("more than one call")
        positional = [ast.literal_eval(argument) for argument in call.args]
        named = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
        if len(named) < len(call.keywords):
            raise ValueError("**")
    except (SyntaxError, ValueError, TypeError) as error:
        raise ApplicationError(
            f'{target}: the arguments of "{expression}" have to be literals: texts, numbers, True, '
            'False, None, lists, tuples and dictionaries of those, as in create_app("test", n=2)'
        ) from error
    return positional, named


def is_path(place: str) -> bool:
    """Tell whether a target names a file, rather than a module."""
    return place.endswith(".py") or "/" in place or os.path.isfile(place)


def _default(module: ModuleType, place: str) -> tuple[Any, str]:
    for name in DEFAULTS:
        if hasattr(module, name):
            return _check_callable(getattr(module, name), f"{place}:{name}")
    message = f"{place} has neither application nor app"
    hint = _finder_hint(place)
    if hint:
        raise ApplicationError(f"{message}; {hint}")
    for name in FACTORIES:
        if callable(getattr(module, name, None)):
            raise ApplicationError(f"{message}; did you mean {place}:{name}()?")
    near = next(filter(None, (nearest(name, _public(module)) for name in DEFAULTS)), None)
    if near is not None:
        raise ApplicationError(f'{message}; did you mean "{place}:{near}"?')
    if getattr(module, "__file__", None) is None:
        # A folder without __init__.py, which Python imports as a namespace package.
        raise ApplicationError(
            f"{place} is a folder without Python code of its own; say package.module:callable, "
            f"{place}/file.py:callable or static:{place}"
        )
    raise ApplicationError(f"{message}: say which callable it is, as {place}:NAME")


def _finder_hint(place: str) -> str:
    """Return what finds targets knows about a file without an application; mostly empty."""
    finder = registry.known("worker_hooks", FINDER)
    if finder is None or not is_path(place):
        return ""
    try:
        hint: str = finder.load().hint_for_file(place)
    except ConfigError:
        # That plug-in was left out of this installation.
        return ""
    return hint


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
            if where == place and file and not is_path(place):
                message += f" ({file})"
            raise ApplicationError(
                message + (f'; did you mean "{near}"?' if near else "")
            ) from error
        where = f"{where}:{name}" if where == place else f"{where}.{name}"
    return found


def _public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def _call_factory(factory: object, place: str, expression: str, arguments: Arguments) -> object:
    target = f"{place}:{expression}"
    if not callable(factory):
        raise ApplicationError(
            f"{target}: {_callee(expression)} cannot be called, it is {factory!r}"
        )
    positional, named = arguments
    try:
        return factory(*positional, **named)
    except Stopped:
        raise
    except (Exception, SystemExit) as error:
        raise ApplicationError(f"{target} failed: {describe(error)}") from error


def _check_callable(thing: object, target: str) -> tuple[Any, str]:
    if not callable(thing):
        raise ApplicationError(
            f"{target} is not an application: it cannot be called, it is {thing!r}"
        )
    return thing, target


def _refuse_factory(application: object, target: str) -> None:
    """Raise an ApplicationError if a callable is a factory rather than an application."""
    code = getattr(application, "__code__", None)
    if code is None or hasattr(application, "__self__"):
        return
    takes = code.co_argcount
    optional = len(getattr(application, "__defaults__", None) or ())
    if takes < 2 and not code.co_flags & 0x04:  # 0x04: *arguments
        has = "no arguments" if takes == 0 else "one argument"
        call = f"{target}()" if takes == optional else f"{target}(...), with its arguments"
        raise ApplicationError(
            f"{target} takes {has}, an application takes two (PEP 3333); "
            f"where it makes the application, say {call}"
        )
    if takes == optional and code.co_name in FACTORIES:
        raise ApplicationError(
            f"{target} can be called without arguments, and its name says that it makes an "
            f"application; say {target}()"
        )


def refuse_asgi(application: object, target: str, mode: str = "") -> None:
    """Raise an ApplicationError if it is an ASGI application, and the mode runs only WSGI."""
    if mode == ASGI_MODE or not is_asgi(application):
        return
    raise ApplicationError(f"{target} is an ASGI application, which only mode = {ASGI_MODE} serves")


def is_asgi(application: object) -> bool:
    """Tell whether an application takes scope, receive and send, or is a coroutine."""
    called: Any = application
    while hasattr(called, "func") and hasattr(called, "keywords"):  # functools.partial
        called = called.func
    functions = [called]
    if isinstance(called, type):
        functions = [called.__init__, called.__call__]  # type: ignore[misc]
    elif not hasattr(called, "__code__"):
        functions = [type(called).__call__]
    for function in functions:
        code = getattr(function, "__code__", None)
        if code is None:
            continue
        arguments = code.co_varnames[: code.co_argcount]
        arguments = arguments[1:] if arguments[:1] == ("self",) else arguments
        if code.co_flags & _ASYNC or arguments[:3] == ("scope", "receive", "send"):
            return True
    return False


TARGET = Target(lambda rest: load(rest, ""), CALLABLE)
