"""Finds the WSGI application, or the factory function that returns it, in a Python file."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from poorhttp.targets.source.python import Source, Sources, last_name
from poorhttp.targets.wsgi import DEFAULTS, FACTORIES

#: Functions and classes that make a WSGI application.
MAKERS = {
    "APIFlask": "a Flask application",
    "Bottle": "a Bottle application",
    "Eve": "a Flask application",
    "Flask": "a Flask application",
    "default_app": "a Bottle application",
    "get_wsgi_application": "a Django application",
    "make_wsgi_app": "a Pyramid application",
}

#: Functions and classes that make an ASGI application, which is not served.
ASGI_MAKERS = (
    "Blacksheep",
    "FastAPI",
    "Litestar",
    "Quart",
    "Sanic",
    "Starlette",
    "get_asgi_application",
)

#: Certainty, without running the file.
SURE, MAYBE, NOT = 2, 1, 0

APPLICATION = "an application"


class Candidate:
    """An expression of a file that can be served.

    Attributes:
        expression: the part of the target after the colon.
        what: description, for messages.
        certainty: that it is an application.
        origin: file and name of its definition.
    """

    def __init__(self, expression: str, what: str, certainty: int, origin: tuple[str, str]) -> None:
        self.expression = expression
        self.what = what
        self.certainty = certainty
        self.origin = origin


class Choice:
    """The candidates of a file.

    Attributes:
        candidates: more than one if the file is ambiguous.
        remarks: messages about callables that cannot be served.
    """

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.remarks: list[str] = []


def choose(sources: Sources, source: Source, certainty: int = MAYBE) -> Choice:
    """Choose as the target `wsgi` and Flask do, in this order.

    A value named application or app; the only certain application of another name; a factory
    function that needs no arguments.

    Args:
        sources: of the project.
        source: the file.
        certainty: required of a value named application or app.
    """
    choice = Choice()
    named = [_of_name(sources, source, name, choice) for name in DEFAULTS]
    usual = [candidate for candidate in named if candidate and candidate.certainty >= certainty]
    if usual:
        choice.candidates = usual[:1]
        return choice
    others: dict[tuple[str, str], Candidate] = {}
    for name in [*source.values, *source.functions]:
        candidate = _of_name(sources, source, name, choice)
        if candidate and candidate.certainty == SURE:
            others.setdefault(candidate.origin, candidate)
    choice.candidates = list(others.values())
    if not others:
        choice.candidates = list(_factories(sources, source, choice))[:1]
    return choice


def _of_name(sources: Sources, source: Source, name: str, choice: Choice) -> Candidate | None:
    if not source.has(name):
        return None
    defined, original = sources.origin(source, name)
    origin = os.path.abspath(defined.file), original
    if original in defined.functions:
        function = defined.functions[original]
        if isinstance(function, ast.AsyncFunctionDef):
            choice.remarks.append(
                f"{source.file}: {name} is a coroutine function, which WSGI cannot call"
            )
            return None
        certainty = _is_application(function)
        return Candidate(name, APPLICATION, certainty, origin) if certainty else None
    if original not in defined.values:
        # Imported from a library, or bound in a way that cannot be seen.
        return Candidate(name, APPLICATION, MAYBE, origin)
    value = defined.values[original]
    if not isinstance(value, ast.Call):
        could_be = isinstance(value, (ast.Attribute, ast.Name, ast.Subscript, ast.Lambda))
        return Candidate(name, APPLICATION, MAYBE, origin) if could_be else None
    made = last_name(value.func)
    if made in ASGI_MAKERS:
        choice.remarks.append(_asgi_remark(source, name, made))
        return None
    what = MAKERS.get(made) or MAKERS.get(_made_by(sources, defined, value.func))
    return Candidate(name, what or APPLICATION, SURE if what else MAYBE, origin)


def _made_by(sources: Sources, source: Source, function: ast.expr) -> str:
    """Return the maker that a class of the project is derived from, or a function of it calls."""
    if not isinstance(function, ast.Name):
        return ""
    defined, name = sources.origin(source, function.id)
    if name in defined.classes:
        bases = [last_name(base) for base in defined.classes[name].bases]
        return next((base for base in bases if base in MAKERS), "")
    if name in defined.functions:
        return _maker_in(defined.functions[name])
    return ""


def _maker_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    names = [last_name(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    foreign = next((name for name in names if name in ASGI_MAKERS), "")
    return next((name for name in names if name in MAKERS), foreign)


def _is_application(function: ast.FunctionDef) -> int:
    """Return the certainty that a function is an application, by its two arguments' names."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if len(required(function)) > 2 or (len(names) < 2 and function.args.vararg is None):
        return NOT
    usual = len(names) > 1 and "env" in names[0].lower() and "start" in names[1].lower()
    return SURE if usual else MAYBE


def _factories(sources: Sources, source: Source, choice: Choice) -> Iterator[Candidate]:
    for name in FACTORIES:
        defined, original = sources.origin(source, name)
        function = defined.functions.get(original)
        if function is None or isinstance(function, ast.AsyncFunctionDef):
            continue
        maker = _maker_in(function)
        needed = required(function)
        if maker in ASGI_MAKERS:
            choice.remarks.append(_asgi_remark(source, f"{name}()", maker))
        elif needed:
            wanted = ", ".join(needed)
            choice.remarks.append(f"{source.file}: {name}() needs {wanted}: give it literals")
        else:
            what = f"a function that makes {MAKERS.get(maker, APPLICATION)}"
            yield Candidate(f"{name}()", what, SURE, (os.path.abspath(defined.file), original))


def required(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the arguments that a function cannot be called without."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    needed = positional[: len(positional) - len(arguments.defaults)]
    needed += [
        argument
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    return [argument.arg for argument in needed]


def _asgi_remark(source: Source, name: str, made: str) -> str:
    return f"{source.file}: {name} is an application for ASGI ({made}), which is not served"
