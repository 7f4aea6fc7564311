"""The options of a reactor: Python's classes, Rust's structs and the stub have the same fields."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from poorhttp import _core, logs
from poorhttp.config.settings import Settings
from poorhttp.worker import options
from poorhttp.worker.options import StaticOptions, WorkerOptions, worker_options


class Plain(ast.NodeTransformer):
    """Turns annotations into those of Rust, which does not know what a function takes."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        name = ast.unparse(node.value)
        if name == "Callable":
            return node.value
        return ast.Name("object") if name == "ContextVar" else self.generic_visit(node)  # type: ignore[return-value]


def plain(annotation: str) -> str:
    text = ast.unparse(Plain().visit(ast.parse(annotation)))
    # None is an object.
    return text.replace("object | None", "object")


def made() -> WorkerOptions:
    logs.error_log.open(Settings())
    return worker_options(Settings(), [], {}, error_log=logs.error_log.opened)


def reactor(given: object) -> None:
    _core.Reactor([], given)


@pytest.mark.parametrize("declared", [WorkerOptions, StaticOptions])
def test_both_languages_have_the_same_fields_with_the_same_types(declared: type) -> None:
    ours = {name: plain(text) for name, text in declared.__annotations__.items()}
    theirs = dict(_core.option_fields()[declared.__name__])
    if declared is WorkerOptions:
        for_plugins = {name: theirs.pop(name) for name in options.PLUGIN_FIELDS}
        names = "tls https_redirect hsts compression http2 auto_threads lazy_environ"
        assert set(for_plugins) == {*names.split()}
        # A plug-in may be left out.
        assert all(each == "object" or each.endswith(" | None") for each in for_plugins.values())
    assert ours == theirs


def test_the_stub_takes_one_object() -> None:
    tree = ast.parse(Path(_core.__file__).with_name("_core.pyi").read_text())
    declared = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    init = declared["Reactor"].body[1]
    assert isinstance(init, ast.FunctionDef)
    assert [ast.unparse(each.annotation) for each in init.args.args[1:] if each.annotation] == [
        "Sequence[tuple[int, dict[str, Any], str, bool]]",
        "object",
    ]
    assert "`poorhttp.worker.options.WorkerOptions`" in (ast.get_docstring(init) or "")
    assert not init.args.kwonlyargs


def test_values_of_all_options_are_those_of_the_settings() -> None:
    given, settings = made(), Settings()
    # What is given has another type than the option of the same name.
    same = [name for name in WorkerOptions.__annotations__ if hasattr(Settings, name)]
    others = {"access_log", "error_log", "temp_dir"}
    assert others < set(same)
    for name in set(same) - others:
        assert getattr(given, name) == settings.value(name), name
    reactor(given)


WRONG = [
    ("max_body", "x", r"WorkerOptions.max_body: 'x' \(str\) should be from 0 to \d+, int"),
    ("max_headers", True, r"max_headers: True \(bool\) should be from 0"),
    ("https_redirect", 70_000, r"70000 \(int\) should be from 0 to 65535, int; all of it .* None$"),
    ("trusted_proxies", "::1", r"trusted_proxies: '::1' \(str\) should be Sequence\[str\]$"),
    ("health", 5, r"health: 5 \(int\) should be str; all of it should be str \| None"),
    ("refork", (1, 2), r"refork: 2 \(int\) should be Callable; all of it should be tuple\[int, "),
    ("fd_handoff", (1, 2), r"fd_handoff: \(1, 2\) \(tuple\) should be tuple\[int, int, int\]"),
    ("error_log", None, r"error_log: None \(NoneType\) should be LogWriter"),
    ("request_timeout", "1", r"request_timeout: '1' \(str\) should be float"),
    (
        *("static_files", 5),
        r"static_files: StaticOptions.static_index: the field is missing; it .* str",
    ),
    (
        *("static_files", object.__new__(StaticOptions)),
        r"StaticOptions.static_\w+: the field is missing; .* (str|bool|Sequence)",
    ),
    ("max_bodi", 1, r"WorkerOptions.max_bodi: the reactor has no such field"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_a_wrong_value_is_refused(name: str, value: object, message: str) -> None:
    given = made()
    given.__dict__[name] = value
    with pytest.raises(TypeError, match=message):
        reactor(given)


FIELDS = _core.option_fields()["WorkerOptions"]


@pytest.mark.parametrize(("name", "kind"), FIELDS)
def test_each_field_that_is_missing_is_refused(name: str, kind: str) -> None:
    with_it = made()
    given = type("Given", (), {})()
    given.__dict__ = {other: getattr(with_it, other) for other, _ in FIELDS if other != name}
    message = f"WorkerOptions.{name}: the field is missing; it should be {kind}"
    with pytest.raises(TypeError, match=re.escape(message)):
        reactor(given)


@pytest.mark.parametrize("name", ["max_body", "routes", "error_log"])
def test_a_plug_in_gives_nothing_that_the_server_gives(name: str) -> None:
    with pytest.raises(TypeError, match=f"WorkerOptions.{name}: a plug-in gives it"):
        options.worker_options(Settings(), [], {name: 1}, error_log=None)
