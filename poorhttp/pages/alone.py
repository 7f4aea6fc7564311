"""Whether a page stands alone: without a layout, and with no use for what Mako would tell it.

Before it renders a page, Mako makes the namespace `self` of it, and walks up to the outermost of
its layouts. Where nobody asks for that it is a third of the work around a small page. What a page
includes is rendered in a scope of its own, for which Mako makes all of it.
"""

from __future__ import annotations

import ast

#: The names that Mako puts in the scope of a page when it begins.
_TOLD = ("self", "local", "parent", "next")

# What Mako's own code does with the scope, but for `get`, in no need of those.
_HARMLESS = (
    *("writer", "caller_stack", "_locals"),
    *("_push_writer", "_pop_buffer_and_writer", "_push_buffer", "_pop_buffer"),
)

#: The scope, and what reaches names that do not stand in the page.
_SUSPECT = ("context", "eval", "exec", "locals", "vars")


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
