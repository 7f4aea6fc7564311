"""Optimised code of template pages and HTML escaping, compared with Mako and markupsafe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import markupsafe
import pytest
from mako.lookup import TemplateLookup
from mako.runtime import Context
from markupsafe import Markup

from poorhttp._core import escape, fill
from poorhttp.plugins.apps.pages.application import Text
from poorhttp.plugins.apps.pages.compiler import ALONE, compile_page
from poorhttp.plugins.apps.pages.folder import Folder
from tests.support.template_pages import write


class Value:
    """Something that a page writes; it fails if it is asked to."""

    def __init__(self, text: str = "<value>", error: type[Exception] | None = None) -> None:
        self.text = text
        self.error = error

    def __str__(self) -> str:
        if self.error:
            raise self.error
        return self.text


NAMES: dict[str, Any] = {
    "name": "<&\"'é☃>",
    "number": 42,
    "large": 10**30,
    "ratio": 0.5,
    "true": True,
    "nothing": None,
    "value": Value(),
    "html": type("Html", (), {"__html__": lambda self: "<b>"})(),
    "rows": [{"a": 1, "b": "<"}, {"a": 2, "b": ">"}],
    "broken": Value(error=LookupError),
}

PARTS = {
    "_part.html": "[${name}${extra}]\n<%page args=\"extra='none'\"/>",
    "_plain.html": "(${name}<%include file='deep/_below.html'/>)<% other = 2 %>",
    "deep/_below.html": "<%include file='/_self.html'/><%include file='/_part.html'/>",
    "_named.html": "<%page args='name, extra=1'/>${name}${extra}",
    "_keyword.html": "<%page args='**named'/>${sorted(named)}",
    "_arguments.html": "${pageargs}",
    "_self.html": '<%def name="f()">${self.uri}</%def>${f()} ${local.uri}',
    "_broken.html": "<p>${name}</p>\n<b>${broken}</b>",
    "_layout.html": '<%block name="title">untitled</%block>: ${self.title()}|${next.body()}|',
    "_defs.html": '<%def name="row(x)"><td>${x}</td>${caller.body()}</%def>',
}

#: Pages, and whether each stands alone.
PAGES = {
    "text": ("only text", True),
    "values": ("${name} ${number}${large}\n${ratio}${true} ${nothing}${value}${html}", True),
    "literal": ("${'<'} a ${'<' | n} b ${(1, 2)} c ${[name]}", True),
    "long": ("a" * 600 + "${number}" + "b" * 600 + "${number}c", True),
    "backslash": ("a\\\n${number}b\\\nc${number}\\\nd", True),
    "lines": ("${name\n} a ${number}\nb ${\nnumber} c ${name}", True),
    "loop": ("% for row in rows:\n<td>${row['a']}</td><td>${row['b']}</td>\n% endfor\n", True),
    "context_loop": ("% for row in rows:\n${loop.index}: ${row['b']} ${loop.last}\n% endfor", True),
    "filters": ("${name|u} ${name|h} ${name|trim}${name | n}<%text filter='h'><</%text>", True),
    "writes": ('<%def name="f()">F${name}</%def>a${f()}b${number}c${f()}d', True),
    "value_writes": ('<%def name="f()">F</%def>a ${number} ${[f(), number]} ${number} b', True),
    "comprehension": ("a ${[x for x in (1, 2)]} ${number} ${', '.join(x for x in 'ab')}", True),
    "assigns": ("a ${(x := 3)} b ${x} c", True),
    "nested_def": ('<%def name="f()"><%def name="g()">G${name}</%def>(${g()})</%def>${f()}.', True),
    "code": ('<% x = 1 %>a${x}<% x = 2 %>b${x}<%def name="f()">${x}</%def>${f()}', True),
    "module": ("<%!\n  def double(x):\n    return x * 2\n%>a${double(name)}b${number}", True),
    "args": ("<%page args=\"x=3\"/>a${x}b", True),
    "buffered": ('<%def name="f()" buffered="True">b${name}</%def>a${f()}', True),
    "filtered": ('<%def name="f()" filter="trim"> b${name} </%def>a${f()}c', True),
    "anonymous": ("a<%block>b${name}</%block>c", True),
    "include": ("a ${name}<%include file='_part.html'/>${number} b", True),
    "include_args": ("a<%include file='_part.html' args='extra=number'/>b", True),
    "include_plain": ("a<%include file='_plain.html'/>b ${name}", True),
    "include_named": ("<%include file='_named.html'/><%include file='_keyword.html'/>", True),
    "include_in_def": ("<%def name='f()'><%include file='_plain.html'/></%def>${f()}", True),
    "include_arguments": (
        "<%include file='_arguments.html'/>"
        "<%def name='f()'><%include file='_arguments.html'/></%def>${f()}<% x = 1 %>${f()}",
        True,
    ),
    "include_laid": ("<%inherit file='_layout.html'/><%include file='_plain.html'/>", False),
    "include_self": ("a<%include file='_self.html'/>b", True),
    "self": ("a ${self.uri} b ${number}", False),
    "self_get": ("${context.get('self').uri}", False),
    "any_get": ("<% which = 'local' %>${context.get(which).uri}", False),
    "keys": ("${sorted(context.keys())}", False),
    "eval": ("${eval('context')['self'].uri}", False),
    "locals": ("${locals()['context']['self'].uri}", False),
    "context": ("a${number}<% context.write('b') %>c${number}${context.write('d') or ''}e", False),
    "capture": ('<%def name="f()">F${name}</%def>a${capture(f)}b', True),
    "block": ("a<%block name='title'>b${name}</%block>c", False),
    "inherit": ("<%inherit file='_layout.html'/><%block name='title'>T</%block>a${name}b", False),
    "namespace": (
        "<%namespace name='d' file='_defs.html'/>a<%d:row x='${number}'>b${name}</%d:row>c",
        False,
    ),
    "call": (
        "<%def name='f()'>(${caller.body()})${number}</%def><%self:f>a${name}</%self:f>",
        False,
    ),
    "caught": ("% try:\n<b>${number} ${broken}</b>\n% except LookupError:\ncaught\n% endtry", True),
    "with": (
        "<%! from contextlib import suppress %>\n"
        "% with suppress(LookupError):\n<b>${number} ${broken}</b>\n% endwith\nafter",
        True,
    ),
    "caught_def": (
        "<%def name='f()'><b>${number} ${broken}</b></%def>\n"
        "% try:\na${f()}\n% except LookupError:\ncaught\n% endtry",
        True,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    write(folder, PARTS | {f"{name}.html": text for name, (text, _) in PAGES.items()})
    return folder


def render(template: Any, names: dict[str, Any]) -> str:
    text = Text()
    template.render_context(Context(text, **names))
    return text.encoded().decode()


def render_as_mako(folder: Path, uri: str, names: dict[str, Any]) -> str:
    lookup = TemplateLookup(
        [str(folder)],
        default_filters=["once"],
        imports=["from poorhttp._core import escape as once"],
    )
    return render(lookup.get_template(uri), names)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_mako_makes_of_it(folder: Path, name: str) -> None:
    page = Folder(str(folder), reload=False).get_template(f"/{name}.html")
    assert page.module.__dict__[ALONE] is PAGES[name][1]
    if name == "filters":
        # Mako escapes twice.
        expected = (
            "%3C%26%22%27%C3%A9%E2%98%83%3E &lt;&amp;&#34;&#39;é☃&gt; "
            "&lt;&amp;&#34;&#39;é☃&gt;<&\"'é☃>&lt;"
        )
    else:
        expected = render_as_mako(folder, f"/{name}.html", NAMES)
    assert render(page, NAMES) == expected


def test_a_row_is_written_at_once() -> None:
    text = b"% for n in range(3):\n<td>${n}</td><td>${n * n}</td>\n% endfor\n"
    inner = compile_page(text, "/x.html", "/x.html").co_consts
    (body,) = (each for each in inner if getattr(each, "co_name", "") == "render_body")
    assert "__M_fill" in body.co_names
    assert "__M_escape" not in body.co_names


def test_fill_escapes_every_second_part() -> None:
    values = [*NAMES.values(), -1, 2**63, -(2**63), "", 1e300, b"<"]
    for value in values:
        if value is not NAMES["broken"]:
            assert fill("<", value, "é", value) == f"<{escape(value)}é{escape(value)}"
    assert fill() == ""
    assert fill("<") == "<"


def test_fill_raises_what_a_value_raises() -> None:
    with pytest.raises(LookupError):
        fill("", NAMES["broken"])
    with pytest.raises(TypeError):
        fill(1)
    with pytest.raises(UnicodeEncodeError):
        fill("", "\udcff")


def test_a_value_that_cannot_be_written_fails_in_its_own_line(tmp_path: Path) -> None:
    write(tmp_path, {"x.html": "a ${number} b\n${number}\nc ${broken} ${number} d\n${number}"})
    page = Folder(str(tmp_path), reload=False).get_template("/x.html")
    with pytest.raises(LookupError) as raised:
        render(page, NAMES)
    lines = [entry.lineno + 1 for entry in raised.traceback if str(entry.path).endswith("x.html")]
    assert lines == [3]


def test_escape() -> None:
    values = (
        *("", "plain", "é☃𝄞", "<", "a<b>&\"'é<", "&amp;", b"<bytes>", ["<", 1], Markup("<b>")),
        *(0, -(10**30), True, None, 1.5, float("inf")),
        type("Own", (str,), {})("<own>"),
        type("Html", (), {"__html__": lambda self: "<html>"})(),
        type("Text", (), {"__str__": lambda self: "<text>"})(),
    )
    escaped = [escape(value) for value in values]
    assert {type(text) for text in escaped} == {str}
    assert escaped == [str(markupsafe.escape(value)) for value in values]


def test_escape_raises_what_a_value_raises() -> None:
    for name in ("__str__", "__html__"):
        with pytest.raises(ZeroDivisionError):
            escape(type("Broken", (), {name: lambda self: 1 / 0})())
    with pytest.raises(UnicodeEncodeError):
        escape("\ud800")


def test_escape_returns_plain_text_as_it_is() -> None:
    text = "".join(["pla", "in"])
    assert escape(text) is text
