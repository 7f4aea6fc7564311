"""Finds the application, or the factory function that returns it, in a Python file."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from poorhttp.plugins.discovery.source.python import Source, Sources, last_name
from poorhttp.targets.wsgi import DEFAULTS, FACTORIES

APPLICATION = "an application"
FLASK = "a Flask application"
BOTTLE = "a Bottle application"
BOTTLE_DEFAULT = "Bottle's default application"
ASGI = "an ASGI application"

#: Functions and classes that make an application.
MAKERS = {
    "APIFlask": FLASK,
    "Bottle": BOTTLE,
    "Eve": FLASK,
    "FastAPI": ASGI,
    "Flask": FLASK,
    "Litestar": ASGI,
    "ProtocolTypeRouter": ASGI,
    "Quart": ASGI,
    "Sanic": ASGI,
    "Starlette": ASGI,
    "default_app": BOTTLE,
    "get_asgi_application": ASGI,
    "get_wsgi_application": "a Django application",
    "http_app": ASGI,
    "make_wsgi_app": "a Pyramid application",
    "sse_app": ASGI,
    "streamable_http_app": ASGI,
}

#: Packages of which everything that is called makes an ASGI application.
ASGI_PACKAGES = ("blacksheep", "channels", "fastapi", "litestar", "quart", "sanic", "starlette")

#: Libraries that programs have an `app` of which is no WSGI application: command lines, windows,
#: queues, chats.
OTHER_LIBRARIES = {
    *(
        "argparse",
        "celery",
        "cleo",
        "click",
        "cyclopts",
        "dramatiq",
        "huey",
        "modal",
        "rq",
        "typer",
    ),
    *("customtkinter", "gi", "kivy", "kivymd", "textual", "tkinter", "toga", "wx"),
    *("PyQt5", "PyQt6", "PySide2", "PySide6", "pygame", "slack_bolt", "streamlit", "ursina"),
}

#: Functions of Bottle that add to its default application.
BOTTLE_ROUTES = {"delete", "error", "get", "hook", "mount", "patch", "post", "put", "route"}

#: Certainty, without running the file.
SURE, MAYBE, NOT = 2, 1, 0

#: Longest chain of functions and classes that is followed from a call to what it makes.
MAX_DEPTH = 4

#: File and name of a definition.
Origin = tuple[str, str]


class Candidate:
    """An expression of a file that can be served.

    Attributes:
        expression: the part of the target after the colon; empty for Bottle's default application.
        what: description, for messages.
        certainty: that it is an application.
        origin: file and name of its definition.
        factory: file and name of the function of the project that has made it, or that it calls.
    """

    def __init__(
        self,
        expression: str,
        what: str,
        certainty: int,
        origin: Origin,
        factory: Origin | None = None,
    ) -> None:
        self.expression = expression
        self.what = what
        self.certainty = certainty
        self.origin = origin
        self.factory = factory

    @property
    def is_call(self) -> bool:
        """Whether it is a call of a factory, rather than a value."""
        return self.expression.endswith(")")


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
    function that needs no arguments; the only object of a class that takes what WSGI or ASGI
    passes; the default application of Bottle.

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
    others: dict[Origin, Candidate] = {}
    for name in [*source.values, *source.functions]:
        candidate = _of_name(sources, source, name, choice)
        if candidate and candidate.certainty == SURE:
            others.setdefault(candidate.origin, candidate)
    choice.candidates = list(others.values())
    if not others:
        choice.candidates = list(_factories(sources, source, choice))[:1]
    choice.candidates = choice.candidates or list(_objects(sources, source))
    if not choice.candidates and _uses_bottle_default(source):
        origin = os.path.abspath(source.file), ""
        choice.candidates = [Candidate("", BOTTLE_DEFAULT, SURE, origin)]
    return choice


def likely(sources: Sources, source: Source) -> list[Candidate]:
    """Return values named application or app that may be applications, by how they are made.

    Weaker than `choose`: for a module in which nobody expects one.
    """
    choice = Choice()
    named = [_of_name(sources, source, name, choice) for name in DEFAULTS]
    return [each for each in named if each and _is_likely(sources, source, each.expression)][:1]


def _is_likely(sources: Sources, source: Source, name: str) -> bool:
    """Whether what a name stands for could be an application."""
    defined, original = sources.origin(source, name)
    if original in defined.functions:
        return _passes_start_response(defined.functions[original])
    value = defined.values.get(original)
    if value is None:
        module, what = defined.imports.get(original, (0, "", ""))[1:]
        return what in DEFAULTS and module.partition(".")[0] not in {*OTHER_LIBRARIES, "flask"}
    if isinstance(value, ast.Lambda):
        return len(value.args.args) == 2
    head = value
    while isinstance(head, (ast.Attribute, ast.Call, ast.Subscript)):
        head = head.func if isinstance(head, ast.Call) else head.value
    if not isinstance(head, ast.Name):
        return False
    if head.id in defined.imports:
        return defined.imports[head.id][1].partition(".")[0] not in OTHER_LIBRARIES
    if head.id in defined.classes:
        return _is_callable_class(sources, defined, head.id)
    return defined.has(head.id) or bool(defined.stars)


def _is_callable_class(sources: Sources, source: Source, name: str, depth: int = MAX_DEPTH) -> bool:
    """Whether objects of a class of the project can be called; also if its bases are unknown."""
    defined, original = sources.origin(source, name)
    found = defined.classes.get(original)
    if found is None or depth == 0:
        return True
    if any(isinstance(each, ast.FunctionDef) and each.name == "__call__" for each in found.body):
        return True
    bases = [base for base in found.bases if last_name(base) != "object"]
    return any(
        not isinstance(base, ast.Name) or _is_callable_class(sources, defined, base.id, depth - 1)
        for base in bases
    )


def _passes_start_response(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function calls its second argument, or passes it on."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    if len(arguments) < 2:
        return function.args.vararg is not None
    second = arguments[1].arg
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and any(
            isinstance(each, ast.Name) and each.id == second for each in (node.func, *node.args)
        ):
            return True
    return False


def _of_name(sources: Sources, source: Source, name: str, choice: Choice) -> Candidate | None:
    if not source.has(name):
        return None
    defined, original = sources.origin(source, name)
    origin = os.path.abspath(defined.file), original
    if original in defined.functions:
        function = defined.functions[original]
        if isinstance(function, ast.AsyncFunctionDef):
            if len(required(function)) == 3:
                return Candidate(name, ASGI, SURE, origin)
            choice.remarks.append(
                f"{source.file}: {name} is a coroutine function, and none of ASGI"
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
    maker, factory = _made_by(sources, defined, value)
    what = MAKERS.get(maker)
    if what is None and original in DEFAULTS:
        # Middleware around an application: `app = ProxyFix(create_app())`, `app = ProxyFix(site)`.
        for argument in value.args:
            if isinstance(argument, ast.Call):
                inner, factory = _made_by(sources, defined, argument)
                if inner in MAKERS or factory is not None:
                    what = APPLICATION
                    break
            elif isinstance(argument, ast.Name) and argument.id not in DEFAULTS:
                site = _of_name(sources, defined, argument.id, Choice())
                if site is not None and site.certainty == SURE and not _is_other(defined, value):
                    what, factory = APPLICATION, site.factory
                    break
    certainty = SURE if what or (factory is not None and factory[1] in FACTORIES) else MAYBE
    return Candidate(name, what or APPLICATION, certainty, origin, factory)


def _made_by(
    sources: Sources, source: Source, call: ast.Call, depth: int = MAX_DEPTH
) -> tuple[str, Origin | None]:
    """Return the maker that a call leads to, and the function of the project that is called.

    A call leads to a maker if the called name is a maker, a class derived from a maker, or a
    function of the project that calls a maker. Otherwise the result is `("", None)`.
    """
    made = last_name(call.func)
    if made in MAKERS:
        return made, None
    defined, name = sources.definition(source, call.func)
    if name in defined.classes:
        return _maker_of_class(sources, defined, name, depth), None
    if name in defined.functions:
        factory = os.path.abspath(defined.file), name
        return _maker_in(sources, defined, defined.functions[name], depth - 1), factory
    return "", None


def _maker_of_class(sources: Sources, source: Source, name: str, depth: int) -> str:
    """Return the maker that a class of the project is derived from; empty if there is none."""
    for base in source.classes[name].bases if depth else ():
        if last_name(base) in MAKERS:
            return last_name(base)
        defined, original = sources.definition(source, base)
        if original in defined.classes:
            found = _maker_of_class(sources, defined, original, depth - 1)
            if found:
                return found
    return ""


def _maker_in(
    sources: Sources,
    source: Source,
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    depth: int = MAX_DEPTH,
) -> str:
    """Return the maker that a function calls, perhaps by a class or a function of the project."""
    names = [last_name(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    direct = next((name for name in names if name in MAKERS), "")
    if direct:
        return direct
    for call in _returned_calls(function) if depth > 0 else ():
        found, _ = _made_by(sources, source, call, depth - 1)
        if found in MAKERS:
            return found
    return ""


def _returned_calls(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Call]:
    """Yield the calls whose results a function returns."""
    nodes = list(ast.walk(function))
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    names = {value.id for value in returned if isinstance(value, ast.Name)}
    for value in returned:
        if isinstance(value, ast.Call):
            yield value
    for node in nodes:
        targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        made = getattr(node, "value", None)
        if isinstance(made, ast.Call) and any(
            isinstance(target, ast.Name) and target.id in names for target in targets
        ):
            yield made


def _is_other(source: Source, call: ast.Call) -> bool:
    """Whether a call is one of a library whose `app` is no WSGI application."""
    root = ast.unparse(call.func).partition(".")[0]
    return source.imports.get(root, (0, "", ""))[1].partition(".")[0] in OTHER_LIBRARIES


def _objects(sources: Sources, source: Source) -> Iterator[Candidate]:
    """Yield objects of classes of the project whose `__call__` takes what WSGI or ASGI passes."""
    for name, value in source.values.items():
        if not isinstance(value, ast.Call):
            continue
        defined, original = sources.definition(source, value.func)
        found = defined.classes.get(original)
        for each in found.body if found is not None else ():
            if getattr(each, "name", "") != "__call__":
                continue
            what = ""
            if isinstance(each, ast.AsyncFunctionDef):
                what = ASGI if len(required(each)) == 4 else ""
            elif isinstance(each, ast.FunctionDef):
                names = [argument.arg.lower() for argument in each.args.args[1:]]
                is_usual = len(names) == 2 and "env" in names[0] and "start" in names[1]
                what = APPLICATION if is_usual else ""
            if what:
                yield Candidate(name, what, SURE, (os.path.abspath(source.file), name))


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
        maker = _maker_in(sources, defined, function)
        needed = required(function)
        if needed:
            wanted = ", ".join(needed)
            choice.remarks.append(f"{source.file}: {name}() needs {wanted}: give it literals")
        else:
            what = f"a function that makes {MAKERS.get(maker, APPLICATION)}"
            origin = os.path.abspath(defined.file), original
            yield Candidate(f"{name}()", what, SURE, origin, origin)


def _uses_bottle_default(source: Source) -> bool:
    """Whether a file adds a route to the default application of Bottle."""
    functions = {
        name
        for name, (_, module, what) in source.imports.items()
        if module == "bottle" and what in BOTTLE_ROUTES
    }
    if any(module == "bottle" for _, module in source.stars):
        functions |= BOTTLE_ROUTES - source.functions.keys()
    modules = {
        name
        for name, (_, module, what) in source.imports.items()
        if (module, what) == ("bottle", "")
    }
    called = [call.func for call in _calls_at_import(source)]
    return any(
        (isinstance(each, ast.Name) and each.id in functions)
        or (
            isinstance(each, ast.Attribute)
            and each.attr in BOTTLE_ROUTES
            and isinstance(each.value, ast.Name)
            and each.value.id in modules
        )
        for each in called
    )


def runs_bottle(source: Source) -> bool:
    """Whether a file calls Bottle's `run` when it is imported."""
    return any(last_name(call.func) == "run" for call in _calls_at_import(source))


