"""Draws the pictures of README: `python -m docs.manual_site.pictures` writes them to docs/figures.

`cpu-compared.svg` is made of the stored results of the load lab. `dev-terminal.svg` and
`debug-page.png` show `poorhttp dev` at work on an application that is made for it, in a terminal
and in Chromium.
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pexpect
from rich.ansi import AnsiDecoder
from rich.console import Console

from loadtests import store
from loadtests.programs import ROOT
from loadtests.reporting.figures import figure
from loadtests.reporting.model import Axis, Bar, Bars
from loadtests.stats.results import Spread
from loadtests.studies import command
from loadtests.studies.takeaways import Tables
from tests.support.browser import Browser, chromium, tab

FIGURES = ROOT / "docs" / "figures"
COLUMNS = 78
#: Where the pictures say that the server is.
URL = "http://127.0.0.1:8080"
#: Rows of the table of CPU times, the names that the picture gives them, and their colours.
COMPARED = (
    ("poorhttp threading 8", "poorhttp threading", "#1f5fbf"),
    ("granian 1 thread", "granian", "#8a93a3"),
    ("uWSGI 8 threads", "uWSGI", "#8a93a3"),
    ("waitress 8 threads", "waitress", "#8a93a3"),
    ("gunicorn gthread 8", "gunicorn gthread", "#8a93a3"),
)
SHOP = """\
from flask import Flask

app = Flask(__name__)
prices = {"tea": 3}


@app.route("/")
def index():
    return "Welcome to the shop"
"""
#: Texts that are replaced in turn; a request follows each.
CHANGES = (
    ("", ""),
    ('"Welcome to the shop"', '"Tea and coffee"'),
    ('"Tea and coffee"', "f\"Coffee: {prices['coffee']}\""),
)


def draw_numbers(folder: Path) -> None:
    """Draw the CPU time of a small response, ours and that of four others."""
    records = store.load([ROOT / store.RESULTS.relative_to(ROOT) / "serve.jsonl"])
    found = Tables(command.by_study(records)["bench"])
    bars = []
    for row, name, colour in COMPARED:
        value = found.value("cpu-hello-hello-64", "CPU per request", row)
        bars.append(Bar(name, colour, [Spread(value, value, value, 1)], name.startswith("poor")))
    drawn = Bars(
        "cpu-compared",
        "CPU time of a small response",
        Axis("CPU per response", "µs", low=0),
        bars,
        subtitle="less is better",
    )
    (folder / "cpu-compared.svg").write_text(figure.document(drawn), encoding="utf-8")


def show_development(folder: Path) -> None:
    """Have `poorhttp dev` serve an application that is saved twice; the second time it fails."""
    with tempfile.TemporaryDirectory(prefix="shop-") as made:
        project = Path(made)
        file = project / "shop.py"
        file.write_text(SHOP, encoding="utf-8")
        said = io.StringIO()
        terminal = pexpect.spawn(
            sys.executable,
            ["-m", "poorhttp", "dev", "--bind", "127.0.0.1:0"],
            cwd=project,
            encoding="utf-8",
            dimensions=(40, COLUMNS),
            timeout=60,
        )
        terminal.logfile_read = said
        terminal.expect("PIN [0-9-]+\r\n")
        address = re.search(r"http://127\.0\.0\.1:\d+", said.getvalue())
        assert address is not None, said.getvalue()
        for old, new in CHANGES:
            if old:
                text = file.read_text(encoding="utf-8")
                file.write_text(text.replace(old, new), encoding="utf-8")
                terminal.expect("reloaded in [^\n]*\n")
            get(address[0])
            terminal.expect(r"GET [^\n]*\n")
        terminal_output = said.getvalue()
        with chromium() as driver, tab(driver) as shown:
            browser: Browser = shown
            browser.resize(900, 480)
            browser.open(address[0])
            browser.wait_text("KeyError")
            browser.picture(folder / "debug-page.png")
        terminal.sendintr()
        terminal.expect(pexpect.EOF)
    draw_terminal(folder / "dev-terminal.svg", terminal_output.replace(address[0], URL))


def get(url: str) -> None:
    """Ask for a page as curl does; a 500 is as good as any other response."""
    try:
        urllib.request.urlopen(url, timeout=60).read()
    except urllib.error.HTTPError as error:
        error.close()


def draw_terminal(path: Path, said: str) -> None:
    """Draw the output of a terminal, with its colours, below the command."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print("$ poorhttp dev", highlight=False)
    for line in AnsiDecoder().decode(said.replace("\r\n", "\n")):
        console.print(line, highlight=False)
    console.save_svg(str(path), title="poorhttp dev", unique_id="dev")
    # Its fonts would be fetched from the network.
    text = re.sub(r"@font-face \{.*?\}\n?", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    path.write_text(text, encoding="utf-8")


def main(folder: Path) -> None:
    """Write all pictures to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    draw_numbers(folder)
    show_development(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES)
