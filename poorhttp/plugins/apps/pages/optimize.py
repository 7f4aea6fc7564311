"""Optimises the code that Mako generates for a page: fewer calls, fewer lookups.

Mako writes each text and each value by a call of its own; in a table that is most of the work.
`join_writes` replaces a run of such calls by one of `poorhttp._core.fill`, without a change in the
order, the text, or the line number of an error.

Before it renders a page, Mako makes the namespace `self`, and follows the chain of its layouts; for
each included part it does that again. In a small page that is a third of the work. A page *stands
alone* if it certainly uses nothing of it: `stands_alone`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: Characters of a text that keeps its own call, because copying it would cost more.
_LONG = 500

# Expressions made only of these call no function, which could write to the page itself.
_SILENT = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.JoinedStr),
    *(ast.FormattedValue, ast.Dict, ast.expr_context, ast.operator, ast.unaryop, ast.boolop),
    *(ast.cmpop,),
)


#: Names of namespaces that Mako puts into the scope of a page.
_NAMESPACES = ("self", "local", "parent", "next")

# Attributes of the scope, beside `get`, that Mako's own code uses without them.
_HARMLESS = (
    *("writer", "caller_stack", "_locals"),
    *("_push_writer", "_pop_buffer_and_writer", "_push_buffer", "_pop_buffer"),
)

#: The scope, and functions that reach names which the page does not mention.
_SUSPECT = ("context", "eval", "exec", "locals", "vars")


def join_writes(tree: ast.Module, escape: str, fill: str) -> None:
    """Join neighbouring writes in the tree of a page's module, which has the page's line numbers.

    Args:
        tree: the module.
        escape: name of the function `escape` in it.
        fill: name of the function `fill`.
    """
    if _catches(tree):
        # A page that catches an error goes on, with everything written before the failed value.
        return
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                body[:] = list(_joined(body, escape, fill))


def _catches(tree: ast.Module) -> bool:
    for statement in tree.body:
        # Mako's own function, which catches a KeyError.
        if not (isinstance(statement, ast.FunctionDef) and statement.name == "_mako_get_namespace"):
            for node in ast.walk(statement):
                if isinstance(node, ast.With | ast.AsyncWith) or getattr(node, "handlers", None):
                    return True
    return False


def _joined(body: list[ast.stmt], escape: str, fill: str) -> Iterator[ast.stmt]:
    run = _JoinedWrite(fill)
    for statement in body:
        part = _part(statement, escape)
        if part is None:
            yield from run.statements()
            yield statement
            run = _JoinedWrite(fill)
            continue
        if not run.takes(part, statement.lineno):
            yield from run.statements()
            run = _JoinedWrite(fill)
        run.add(part, statement)
    yield from run.statements()


def _part(statement: ast.stmt, escape: str) -> ast.expr | None:
    """Return what a statement writes: a text, or the call that escapes a value."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="__M_writer"), args=[written])):
            match written:
                case ast.Constant(value=str(text)) if len(text) < _LONG:
                    return written
                case ast.Call(func=ast.Name(id=name), args=[value], keywords=[]) if name == escape:
                    return None if isinstance(value, ast.Starred) else written
    return None


class _JoinedWrite:
    """A run of writes that become one."""

    def __init__(self, fill: str) -> None:
        self._fill = fill
        self._writes: list[ast.stmt] = []
        # A text, a value, a text, and so on.
        self._parts: list[ast.expr] = []
        self._line: int | None = None

    def takes(self, part: ast.expr, line: int) -> bool:
        """Whether a part of a line of the page may join this run.

        A value whose expression may write must be the first. All values must be of one line, so
        that an error has the right one.
        """
        if not self._writes or not isinstance(part, ast.Call):
            return True
        silent = all(isinstance(node, _SILENT) for node in ast.walk(part.args[0]))
        return silent and self._line in (None, line)

    def add(self, part: ast.expr, write: ast.stmt) -> None:
        """Add a part, and the statement that writes it."""
        self._writes.append(write)
        if isinstance(part, ast.Call):
            self._line = write.lineno
            if len(self._parts) % 2 == 0:
                self._parts.append(ast.copy_location(ast.Constant(""), part))
            self._parts.append(part.args[0])
        elif len(self._parts) % 2 == 0:
            self._parts.append(part)
        else:
            # Two texts in a row, where a line of the page ends with a backslash.
            text = ast.literal_eval(self._parts[-1]) + ast.literal_eval(part)
            self._parts[-1] = ast.copy_location(ast.Constant(text), part)

    def statements(self) -> list[ast.stmt]:
        """Return the statements that replace the run."""
        if len(self._writes) == 1 or self._line is None:
            return self._writes
        place = {"lineno": self._line, "end_lineno": self._line}
        place |= {"col_offset": -1, "end_col_offset": -1}
        filled = ast.Call(ast.Name(self._fill, ast.Load(), **place), self._parts, [], **place)
        writer = ast.Name("__M_writer", ast.Load(), **place)
        return [ast.Expr(ast.Call(writer, [filled], [], **place), **place)]


def stands_alone(tree: ast.Module, include: str) -> bool:
    """Whether the module of a page certainly uses no namespace.

    Args:
        tree: the module.
        include: name of the function `include` in it.
    """
    harmless: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="__M_locals_builtin")], value=builtin):
                # Mako uses it to find the names that the page assigns.
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
            ) if name not in _NAMESPACES:
                harmless.add(scope)
            case ast.Call(func=ast.Name(id=name), args=[ast.Name(id="context") as scope, *_]) if (
                name == include or name.startswith("render_")
            ):
                harmless.add(scope)
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return not any(name.id in _SUSPECT and name not in harmless for name in names)
