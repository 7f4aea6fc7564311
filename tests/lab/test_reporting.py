"""Layout of reports: numbers, figures, the page, Markdown and CSV."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree

import pytest

from loadtests import store
from loadtests.__main__ import main
from loadtests.measure import histogram
from loadtests.programs import ROOT
from loadtests.reporting import markdown, percentiles, progress, promises, sheets, terminal
from loadtests.reporting.cells import number, written
from loadtests.reporting.model import (
    Axis,
    Bar,
    Bars,
    Column,
    Figure,
    Line,
    Lines,
    Panels,
    Section,
    Table,
)
from loadtests.reporting.provenance import colophon, lost
from loadtests.servers.registry import SERVERS
from loadtests.stats.results import Results, Spread
from loadtests.studies import catalogue, command, docs, takeaways
from loadtests.studies.study import Study
from tests.support.browser import Browser

MILLISECONDS = Column("time", "ms", 2, 1e3)
TIMES = Table(
    "times",
    "Times with `light`",
    (Column("server"), MILLISECONDS, Column("answers", "/s"), Column("remarks")),
    (
        ("poorhttp single", Spread(0.00125, 0.001, 0.0015, 3), 12345.6, "client | saturated"),
        ("bjoern & <co>", None, -0.2, None),
    ),
    frozenset(["poorhttp single"]),
    "Medians of *3* rounds.",
)
TIME, RATE = Axis("time", "s"), Axis("requests", "/s", log=True)
LINES = Lines(
    "rate",
    "Requests & answers",
    Axis("concurrent requests", log=True),
    RATE,
    [
        Line("poorhttp single", "#0b4f9e", [(1, 10), (10, 90), (100, 500)], [(10, 80, 99)], True),
        Line("bjoern", "#cc3333", [(1, 5), (10, math.nan), (100, 50)]),
    ],
    "more is better",
    "A virtual machine.",
    marks=True,
)
BARS = Bars(
    "memory",
    "Memory",
    Axis("PSS", "MiB"),
    [
        Bar("poorhttp single", "#0b4f9e", (Spread(8, 7, 9, 3), Spread(2, 2, 2, 3)), True),
        Bar("bjoern", "#cc3333", (Spread(4, 4, 4, 1), None)),
    ],
    ("user", "system"),
    stacked=True,
)
PANELS = Panels("parts", "Parts", [LINES, LINES])
FIGURES = (LINES, BARS, PANELS)
SECTIONS = [Section("What is **asked**", ["With `code` & <tags>."], [TIMES, *FIGURES])]

RUN = {
    "record": "run",
    "run": "2026-11-22T04:00:00+0000",
    "command": "python -m loadtests serial --full",
    "study": "serial",
    "scale": "full",
    "steps": 5,
    "seconds": 3.0,
    "server_core": 0,
    "client_core": 1,
    "commands": {"poorhttp single": "{python} -m poorhttp serve"},
    "machine": {
        "cpu": "A processor",
        "cores": 2,
        "virtual": True,
        "memory": 4 << 30,
        "kernel": "6.1",
        "python": "CPython 3.13",
        "client": "wrk 4.1",
        "versions": {"bjoern": "3.2"},
    },
}
ONE = {"run": RUN["run"], "study": "serial"}
FAILURE = {"record": "failure", **ONE, "server": "bjoern", "reason": "it died"}
RECORDS = [
    RUN,
    {"record": "missing", **ONE, "server": "fastwsgi", "reason": "not installed"},
    {**FAILURE, "what": "light, round 1, bjoern"},
    {**FAILURE, "what": "light, round 2, bjoern"},
    {"record": "done", **ONE, "what": "light, round 1, poorhttp single"},
    {"record": "note", **ONE, "lost": "full.jsonl: No space left on device"},
    {
        "record": "sample",
        **ONE,
        "experiment": "serial",
        "scenario": "light",
        "server": "poorhttp single",
        "round": 0,
        "seed": 1704,
        "others_busy": 0.1,
    },
]


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "places", "text"),
        [
            (1234567.8, 0, "1,234,568"),
            (0.126, 2, "0.13"),
            (-1234.5, 1, "\N{MINUS SIGN}1,234.5"),
            (-0.04, 1, "0.0"),
            (math.nan, 1, "–"),
            (math.inf, 0, "–"),
        ],
    )
    def test_number(self, value: float, places: int, text: str) -> None:
        assert number(value, places) == text

    def test_cells(self) -> None:
        assert written(Spread(0.00125, 0.001, 0.0015, 3), MILLISECONDS) == ("1.25", "1.00 – 1.50")
        assert written(Spread(0.001, 0.001, 0.001, 1), MILLISECONDS) == ("1.00", "")
        assert written(None, MILLISECONDS).value == "–"
        assert written(None, Column("remarks"), text=True).value == ""


# What draws is imported when a test needs it: each process of pytest imports this module, and
# matplotlib with SciPy takes as long as all other modules of the tests.


def inline(shown: Figure, *, narrow: bool = False) -> str:
    """A figure as part of a page."""
    from loadtests.reporting.figures import figure

    return figure.inline(shown, "a", narrow=narrow)


def page(title: str, sections: list[Section], results: Results) -> str:
    """The page about results."""
    from loadtests.reporting import page

    return page.html(title, sections, results)


def elements(svg: str, tag: str) -> list[ElementTree.Element]:
    return [e for e in ElementTree.fromstring(svg).iter() if e.tag.rpartition("}")[2] == tag]


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()).strip() for element in elements(svg, "text")]


@pytest.mark.filterwarnings("error")
class TestFigures:
    @pytest.mark.parametrize("shown", FIGURES, ids=lambda shown: shown.name)
    def test_names_all(self, shown: Figure) -> None:
        svg = inline(shown)
        assert {"poorhttp single", "bjoern"} <= set(texts(svg))
        (title,) = elements(svg, "title")
        assert title.text == shown.title
        (described,) = elements(svg, "desc")
        assert "bjoern" in (described.text or "")
        width = float(ElementTree.fromstring(svg).attrib["viewBox"].split()[2])
        assert width == pytest.approx(860, abs=0.1)

    def test_text_is_text_in_a_font_of_the_system(self) -> None:
        svg = inline(LINES)
        assert "concurrent requests" in texts(svg)
        assert "requests/s" in texts(svg)
        assert "DejaVu" not in svg
        assert "system-ui" in svg

    def test_names_are_escaped(self) -> None:
        bars = Bars("n", "t", Axis("x"), [Bar("a <b> & c", "#123456", [Spread(1, 1, 2, 2)])])
        assert "a <b> & c" in texts(inline(bars))

    def test_points_lie_where_they_must(self) -> None:
        points = [(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)]
        line = Line("a", "#123456", points)
        axes = Axis("x", log=True), Axis("y", log=True)
        svg = inline(Lines("n", "t", *axes, [line]))
        (path,) = [e for e in elements(svg, "path") if "#123456" in e.get("style", "")]
        numbers = [float(one) for one in re.findall(r"-?[\d.]+", path.attrib["d"])]
        xs, ys = numbers[::2], numbers[1::2]
        assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.1)
        assert ys[1] - ys[0] == pytest.approx(ys[2] - ys[1], abs=0.1)
        assert xs[0] < xs[1]
        assert ys[0] > ys[1]

    def test_bars_are_as_long_as_their_values(self) -> None:
        rows = [
            Bar("a", "#123456", (Spread(2, 2, 2, 1),)),
            Bar("b", "#654321", (Spread(6, 5, 7, 3),)),
        ]
        svg = inline(Bars("n", "t", Axis("v"), rows))

        def length(colour: str) -> float:
            (path,) = [e for e in elements(svg, "path") if f"fill: {colour}" in e.get("style", "")]
            xs = [float(one) for one in re.findall(r"[ML] (-?[\d.]+)", path.attrib["d"])]
            return max(xs) - min(xs)

        assert length("#654321") == pytest.approx(3 * length("#123456"), rel=0.01)
        assert {"2", "6"} <= set(texts(svg))

    LOG = Axis("t", "ms", log=True)
    ODD: ClassVar[list[Figure]] = [
        Lines("no-points", "t", TIME, LOG, [Line("a", "#123456", [])]),
        Lines("nan", "t", LOG, LOG, [Line("a", "#123456", [(math.nan, 1), (1, math.nan)])]),
        Lines("zeros", "t", LOG, LOG, [Line("a", "#123456", [(0, 0), (1, -1), (2, 5)])]),
        Lines("negative", "t", LOG, LOG, [Line("a", "#123456", [(1, -1), (2, -5)])]),
        Bars("none", "t", TIME, [Bar("a", "#123456", (None,))]),
        Bars("below", "t", LOG, [Bar("a", "#123456", (Spread(5, -3, 9, 2),))]),
        Panels("empty", "t", [Lines("e", "t", TIME, TIME, [])]),
    ]

    @pytest.mark.parametrize("shown", ODD, ids=lambda shown: shown.name)
    def test_odd_values(self, shown: Figure) -> None:
        svg = inline(shown, narrow=bool(self.ODD.index(shown) % 2))
        assert "nan" not in re.sub(r"<(title|desc).*?</\1>", "", svg).lower()
        if shown.name in ("no-points", "nan", "none", "empty"):
            assert "nothing was measured" in texts(svg)

    @pytest.mark.parametrize(("unit", "alike"), [("s", True), ("ms", False)])
    def test_panels_of_one_quantity_have_one_scale(self, unit: str, alike: bool) -> None:
        small = Lines("small", "small", TIME, TIME, [Line("a", "#123456", [(0, 1), (1, 2)])])
        axis, line = Axis("time", unit), Line("a", "#123456", [(0, 100), (1, 900)])
        large = Lines("large", "large", TIME, axis, [line])
        assert texts(inline(Panels("both", "both", [small, large]))).count("800") == 1 + alike

    def test_long_titles_of_panels_stand_on_several_lines(self) -> None:
        words = "descriptors of all processes, when all clients have gone"
        long = replace(LINES, title=words)
        assert words in texts(inline(Panels("both", "both", [long, LINES])))
        assert words not in texts(inline(Panels("both", "both", [long, LINES]), narrow=True))

    def test_each_nine_has_a_tick(self) -> None:
        times = histogram.record(range(1000, 1_001_000, 1000))
        line = Line("a", "#123456", percentiles.points(times, 1e6))
        found = [y for x, y in line.points if x <= 100][-1]
        assert found == pytest.approx(990, rel=0.01)
        ticks = texts(inline(percentiles.plot("times", [line])))
        assert {"0 %", "90 %", "99 %", "99.9 %"} <= set(ticks)

    def test_who_was_not_measured_is_named(self) -> None:
        shown = Lines("n", "t", TIME, TIME, [*LINES.lines, Line("waitress", "#777777", [])])
        assert "waitress: not measured" in texts(inline(shown))
        rows = [*BARS.bars, Bar("waitress", "#777777", (None, None))]
        assert "not measured" in texts(inline(Bars("n", "t", TIME, rows)))

    def test_twenty_names_do_not_overlap(self) -> None:
        many = [
            Line(server.name, server.colour, [(0, 1), (1, 1 + number / 100)], (), server.ours)
            for number, server in enumerate(SERVERS[:20])
        ]
        svg = inline(Lines("n", "t", TIME, TIME, many))
        names = {line.name for line in many}
        heights = sorted(
            float(element.attrib["y"])
            for element in elements(svg, "text")
            if "".join(element.itertext()).strip() in names
        )
        assert len(heights) == len(many)
        assert min(b - a for a, b in pairwise(heights)) >= 14


class Balance(HTMLParser):
    """Whether every element is closed, and no name is there twice."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it open; `attrs` are its names and links."""
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One without content."""
        given = dict(attrs)
        assert tag not in ("img", "link", "script", "iframe", "image"), tag
        if name := given.get("id"):
            self.names.append(name)
        if tag != "a":
            self.links += [
                given[key] or "" for key in ("src", "href", "xlink:href") if key in given
            ]

    def handle_endtag(self, tag: str) -> None:
        """It is the one that was opened last."""
        assert self.open.pop() == tag


class TestPage:
    def test_needs_nothing_but_itself(self) -> None:
        html = page("All & more", SECTIONS, Results(RECORDS))
        parsed = Balance()
        parsed.feed(html)
        assert not parsed.open
        assert len(set(parsed.names)) == len(parsed.names)
        assert all(link.startswith("#") and link[1:] in parsed.names for link in parsed.links)
        assert not re.search(r"@import|url\((?!#)", html)
        assert set(re.findall(r"url\(#(.*?)\)", html)) <= set(parsed.names)
        for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
            ElementTree.fromstring(svg)
        assert html.count("<svg") == 2 * len(FIGURES)
        # It says what was written.
        assert "<title>All &amp; more</title>" in html
        assert "With <code>code</code> &amp; &lt;tags&gt;." in html
        assert '<tr class="strong"><th scope="row">poorhttp single</th><td>1.25</td>' in html
        assert '<td class="range">1.00 – 1.50</td>' in html
        assert "bjoern &amp; &lt;co&gt;" in html
        assert "A virtual machine." in html

    def test_colophon(self) -> None:
        told = markdown.tables(colophon(Results(RECORDS)))
        for words in (
            "A processor, 2 cores, virtual machine",
            "not kept in their file: full.jsonl: No space left on device",
            "2 of 5 measurements were not taken",
            "| fastwsgi | not installed |",
            "more than 5 % in 1 of 1 samples",
            "server on 0, clients on 1",
            "1704",
            "| poorhttp single | `python -m poorhttp serve` |",
        ):
            assert words in told
        assert re.search(r"\| bjoern +\| +2 \| it died \| light +\|", told)
        assert lost(Results([{**RUN, "steps": 0}])) == []


class TestMarkdown:
    def test_tables(self) -> None:
        lines = markdown.lines(TIMES).splitlines()
        assert lines == [
            "| server              |           time, ms | answers/s | remarks             |",
            "| ------------------- | -----------------: | --------: | ------------------- |",
            "| **poorhttp single** | 1.25 (1.00 – 1.50) |    12,346 | client \\| saturated |",
            "| bjoern & &lt;co>    |                  – |         0 |                     |",
        ]
        told = markdown.tables(SECTIONS)
        assert told.startswith("## What is **asked**\n\nWith `code` & <tags>.\n\n### Times")
        assert "svg" not in told


class TestSheets:
    def test_table(self, tmp_path: Path) -> None:
        written = sheets.write(SECTIONS, tmp_path)
        assert sorted(path.stem for path in written) == ["memory", "parts", "rate", "times"]
        with (tmp_path / "times.csv").open(encoding="utf-8", newline="") as file:
            head, ours, other = csv.reader(file)
        ends = ["time, ms median", "time, ms lowest", "time, ms highest"]
        assert head == ["server", *ends, "answers/s", "remarks"]
        assert ours == ["poorhttp single", "1.25", "1.0", "1.5", "12345.6", "client | saturated"]
        assert other == ["bjoern & <co>", "", "", "", "-0.2", ""]


class TestTerminal:
    def test_in_short(self, capsys: pytest.CaptureFixture[str]) -> None:
        rows: list[tuple[str, float | None]] = [("bjoern", 900.0), ("poorhttp single", 450.0)]
        rows += [(f"server {number}", 100.0 - number) for number in range(12)]
        rows += [("poorhttp [lone]", None), ("poorhttp gevent", 1.0)]
        ours = frozenset({"poorhttp single", "poorhttp [lone]", "poorhttp gevent"})
        columns = (Column("server"), Column("answers", "/s"))
        ranked = Table("rate", "Rates", columns, rows, ours, ranking="answers")
        kept = ("speed", "≥ 1", "2 (1 – 3)", "light", "yes", "`x`")
        broken = ("memory", "≤ 9 MiB", "12 MiB (11 – 13)", "single", promises.BROKEN, "`y`")
        promised = Table("p", "", promises.COLUMNS, [kept, broken])
        told = [
            Section("Promised and measured", parts=[promised]),
            Section(
                "Speed", ["Long words."], [ranked, LINES], answer="`bjoern` is *twice* as fast."
            ),
            Section("Detail", ["More words."], [TIMES]),
        ]
        assert terminal.short(told)
        assert not terminal.short(told[2:])
        terminal.tell(told, lost(Results(RECORDS)))
        lines = capsys.readouterr().out.splitlines()
        shown = "\n".join(lines)
        assert "bjoern is twice as fast." in shown
        bars = {line.split("  ")[0].strip(): line.count("█") for line in lines}
        assert bars["bjoern"] == terminal.WIDTH == 2 * bars["poorhttp single"]
        assert bars["poorhttp [lone]"] == 0
        assert "poorhttp gevent" in bars
        assert "server 7" in bars
        assert "server 8" not in bars
        assert "… 4 more" in shown
        assert "not kept: memory: promised ≤ 9 MiB, measured 12 MiB (11 – 13), single" in shown
        assert "speed" not in shown
        assert "fastwsgi: not installed" in shown
        assert "Failed measurements: 2;" in shown
        assert "Long words" not in shown
        assert max(map(len, lines)) <= 100


class TestCommand:
    """`python -m loadtests report` for the results of a study."""

    @pytest.fixture
    def report(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
        told = Study("serial", "one", "2010", list, lambda *_: [], lambda _: SECTIONS)
        monkeypatch.setattr(command, "STUDIES", {"serial": told})
        monkeypatch.setattr("signal.signal", lambda *_: None)
        path = tmp_path / "results.jsonl"
        path.write_text("".join(json.dumps(r) + "\n" for r in RECORDS), encoding="utf-8")

        def run(*words: str | Path) -> int:
            monkeypatch.setattr("sys.argv", ["loadtests", "report", str(path), *map(str, words)])
            return main()

        return run

    def test_everything_at_once(
        self, tmp_path: Path, report: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = tmp_path
        asked = {"--html": "p.html", "--csv": "csv", "--markdown": "p.md", "--figures": "f/g"}
        assert report(*(word for flag, to in asked.items() for word in (flag, folder / to))) == 0
        assert capsys.readouterr().out == ""
        assert "<h1>Serial</h1>" in (folder / "p.html").read_text(encoding="utf-8")
        assert (folder / "csv" / "times.csv").exists()
        assert "(f/g/rate.svg)" in (folder / "p.md").read_text(encoding="utf-8")
        drawn = (folder / "f" / "g" / "rate.svg").read_text(encoding="utf-8")
        assert {"Requests & answers", "poorhttp single"} <= set(texts(drawn))

    def test_tables_by_default(
        self, tmp_path: Path, report: Callable[..., int], capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert report() == 0
        told = capsys.readouterr().out
        assert "| **poorhttp single** |" in told
        assert "Failed measurements: 2;" in told
        assert sorted(path.name for path in tmp_path.iterdir()) == ["results.jsonl"]


SOON = "tls", "uploads", "balance"
"""Results that are read in a moment."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SOON else pytest.mark.full) for n in docs.MADE]
)
def test_pages_say_what_the_results_have(name: str) -> None:
    """The sentence on a page is the one that its results make."""
    made = docs.MADE[name]
    records = store.load([store.RESULTS / f"{name}.jsonl"])
    told = [one for sections in command.by_study(records).values() for one in sections]
    page = (ROOT / "docs" / made.page).read_text(encoding="utf-8")
    assert made.takeaway is not None
    sentence = made.takeaway(takeaways.Tables(told))
    assert page.startswith(f"# {made.title}\n\n{sentence}\n\n")