def _calls_at_import(source: Source) -> Iterator[ast.Call]:
    """Yield the calls that are statements of a file, or decorators of its functions and classes."""
    for statement in source.statements():
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for decorator in statement.decorator_list:
                if isinstance(decorator, ast.Call):
                    yield decorator
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            yield call
            if isinstance(call.func, ast.Call):
                # route("/")(function)
                yield call.func


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


def is_asgi(sources: Sources, source: Source, expression: str, depth: int = MAX_DEPTH) -> bool:
    """Tell whether a name or a call in a file is an ASGI application, as far as its source says."""
    name, is_call, _ = expression.partition("(")
    defined, original = sources.origin(source, name)
    function, value = defined.functions.get(original), defined.values.get(original)
    if function is not None and is_call:
        return MAKERS.get(_maker_in(sources, defined, function)) == ASGI
    if function is not None:
        return _takes_scope(function)
    if (found := defined.classes.get(original)) is not None:
        return _has_scope(found, "__init__")
    return isinstance(value, ast.Call) and _makes_asgi(sources, defined, value, depth - 1)


def _takes_scope(function: ast.stmt) -> bool:
    """Whether a function can only be called by ASGI: a coroutine, or by the names it takes."""
    if not isinstance(function, ast.FunctionDef):
        return isinstance(function, ast.AsyncFunctionDef)
    return required(function)[-3:] == ["scope", "receive", "send"]


