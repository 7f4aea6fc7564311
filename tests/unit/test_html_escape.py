"""HTML escaping, compared with markupsafe."""

from __future__ import annotations

import markupsafe
import pytest
from markupsafe import Markup

from poorhttp._core import escape


@pytest.mark.parametrize(
    "value",
    [
        *("", "plain", "é☃𝄞", "<", "a<b>&\"'é<", "&amp;", b"<bytes>", ["<", 1], Markup("<b>")),
        *(0, -(10**30), True, None, 1.5, float("inf")),
        type("Own", (str,), {})("<own>"),
        type("Html", (), {"__html__": lambda self: "<html>"})(),
        type("Text", (), {"__str__": lambda self: "<text>"})(),
    ],
)
def test_escape(value: object) -> None:
    escaped = escape(value)
    assert type(escaped) is str
    assert escaped == str(markupsafe.escape(value))


def test_escape_raises_what_a_value_raises() -> None:
    for name in ("__str__", "__html__"):
        with pytest.raises(ZeroDivisionError):
            escape(type("Broken", (), {name: lambda self: 1 / 0})())
    with pytest.raises(UnicodeEncodeError):
        escape("\ud800")


def test_escape_returns_plain_text_as_it_is() -> None:
    text = "".join(["pla", "in"])
    assert escape(text) is text
