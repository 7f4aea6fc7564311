"""All servers compared in operation, from stored records to Markdown.

Measures nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadtests.reporting import ending, markdown_insert, provenance
from loadtests.reporting.model import MIB
from loadtests.servers.registry.lifecycle import SERVERS
from loadtests.stats.results import Results
from loadtests.studies.lifecycle.experiments import KEEPERS
from loadtests.studies.lifecycle.promises import measured, table, values
from loadtests.studies.lifecycle.trial import FULL


@dataclass(frozen=True)
class Row:
    """A line of the comparison: what an experiment shows of a server, from its figures."""

    experiment: str
    what: str
    cell: Callable[[Results, str, str], str]


def _failed(prefix: str = "") -> Callable[[Results, str, str], str]:
    def cell(results: Results, experiment: str, server: str) -> str:
        failed = sum(values(results, experiment, server, f"{prefix}failed"))
        requests = sum(values(results, experiment, server, f"{prefix}requests"))
        if not requests + failed:
            return ""
        return f"{failed:,.0f} of {requests + failed:,.0f}"

    return cell


def _sum(name: str) -> Callable[[Results, str, str], str]:
    return lambda results, experiment, server: (
        f"{sum(values(results, experiment, server, name)):,.0f}"
    )


def _share(part: str, whole: str) -> Callable[[Results, str, str], str]:
    return lambda results, experiment, server: (
        f"{sum(values(results, experiment, server, part)):,.0f} of "
        f"{sum(values(results, experiment, server, whole)):,.0f}"
    )


def _median(name: str, scale: float = 1, places: int = 2) -> Callable[[Results, str, str], str]:
    def cell(results: Results, experiment: str, server: str) -> str:
        found = values(results, experiment, server, name)
        return f"{statistics.median(found) * scale:,.{places}f}" if found else ""

    return cell


def _highest(name: str, scale: float = 1, places: int = 2) -> Callable[[Results, str, str], str]:
    def cell(results: Results, experiment: str, server: str) -> str:
        found = values(results, experiment, server, name)
        return f"{max(found) * scale:,.{places}f}" if found else ""

    return cell


def _whether(name: str) -> Callable[[Results, str, str], str]:
    def cell(results: Results, experiment: str, server: str) -> str:
        found = values(results, experiment, server, name)
        return ("yes" if min(found) else "no") if found else ""

    return cell


ROWS = (
    Row("reload", "reloads", _sum("reloads")),
    Row("reload", "failed requests", _failed()),
    Row("reload", "p99 of quick requests, ms", _median("p99", 1e3)),
    Row("reload", "slowest quick request, ms", _highest("longest", 1e3, 0)),
    Row("upgrade", "upgrades", _sum("upgrades")),
    Row("upgrade", "failed requests", _failed()),
    Row("recycle", "workers that answered", _sum("workers that answered")),
    Row("recycle", "failed requests", _failed()),
    Row("recycle", "p99 of quick requests, ms", _median("p99", 1e3)),
    Row("kill", "workers killed", _sum("killed")),
    Row("kill", "requests lost with them", _sum("failed with a killed worker")),
    Row("kill", "other failed requests", _failed()),
    Row("timeout", "hung requests that were ended", _share("hung and ended", "hung")),
    Row("timeout", "other failed requests", _failed()),
    Row("stop", "failed requests", _failed()),
    Row("stop", "slowest end, s", _highest("seconds to the end")),
    Row("broken", "version that cannot be imported: failed requests", _failed("application: ")),
    Row("broken", "the log says why", _whether("application: said why")),
    Row(
        "broken",
        "the next good version can be loaded",
        _whether("application: can be reloaded afterwards"),
    ),
    Row("broken", "broken file: failed requests", _failed("configuration: ")),
    Row("broken", "the log says why", _whether("configuration: said why")),
    *(Row("preload", f"PSS {when}, MiB", _median(f"pss, {when}", MIB, 1)) for when in FULL.memory),
    Row("balance", "busiest / mean, requests", _median("busiest / mean, requests")),
    Row("balance", "busiest / mean, connections", _median("busiest / mean, connections")),
)


def comparison(results: Results) -> list[str]:
    """All servers in one table; the numbers behind a dash are reasons, which follow it."""
    seen = {figure["server"] for figure in results.figures}
    columns = [one for one in SERVERS if one.name in seen]
    if not columns:
        return []
    lines = [
        f"| | | {' | '.join(one.name for one in columns)} |",
        f"|---|---|{'--:|' * len(columns)}",
    ]
    reasons: list[str] = []

    def because(reason: str) -> str:
        if reason not in reasons:
            reasons.append(reason)
        return f"– ({reasons.index(reason) + 1})"

    last = ""
    for row in ROWS:
        if not measured(results, row.experiment):
            continue
        cells = []
        for one in columns:
            if row.experiment in one.cannot:
                cells.append(because(f"{one.name} {one.cannot[row.experiment]}"))
            elif one.name in measured(results, row.experiment):
                cells.append(row.cell(results, row.experiment, one.name) or "–")
            else:
                cells.append(because(_why_not(results, row.experiment, one.name)))
        title = "" if row.experiment == last else f"`{row.experiment}`"
        last = row.experiment
        lines.append(f"| {title} | {row.what} | {' | '.join(cells)} |")
    return [*lines, "", *(f"{number}. {reason}." for number, reason in enumerate(reasons, 1))]


def _why_not(results: Results, experiment: str, server: str) -> str:
    for failure in results.failures:
        if failure["server"] == server and failure["what"].startswith(f"{experiment},"):
            return f"{server}: {failure['reason']}"
    return f"{server} was not measured"


def faults(results: Results) -> list[str]:
    """What it was that failed, by server and experiment, with an example."""
    kinds: dict[tuple[str, str], dict[str, int]] = {}
    examples: dict[tuple[str, str], str] = {}
    for record in results.faults:
        key = (record["experiment"], record["server"])
        table = kinds.setdefault(key, {})
        for kind, count in record["kinds"].items():
            table[kind] = table.get(kind, 0) + count
        if record["shown"]:
            first = record["shown"][0]
            examples.setdefault(key, f"{first['sent']}: {first['kind']}, {first['what']}")
    lines = ["| experiment | server | what failed | the first |", "|---|---|---|---|"]
    for (experiment, server), table in kinds.items():
        counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(table.items()))
        example = examples.get((experiment, server), "").replace("|", "\\|")[:160]
        lines.append(f"| {experiment} | {server} | {counts} | {example} |")
    return lines if len(lines) > 2 else []


def logs(results: Results) -> list[str]:
    """What the logs said of reloads that failed and of requests that hung, the first time."""
    lines: list[str] = []
    told = set()
    for note in results.notes:
        key = (note["experiment"], note["server"], note["name"])
        if note["name"] == "command" or key in told or not note["text"]:
            continue
        told.add(key)
        broken = note["experiment"] == "broken"
        what = f"broken {note['name']}" if broken else note["experiment"]
        lines += ["", f"{note['server']}, {what}:", "", "```text", note["text"], "```"]
    return lines


def commands(results: Results) -> list[str]:
    """How each server was started, and what was different in other experiments."""
    told: dict[str, dict[str, str]] = {}
    for note in results.notes:
        if note["name"] == "command":
            told.setdefault(note["server"], {})[note["experiment"]] = note["text"]
    lines = ["| server | experiment | command |", "|---|---|---|"]
    for server, by_experiment in told.items():
        usual = max(by_experiment.values(), key=list(by_experiment.values()).count)
        lines.append(f"| {server} | | `{provenance.bare(usual)}` |")
        known = _options(usual)
        for experiment, command in by_experiment.items():
            others = [option for option in _options(command) if option not in known]
            if others:
                lines.append(f"| | {experiment} | `… {provenance.bare(' '.join(others))}` |")
    return lines if len(lines) > 2 else []


def _options(command: str) -> list[str]:
    """The words of a command, options together with their values."""
    options: list[str] = []
    for word in command.split():
        if options and options[-1].startswith("-") and not word.startswith("-"):
            options[-1] += f" {word}"
        else:
            options.append(word)
    return options


def summary(results: Results) -> list[str]:
    """What a person wants to see at the end of a run."""
    return [*comparison(results), "", *faults(results)]


BEGIN, END = "<!-- measured -->", "<!-- end of what was measured -->"


def insert(results: Results, page: Path) -> None:
    """Puts the tables into a page that somebody has written, between BEGIN and END.

    Raises LabError if there is no such place.
    """
    markdown_insert.insert_parts(page, BEGIN, END, (table(results), comparison(results)))


def markdown(results: Results) -> str:
    """The page: promises, the comparison, what failed, and how it was measured."""
    parts = [
        ["# Operations, measured"],
        [
            "Made by `python -m loadtests report --operations loadtests/results/operations.jsonl`;",
            "not edited by hand. What it means for whoever runs the server stands in",
            "[operations.md](../operations.md).",
        ],
        ["## Promised and measured"],
        table(results),
        ["## All servers"],
        comparison(results),
    ]
    if found := faults(results):
        parts += [["## What failed"], found]
    said = logs(results)
    logged = [["## What the logs said"], said[1:]] if said else []
    end = ending.ending(results, METHOD.splitlines(), commands(results), between=logged)
    return ending.page(parts + end)


METHOD = f"""\
- Steady load: one process with a thread for each client. Eight keep a connection and think up to
  0.3 s between requests, two hardly think, three use a connection for each request (half of them
  HTTP/1.0), four send bodies of 10 octets to 300 KiB, some in two parts, two ask for answers that
  take 50 to 400 ms, two send three requests at once. Every answer is checked to the last octet, and
  carries the token of its request. uWSGI drops pipelined requests; there nobody sends them.
