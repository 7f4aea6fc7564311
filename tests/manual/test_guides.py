"""Each page of the tutorial and of the guides does what it says; so does what runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.manual import machine, page, runner
from tests.packages import need
from tests.testkit.server import ROOT

DOCS = ROOT / "docs"
GUIDES = sorted(DOCS.glob("guides/*.md"))


@pytest.fixture(scope="session")
def possible() -> None:
    """Skip where no machine can be made, or one without the programs that most pages use."""
    need("setpriv", "ip", "curl", "nginx", "openssl", "php-cgi")
    if reason := machine.lacking():
        pytest.skip(reason)


def cases() -> list[ParameterSet]:
    """A case for each page; those that take long are for the full level."""
    found: list[ParameterSet] = []
    for path in GUIDES:
        text = path.read_text(encoding="utf-8")
        if "```" in text:
            # Each has a machine of its own: not all one after another.
            marks = [pytest.mark.xdist_group(f"guides {len(found) % 3}")]
            marks += [pytest.mark.full] if "<!-- test: full -->" in text else []
            found.append(pytest.param(path, id=path.stem, marks=marks))
    return found


@pytest.mark.usefixtures("possible")
def test_tutorial() -> None:
    """Its pages continue each other, in the order of their list: one machine runs all."""
    folder = DOCS / "tutorial"
    index = (folder / "index.md").read_text(encoding="utf-8")
    names = re.findall(r"^- \[.*?\]\((.*?)\)", index, re.MULTILINE)
    assert {*names, "index.md"} == {path.name for path in folder.glob("*.md")}
    runner.run(*(page.read(folder / name) for name in names))


@pytest.mark.usefixtures("possible")
@pytest.mark.parametrize("path", cases())
def test_page(path: Path) -> None:
    found = page.read(path)
    if found.not_run:
        pytest.skip(found.not_run)
    runner.run(found)


def written(folder: Path, text: str) -> page.Page:
    (folder / "page.md").write_text(text)
    return page.read(folder / "page.md")


@pytest.mark.usefixtures("possible")
@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "$ true\n$ echo one\ntwo",
            "page.md:3: other output\n    $ echo one\nexpected:\n    two\ngot:\n    one",
        ),
        ("$ false", "page.md:2: exit status 1"),
        ("$ poorhttp serve missing:app", "page.md:2: the command ended"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, command: str, message: str) -> None:
    with pytest.raises(runner.StepFailed) as raised:
        runner.run(written(tmp_path, f"```console\n{command}\n```\n"))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("expected", "output", "right"),
    [
        (["a ... c"], "a b c\n", True),
        (["a ... c"], "a b d\n", False),
        (["a", "...", "c"], "a\nb\nb\nc\n", True),
        (["a", "...", "c"], "a\nc\n", True),
        (["a"], "a\nb\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_output_is_compared(expected: list[str], output: str, right: bool) -> None:
    assert runner.matches(expected, output) == right


@pytest.mark.parametrize(
    "text", ["```sh\n$ ls\n```", "<!-- test: shwon -->", "```console\nls\n```"]
)
def test_a_page_that_does_not_keep_to_the_convention(tmp_path: Path, text: str) -> None:
    with pytest.raises(page.PageError):
        written(tmp_path, text)
