"""The tables of docs/reference/refusals.md, made from the protocol cases.

`python -m tests.refusals` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from tests.testkit.cases.exchanges import Case, read_all

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "refusals.md"
MARK = "<!-- Made by `python -m tests.refusals` from tests/cases; change those instead. -->\n"

#: Lines that most cases share: they are left away unless nothing else is there.
COMMON = {
    r"GET / HTTP/1.1\r\n",
    r"POST / HTTP/1.1\r\n",
    r"Host: a\r\n",
    r"Transfer-Encoding: chunked\r\n",
    r"5\r\n",
    r"hello\r\n",
    r"0\r\n",
    r"\r\n",
    "hello",
}
#: The field that almost every answer of a case has.
USUAL = ("Content-Type", "text/plain")
#: Lines that are shown of a case.
MOST = 4


def code(text: str) -> str:
    """`text` as code within a table."""
    fence = "``" if "`" in text else "`"
    space = " " if text.startswith("`") or text.endswith("`") or not text.strip() else ""
    return fence + space + text.replace("|", r"\|") + space + fence


def sent(case: Case) -> str:
    """What is sent, as far as it is particular."""
    lines = [line for line in case.lines if line not in COMMON] or case.lines
    shown = [code(line.removesuffix(r"\r\n") or line) for line in lines[:MOST]]
    return "<br>".join([*shown, *(["…"] if len(lines) > MOST else [])])


def said(case: Case) -> str:
    """What the application answers, and the request if it is not the usual one."""
    assert case.answer
    request = case.lines[0].replace(f"/{case.name} ", "/ ")
    lines = [] if request == r"GET / HTTP/1.1\r\n" else [request.removesuffix(r"\r\n")]
    lines += [visible(case.answer.status)]
    fields = [field for field in case.answer.fields if field != USUAL]
    lines += [visible(f"{name}: {value}") for name, value in fields]
    pieces = [f"{len(piece):,} bytes" for piece in case.answer.pieces]
    return "<br>".join([*map(code, lines), ", ".join(pieces) or "nothing"])


def visible(text: str) -> str:
    """`text` with everything escaped that is not visible ASCII."""
    return text.encode("unicode_escape").decode("ascii")


def got(case: Case) -> str:
    """What comes back."""
    ends = {"keep": "", "close": ", closed", "cut": ", cut short"}
    if len(case.statuses) > 10 and len({*case.statuses}) == 1:
        return f"{len(case.statuses)} times {case.statuses[0]}{ends[case.end]}"
    return " ".join(map(str, case.statuses)) + ends[case.end]


def tables(cases: Iterable[Case], first: str, show: Callable[[Case], str]) -> Iterator[str]:
    """A table under each heading."""
    for heading, group in groupby(cases, key=lambda case: case.heading):
        yield f"\n### {heading}\n\n| {first} | response | RFC | why |\n|---|---|---|---|\n"
        for case in group:
            yield f"| {show(case)} | {got(case)} | {case.rfc} | {case.why} |\n"


def page() -> str:
    """Everything behind the mark."""
    cases = read_all()
    requests = [case for case in cases if not case.answer]
    refused = [case for case in requests if case.refused]
    accepted = [case for case in requests if not case.refused]
    parts = [
        "\n## Refused\n\nThe connection ends after the response.",
        " Lines that most requests share are left out.\n",
        *tables(refused, "request", sent),
        "\n## Accepted\n\nMessages that are similar to the refused ones.\n",
        *tables(accepted, "request", sent),
        "\n## Responses of applications\n\nA 500 means that the mistake raises an exception in the",
        " application, and that nothing of its response is sent.\n",
        *tables([case for case in cases if case.answer], "application", said),
    ]
    return "".join(parts)


if __name__ == "__main__":
    text = PAGE.read_text("utf-8")
    PAGE.write_text(text[: text.index(MARK)] + MARK + page(), "utf-8")