def test_the_page_of_old_studies_says_what_the_results_have() -> None:
    page = ROOT / "docs" / "benchmarks" / f"{docs.THEN_AND_NOW}.md"
    assert docs.then_and_now() == page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("took", "done", "total", "words"),
    [
        (10, 1, 23, ", 4 min left"),
        (1, 1, 23, ", 22 s left"),
        (60, 22, 23, ", 3 s left"),
        (5, 1, 1, ""),
    ],
)
def test_the_time_that_is_left(took: float, done: int, total: int, words: str) -> None:
    assert progress.left(took, done, total) == words


def test_each_question_of_an_old_study_is_a_command() -> None:
    assert {row.results for row in docs.ROWS} <= catalogue.STUDIES.keys()
    assert len({row.study for row in docs.ROWS if row.study}) == 5


def test_index_has_all_pages() -> None:
    """As `python -m loadtests docs` writes it."""
    assert f"\n{docs.index()}\n" in (ROOT / "docs" / docs.INDEX).read_text(encoding="utf-8")


@pytest.mark.full
def test_fits_a_desk_and_a_phone(tmp_path: Path, browser: Browser) -> None:
    """Nothing but tables is moved sideways, and one of the two shapes of a figure is to be seen."""
    wide = Table("wide", "Wide", [Column(f"column {n}") for n in range(30)], [["x" * 9] * 30])
    told = [*SECTIONS, Section("Wide", ["`" + "w" * 200 + "`"], [wide])]
    report = tmp_path / "page.html"
    report.write_text(page("All", told, Results(RECORDS)), encoding="utf-8")
    for width, seen, hidden in ((1280, "broad", "narrow"), (390, "narrow", "broad")):
        browser.resize(width, 800)
        browser.open(report.as_uri())
        browser.wait_for(f"document.title == 'All' && innerWidth == {width}")
        assert browser.run("document.documentElement.scrollWidth") <= width
        count = "[...document.querySelectorAll('div.{} svg')].filter(e => e.checkVisibility())"
        assert browser.run(f"{count.format(seen)}.length") == len(FIGURES)
        assert browser.run(f"{count.format(hidden)}.length") == 0
        boxes = "[...document.querySelectorAll('div.wide')]"
        assert browser.run(f"{boxes}.some(box => box.scrollWidth > box.clientWidth)")
        text = "Math.min(...[...document.querySelectorAll('svg text')].map(" + (
            "e => e.getBoundingClientRect().height).filter(height => height))"
        )
        assert browser.run(text) >= 10