- A client honours `Connection: close`, and connects anew when it sees an idle connection closed. A
  reset, an end of the connection or an error after it began to send, a refused connection, a wrong
  answer, a 5xx, or none in 30 seconds is a failed request. Those who think or send bodies are far
  away: a request is up to 20 ms on its way, in which they do not see the connection close. So they
  lose requests to servers that close idle connections at once.
- `reload`: a new version of the application each time. The next reload comes when the new version
  answers and all old workers are gone, or {FULL.grace:.0f} s later. gunicorn and granian: HUP.
  uWSGI: chain reload with `lazy-apps`.
- `upgrade`: USR2; gunicorn then TERM for the old main process, since WINCH is for daemons only.
- `kill`: a worker is stopped, the connections that it holds are noted, and it is killed, one each
  second. What fails on those connections was lost with it.
- `timeout`: half of the requests that hang sleep in C, the others wait in Python.
- In these two uWSGI is without its router, which lets a client wait on whose worker was killed.
- `stop`: TERM for the main process. From then on a refused connection is no failure.
- `broken`: a reload that cannot work, watched for {FULL.watched:.0f} s; then a good one.
  granian has no configuration file, and a chain reload of uWSGI does not read it.
- `preload`: requests for `apps/flaskapp`; servers take turns. PSS divides a page that several
  processes share. Python's collector looks at everything for the first time after some thousand
  requests, and what it looks at is shared no more, unless it is frozen.
- `balance`: {KEEPERS} connections opened together, requests without a pause for 5 s.
"""
