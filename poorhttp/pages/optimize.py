"""Two ways to make pages faster: neighbouring writes become one, and no namespaces for some.

Mako writes each text and each value by a call of its own; in a table that is most of the work. A
run of them is put together by one call of `poorhttp._core.fill`, in the order in which it was, and
so that what is written and the line of each error stay what they were.

Before it renders a page, Mako makes the namespace `self` of it, and walks up to the outermost of
its layouts. Where nobody asks for that it is a third of the work around a small page. What a page
includes is rendered in a scope of its own, for which Mako makes all of it.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Characters of a text that is written by itself: to copy it would cost more than a call.
_LONG = 500

# Expressions of these only run no function that could itself write to the page.
_SILENT = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr),
    *(ast.FormattedValue, ast.Dict, ast.expr_context, ast.operator, ast.unaryop, ast.boolop),
    *(ast.cmpop,),
)


#: The names that Mako puts in the scope of a page when it begins.
_TOLD = ("self", "local", "parent", "next")

# What Mako's own code does with the scope, but for `get`, in no need of those.
_HARMLESS = (
    *("writer", "caller_stack", "_locals"),
    *("_push_writer", "_pop_buffer_and_writer", "_push_buffer", "_pop_buffer"),
)

#: The scope, and what reaches names that do not stand in the page.
_SUSPECT = ("context", "eval", "exec", "locals", "vars")


def join_writes(tree: ast.Module, escape: str, fill: str) -> None:
    """Change the tree of a page's module, which has the line numbers of the page already.

    Args:
        tree: the module.
        escape: the name that the function `escape` has in it.
        fill: that of `fill`.
    """
    if _catches(tree):
        # What stands before a value that raises an error is to be seen if the page goes on.
        return
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                body[:] = list(_joined(body, escape, fill))


def _catches(tree: ast.Module) -> bool:
    for statement in tree.body:
        # Mako's own, which asks for a key.
        if not (isinstance(statement, ast.FunctionDef) and statement.name == "_mako_get_namespace"):
            for node in ast.walk(statement):
                if isinstance(node, ast.With | ast.AsyncWith) or getattr(node, "handlers", None):
                    return True
    return False


def _joined(body: list[ast.stmt], escape: str, fill: str) -> Iterator[ast.stmt]:
    run = _Run(fill)
    for statement in body:
        part = _part(statement, escape)
        if part is None:
            yield from run.statements()
            yield statement
            run = _Run(fill)
            continue
        if not run.takes(part, statement.lineno):
            yield from run.statements()
            run = _Run(fill)
        run.add(part, statement)
    yield from run.statements()


def _part(statement: ast.stmt, escape: str) -> ast.expr | None:
    """What a statement writes: a text, or the call by which a value is escaped."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="__M_writer"), args=[written])):
            match written:
                case ast.Constant(value=str(text)) if len(text) < _LONG:
                    return written
                case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]) if name == escape:
                    return None if isinstance(value, ast.Starred) else written
    return None


class _Run:
    """Writes that become one."""

    def __init__(self, fill: str) -> None:
        self._fill = fill
        self._writes: list[ast.stmt] = []
        # Texts and values in turn.
        self._parts: list[ast.expr] = []
        self._line: int | None = None

    def takes(self, part: ast.expr, line: int) -> bool:
        """Whether a part of a line of the page may be written together with what is here.

        A value that may write itself comes first; an error in another is one of the same line.
        """
        if not self._writes or not isinstance(part, ast.Call):
            return True
        silent = all(isinstance(node, _SILENT) for node in ast.walk(part.args[0]))
        return silent and self._line in (None, line)

    def add(self, part: ast.expr, write: ast.stmt) -> None:
        """Add a part, and the statement that has written it."""
        self._writes.append(write)
        if isinstance(part, ast.Call):
            self._line = write.lineno
            if len(self._parts) % 2 == 0:
                self._parts.append(ast.copy_location(ast.Constant(""), part))
            self._parts.append(part.args[0])
        elif len(self._parts) % 2 == 0:
            self._parts.append(part)
        else:
            # Two texts, as where a line of the page ends with a backslash.
            text = ast.literal_eval(self._parts[-1]) + ast.literal_eval(part)
            self._parts[-1] = ast.copy_location(ast.Constant(text), part)

    def statements(self) -> list[ast.stmt]:
        """What they have become."""
        if len(self._writes) == 1 or self._line is None:
            return self._writes
        place = {"lineno": self._line, "end_lineno": self._line}
        place |= {"col_offset": -1, "end_col_offset": -1}
        filled = ast.Call(ast.Name(self._fill, ast.Load(), **place), self._parts, [], **place)
        writer = ast.Name("__M_writer", ast.Load(), **place)
        return [ast.Expr(ast.Call(writer, [filled], [], **place), **place)]


def stands_alone(tree: ast.Module, include: str) -> bool:
    """Whether that is certain of the module of a page, in which a function includes parts."""
    harmless: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="__M_locals_builtin")], value=builtin):
                # With it Mako looks for the names that the page itself assigns.
                harmless.add(builtin)
            case ast.FunctionDef(name="_mako_inherit" | "_mako_generate_namespaces"):
                return False
            case ast.Attribute(value=ast.Name(id="context") as scope, attr=name) if (
                name in _HARMLESS
            ):
                harmless.add(scope)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="context") as scope, attr="get"),
                args=[ast.Constant(value=name), _],
            ) if name not in _TOLD:
                harmless.add(scope)
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id="context") as scope, *_]) if (
                name == include or name.startswith("render_")
            ):
                harmless.add(scope)
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return not any(name.id in _SUSPECT and name not in harmless for name in names)
