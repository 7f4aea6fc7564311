"""Compiler of pages, to code with the line numbers of the page.

Mako makes a Python module of a template, with a table of line numbers. These are written into the
syntax tree before it is compiled, with the page as the file name. So every traceback shows the
page, also one of a request that takes too long, and one of a crash.
"""

from __future__ import annotations

import ast
from types import CodeType

from mako import codegen, exceptions
from mako.lexer import Lexer
from mako.template import ModuleInfo

from poorhttp.plugins.apps.pages.optimize import join_writes, stands_alone

# Names that no page uses: one that redefined them would write values unescaped.
_ESCAPE = "__M_escape"
_FILL = "__M_fill"
_INCLUDE = "__M_include"
_IMPORTS = [
    f"from poorhttp._core import escape as {_ESCAPE}, fill as {_FILL}",
    f"from poorhttp.plugins.apps.pages.include import include as {_INCLUDE}",
]

#: The name in a page's module that says whether the page stands alone (see `optimize`).
ALONE = "__M_alone"


class PageError(Exception):
    """A page cannot be compiled.

    Attributes:
        file: path of the page.
        line: number of the wrong line.
        message: what is wrong in it.
    """

    def __init__(self, file: str, line: int, message: str) -> None:
        super().__init__(f"{file}:{line}: {message}")
        self.file = file
        self.line = line
        self.message = message


def compile_page(source: bytes, uri: str, file: str) -> CodeType:
    """Return the code of a page's module, without running any of it.

    Args:
        source: the text, in UTF-8 unless a `## -*- coding` line says otherwise.
        uri: name of the page below its folder, from which relative names count.
        file: path of the page.

    Raises:
        PageError: the text is not a page.
    """
    try:
        lexer = Lexer(source, file, input_encoding="utf-8")
        text = codegen.compile(
            lexer.parse(),
            uri,
            file,
            default_filters=[_ESCAPE],
            buffer_filters=(),
            imports=_IMPORTS,
            source_encoding=lexer.encoding,
            generate_magic_comment=False,
            reserved_names=codegen.RESERVED_NAMES,
        )
    except (exceptions.SyntaxException, exceptions.CompileException) as error:
        raise PageError(file, error.lineno or 1, _message(error)) from None
    except exceptions.MakoException as error:
        raise PageError(file, 1, str(error)) from None
    lines = _lines(text)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        line = lines[min(error.lineno or 1, len(lines)) - 1]
        raise PageError(file, line, _message(error)) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _escape_once(node)
            _include_fast(node)
        if (number := getattr(node, "lineno", None)) is not None:
            # No columns: they would be those of the module.
            place = {"col_offset": -1, "end_col_offset": -1}
            vars(node).update(place, lineno=lines[number - 1], end_lineno=lines[number - 1])
    join_writes(tree, _ESCAPE, _FILL)
    tree.body += ast.parse(f"{ALONE} = {stands_alone(tree, _INCLUDE)}").body
    try:
        return compile(tree, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise PageError(file, error.lineno or 1, _message(error)) from None


def _escape_once(call: ast.Call) -> None:
    """Apply the filters `h` and `u`, if a page names them, instead of the default escaping.

    Mako applies them in addition: `&` would become `&amp;amp;`.
    """
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="filters"), attr=named),
            args=[ast.Call(func=ast.Name(id=name) as escape) as inner],
        ) if name == _ESCAPE:
            if named == "html_escape":
                call.func, call.args = escape, inner.args
            elif named == "url_escape":
                escape.id = "str"


def _include_fast(call: ast.Call) -> None:
    """Include parts by `poorhttp.plugins.apps.pages.include`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="runtime"), attr="_include_file")):
            call.func = ast.copy_location(ast.Name(_INCLUDE, ast.Load()), call.func)


def _lines(text: str) -> list[int]:
    """Return the page's line for each line of the module."""
    known: dict[int, int] = ModuleInfo.get_module_source_metadata(text)["line_map"]
    lines = []
    current = 1
    for number in range(1, text.count("\n") + 2):
        current = known.get(number, current) or 1
        lines.append(current)
    return lines


def _message(error: Exception) -> str:
    """Return the message of an error, without its place."""
    cause = error if isinstance(error, SyntaxError) else error.__cause__
    if isinstance(cause, SyntaxError):
        return f"{type(cause).__name__}: {cause.msg}"
    return str(error).partition(" in file '")[0]
