"""README is short, has the numbers of the stored results, and pictures that need nothing else."""

from __future__ import annotations

import re

import pytest

from loadtests import store
from loadtests.programs import ROOT
from loadtests.studies import command, docs
from loadtests.studies.takeaways import Tables

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize(
    ("results", "numbers"),
    [("serve", ["5.1"]), ("operations", ["0 %", "4.75 %"]), ("development", ["26"])],
)
def test_its_numbers(results: str, numbers: list[str]) -> None:
    """They stand in the sentence at the beginning of the page of benchmarks, too."""
    made = docs.MADE[results]
    page = (ROOT / "docs" / made.page).read_text(encoding="utf-8")
    sentence = page.partition("\n\n")[2].partition("\n\n")[0]
    for number in numbers:
        assert number in sentence
        assert f" {number}" in README


def test_its_ratios() -> None:
    records = store.load([ROOT / store.RESULTS.relative_to(ROOT) / "serve.jsonl"])
    tables = Tables(command.by_study(records)["bench"])
    name, column = "cpu-hello-hello-64", "CPU per request"
    ours = tables.value(name, column, "poorhttp threading 8")
    times = [
        tables.value(name, column, row) / ours for row in ("granian 1 thread", "gunicorn gthread 8")
    ]
    assert f"granian takes {times[0]:.1f} times as much, gunicorn {times[1]:.0f} times" in README


def test_its_links_and_pictures() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).exists()] == []
    for picture in (link for link in links if link.endswith(".svg")):
        text = (ROOT / picture).read_text(encoding="utf-8")
        assert not re.search(r"url\(|@import|/tmp/|src=", re.sub(r"url\(#", "", text))