def _has_scope(found: ast.ClassDef, name: str) -> bool:
    """Whether a method of a class takes what ASGI passes."""
    return any(_takes_scope(each) for each in found.body if getattr(each, "name", "") == name)


def _makes_asgi(sources: Sources, source: Source, call: ast.Call, depth: int) -> bool:
    """Whether a call makes an ASGI application, or one around another that it is given."""
    maker, _ = _made_by(sources, source, call)
    root, _, rest = ast.unparse(call.func).partition(".")
    dotted = ".".join(filter(None, [*source.imports.get(root, (0, "", root))[1:], rest]))
    if MAKERS.get(maker) or dotted.startswith("a2wsgi.ASGI"):
        return MAKERS.get(maker) == ASGI
    if dotted.partition(".")[0] in ASGI_PACKAGES or "asgi" in dotted.lower():
        return True
    defined, name = sources.definition(source, call.func)
    made = defined.classes.get(name)
    if made is not None and _has_scope(made, "__call__"):
        return True
    given = [*call.args, *(each.value for each in call.keywords)]
    return depth > 0 and any(
        (isinstance(each, ast.Call) and _makes_asgi(sources, source, each, depth - 1))
        or (isinstance(each, ast.Name) and is_asgi(sources, source, each.id, depth - 1))
        for each in given
    )
