"""The command line of the studies: one command each, and `compare` for all of them."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from loadtests import programs, store
from loadtests.advise import report as advice
from loadtests.advise.trial import EXPERIMENT as ADVISE
from loadtests.arguments import choose, names, number, unknown
from loadtests.errors import LabError
from loadtests.measure import disturbance
from loadtests.measure.cpu_affinity import cores
from loadtests.replay import report as replay
from loadtests.reporting import markdown, promises, sheets, terminal
from loadtests.reporting.model import Section
from loadtests.reporting.provenance import colophon, lost
from loadtests.servers.registry import given
from loadtests.soak import report as soak
from loadtests.stats.results import Results, study_of
from loadtests.store import Record
from loadtests.studies import engine
from loadtests.studies.catalogue import STUDIES
from loadtests.studies.study import FULL, QUICK, TINY, Study
from loadtests.verdict import command as verdict
from loadtests.verdict import report as verdicts
from loadtests.verdict import rounds
from loadtests.verdict.sides import is_file

ORIGIN = "Made by `python -m loadtests report` from raw results; not edited by hand."
SCALES = (QUICK, FULL, TINY)


def add(commands: Any) -> None:
    for study in STUDIES.values():
        summary = f"{study.summary} ({study.source})" if study.source else study.summary
        command = commands.add_parser(study.name, help=summary, description=summary)
        if study.experiments:
            told = f"of: {' '.join(study.experiments)}; default all"
            command.add_argument("names", nargs="*", metavar="EXPERIMENT", help=told)
        _common(command, [study])
        study.arguments(command)


def add_compare(commands: Any) -> None:
    """Adds the command for two of anything, and for all studies."""
    summary = (
        "tell which of two is faster: commands, servers, commits or results; or run the ten old "
        "studies, or those named, one after the other, and make one page of it"
    )
    command = commands.add_parser("compare", help=summary, description=summary)
    told = f"A B, or studies, of: {' '.join(STUDIES)}"
    command.add_argument("names", nargs="*", metavar="A B", help=told)
    most = f"of two at most {rounds.Rounds.most}, of studies "
    lasts = f"of two {rounds.Load.seconds:g}, of studies "
    _common(command, list(STUDIES.values()), most, lasts)
    verdict.add_arguments(command)
    command.set_defaults(run=_compare)


def _compare(options: Namespace, command: str) -> int:
    """Two of anything; without any names, or with the names of studies, the studies."""
    known = all(any(study.startswith(name) for study in STUDIES) for name in options.names)
    pair = len(options.names) == 2 or any(map(is_file, options.names))
    if pair and not known:
        return verdict.run(options, command, publish)
    return measure(options, command)


def _common(command: ArgumentParser, chosen: list[Study], most: str = "", lasts: str = "") -> None:
    """Adds the options of studies; `most` and `lasts` are defaults of two that are compared."""
    scales, first = command.add_mutually_exclusive_group(), chosen[0]
    many = len(chosen) > 1
    ours = not many and not first.source
    told = {
        QUICK.name: "a look" if ours else "a look, in less than two minutes each",
        FULL.name: "as thoroughly as it is reported",
        TINY.name: "whether it works",
        "medium": "less of it, as docs/ shows it",
    }
    default, *_ = known = SCALES if many else first.scales
    for scale in known:
        words = told[scale.name]
        if ours:
            rounds = f"{scale.rounds} round{'s' * (scale.rounds > 1)}" if scale.rounds else "rounds"
            words += f": {rounds} of {scale.seconds:g} s"
        words += " (default)" if scale is default else ""
        how: dict[str, Any] = {"action": "store_const", "const": scale.name, "help": words}
        scales.add_argument(f"--{scale.name}", dest="scale", default=default.name, **how)
    usual = "all" if many else ",".join(first.usual) or "all"
    at_least_one = number(1, kind=int, problem="must be at least 1")
    seconds = number(0.1, 600, problem="must be from 0.1 to 600 seconds")
    options: list[tuple[str, Callable[[str], Any], str, str]] = [
        ("rounds", at_least_one, "N", f"so many rounds (default: {most}those of the scale)"),
        ("seconds", seconds, "S", f"length of a sample (default: {lasts}that of the scale)"),
        ("servers", names, "NAME,NAME", f"names or beginnings; default {usual}"),
        ("output", Path, "FILE", "append the raw results here (JSON Lines)"),
        ("resume", Path, "FILE", "go on with the run that was interrupted there"),
        ("page", Path, "FILE", "the page (default: beside the results)"),
    ]
    for flag, kind, metavar, words in options:
        command.add_argument(f"--{flag}", type=kind, metavar=metavar, help=words)
    given.add_arguments(command)
    command.set_defaults(studies=chosen, run=measure)


def add_report(command: ArgumentParser) -> None:
    """Adds what can be made of results of studies."""
    group = command.add_argument_group("studies", "without any of these: the tables, here")
    for name, metavar, what in (
        ("html", "FILE", "a page of tables and figures that needs nothing but itself"),
        ("markdown", "FILE", "the same as Markdown, its figures in a folder beside it"),
        ("figures", "FOLDER", "the figures, as SVG; of the Markdown, too"),
        ("csv", "FOLDER", "each table and each figure as comma-separated values"),
    ):
        before = ["--plots"] if name == "figures" else []
        group.add_argument(f"--{name}", *before, type=Path, metavar=metavar, help=what)


def measure(options: Namespace, command: str) -> int:
    """Runs what was asked for, tells the outcome and makes the page; returns the exit code."""
    chosen: list[Study] = options.studies
    if len(chosen) > 1:
        wanted = options.names or [study.name for study in chosen if study.source]
        chosen = choose("study", chosen, wanted)
    run, path, finished = store.now(), options.output, set[str]()
    scale: str = options.scale
    if options.resume:
        path = options.resume
        run, scale, finished = _interrupted(options.resume)
    path = (path or store.new_path(run)).resolve()
    writing = store.Store(path, run)
    server_core, client_core = cores()
    # The lab itself keeps off the server's core.
    os.sched_setaffinity(0, {client_core})
    disturbance.adopt()
    unmade = []
    # Fixtures that a plan makes vanish with the run.
    fixtures = contextlib.ExitStack()
    try:
        for study in chosen:
            servers = _servers(study, options, len(chosen) > 1)
            own = _own(study, options)
            amount = next((one for one in study.scales if one.name == scale), study.scales[0])
            rounds, seconds = options.rounds or amount.rounds, options.seconds or amount.seconds
            amount = replace(amount, rounds=rounds, seconds=seconds)
            lab = engine.Lab(writing, seconds, rounds, server_core, client_core, fixtures=fixtures)
            planned = study.plan(lab, amount, servers, own)
            writing.study = study.name
            try:
                about = {"study": study.name, "scale": scale}
                engine.run(lab, planned, command, finished, with_wrk=study.wrk, **about)
            except LabError as error:
                if len(chosen) == 1:
                    raise
                unmade.append(study.name)
                print(f"{programs.NAME}: {study.name}: {error}", file=sys.stderr)
    finally:
        fixtures.close()
        writing.close()
        kept = [] if writing.lost or not path.is_file() else store.load([path])
        # Those of the run that was interrupted, too; all of ours, if the disk was full.
        records = [record for record in kept if record["run"] == run] or writing.records
        if writing.lost:
            records = [*records, {"record": "note", "run": run, "lost": writing.lost}]
        results = Results(records)
        if told := sections(results, chosen):
            # The report in short; its tables if it has no answers.
            if terminal.short(told):
                terminal.tell(told, lost(results))
            else:
                print(markdown.tables([*told, *lost(results)]))
            where = options.page or path.with_suffix(".html")
            name = title([one.name for one in chosen])
            unmade += [] if publish(where, name, told, results) else ["page"]
        if records:
            print(f"raw results: {writing.lost or path}", file=sys.stderr)
    strict = {study.name for study in chosen if study.strict}
    mine = {server.name for server in given.chosen(options)}
    failed = any(one.get("study") in strict or one["server"] in mine for one in results.failures)
    return int(bool(unmade or writing.lost or failed))


def _servers(study: Study, options: Namespace, many: bool) -> Sequence[Any]:
    """Those that were asked for, of `many` studies those that each knows; else the usual ones.

    Servers with a command or a URL come first; without `--servers` they are all.
    """
    known, asked = study.servers(), options.servers
    theirs = given.chosen(options, (one.name for one in known))
    if theirs and not study.given:
        able = " ".join(one.name for one in STUDIES.values() if one.given)
        raise LabError(f"{study.name} has servers of its own only. Those that take others: {able}")
    if asked and not many:
        return [*theirs, *choose("server", known, asked)]
    if asked or theirs:
        return [*theirs, *(one for one in known if one.name.startswith(tuple(asked or ())))]
    return [one for one in known if one.name in study.usual] or known


def _own(study: Study, options: Namespace) -> Namespace:
    """The options with those of the study: where several run each has its defaults."""
    parser = ArgumentParser()
    study.arguments(parser)
    own = Namespace(**{**vars(parser.parse_args([])), **vars(options)})
    # Who names servers gets those, and not a study's usual choice.
    own.servers = options.servers or [one.name for one in options.given or ()] or None
    if study.experiments:
        asked = options.names if len(options.studies) == 1 else ()
        for name in asked:
            if name not in study.experiments:
                raise unknown("experiment", name, study.experiments, " ")
        own.names = asked or study.experiments
    return own


def _interrupted(path: Path) -> tuple[str, str, set[str]]:
    """The last run of a file, its scale, and the names of its steps that were taken."""
    records = store.load([path])
    scales = {r["run"]: r["scale"] for r in records if r["record"] == "run" and "scale" in r}
    if not records or records[-1]["run"] not in scales:
        raise LabError(f"{path} has no run of a study that could be resumed")
    run = str(records[-1]["run"])
    done = {str(r["what"]) for r in records if r["run"] == run and r["record"] == "done"}
    return run, str(scales[run]), done


def title(names: Sequence[str]) -> str:
    """What a page about these studies is called."""
    return "All studies" if len(names) > 2 else " and ".join(names).capitalize()


def notices(results: Results) -> list[Section]:
    """What has to be known before anything is compared."""
    own = {name: at for run in results.runs for name, at in run.get("own", {}).items()}
    if not own:
        return []
    words = ", ".join(f"{name} answers GET {target}" for name, target in own.items())
    answer = f"{words} of its own application, whatever the study asks of others."
    return [Section("Servers of your own", answer=answer)]


def sections(results: Results, chosen: Sequence[Study]) -> list[Section]:
    """What is told of the studies of which something was measured."""
    told = notices(results)
    for study in chosen:
        own = results.of_study(study.name, study.experiments)
        if own.samples or own.figures or own.failures:
            known = sum((results.of_study(other, ()) for other in study.also), own)
            if found := promises.table(study.name, study.promises, known):
                answer = promises.answer(study.promises, known)
                told.append(Section("Promised and measured", parts=[found], answer=answer))
            words, made = own.disturbed(), study.report(own)
            told += undecided(made, words) if words else made
    return told


def undecided(told: Sequence[Section], words: str) -> list[Section]:
    """What is told of a busy machine: the first sentence says so, and no winner is named."""
    answers = chain(
        [f"{words[0].upper()}{words[1:]}, so no winner is named."],
        repeat("Not to be told: the machine was busy."),
    )
    return [replace(one, answer=next(answers)) if one.answer else one for one in told]


def by_study(records: list[Record]) -> dict[str, list[Section]]:
    """What is told of each study of which something was measured, of soaks, replays and advice."""
    results = Results(records)
    told = {study.name: sections(results, [study]) for study in reported(records)}
    told[soak.NAME] = soak.sections(records)
    told[ADVISE] = advice.stored(results)
    told[replay.NAME] = replay.sections(results)
    told[rounds.NAME] = verdicts.sections(records)
    return {name: own for name, own in told.items() if own}


def side_by_side(files: Sequence[Path]) -> dict[str, list[Section]]:
    """What is told of each study; what was measured apart is ranked apart.

    Apart are runs of different files, machines or loads.
    """
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for file in files:
        records = store.load([file])
        places = {
            (run["run"], run.get("study")): (
                file.name,
                *(run["machine"].get(name) for name in ("cpu", "cores", "memory", "kernel")),
                *(run.get(name) for name in ("scale", "server_core", "client_core")),
            )
            for run in records
            if run["record"] == "run"
        }
        for one in records:
            place = places.get((one["run"], one.get("study"))) or next(
                (at for (run, _), at in places.items() if run == one["run"]), (file.name,)
            )
            groups.setdefault(place, []).append(one)
    if len(groups) < 2:
        return by_study([one for own in groups.values() for one in own])
    told: dict[str, list[Section]] = {}
    for nth, ((name, *_), records) in enumerate(groups.items(), 1):
        for study, own in by_study(records).items():
            apart = [replace(one, title=f"{one.title} ({nth}: {name})") for one in own]
            told.setdefault(study, []).extend(apart)
    return told


def tell(options: Namespace, records: list[Record]) -> None:
    """Makes what was asked for of stored results: by default the tables, for a terminal.

    Raises LabError if there is nothing to tell, or a file cannot be written.
    """
    results, studies = Results(records), side_by_side(options.results)
    told = [section for own in studies.values() for section in own]
    if not told:
        raise LabError("there is nothing to report in these results")
    if options.html:
        _write_page(options.html, title(list(studies)), told, results)
    with _writing():
        if options.csv:
            sheets.write(told, options.csv)
        if options.markdown:
            write_markdown(options.markdown, results, studies, options.figures)
        elif options.figures:
            markdown.write_figures(told, options.figures)
    if not any((options.html, options.csv, options.markdown, options.figures)):
        print(markdown.tables([*told, *lost(results)]))


def write_markdown(
    page: Path,
    results: Results,
    studies: Mapping[str, Sequence[Section]],
    figures: Path | None,
    top: Sequence[str] = (),
    end: str = "",
    figure: str | None = None,
) -> None:
    """A page about these studies, its figures in a folder, or else beside it.

    One of docs/ begins with its `top`, shows one `figure` only, and has an `end`.
    """
    told = [section for own in studies.values() for section in own]
    folder = figures or page.with_suffix("")
    link = Path(os.path.relpath(folder, page.parent)).as_posix()
    made, first = markdown.with_figure([*told, *colophon(results)], folder, link, figure)
    parts = [*top, *first, made, end] if top else [f"# {title(list(studies))}", ORIGIN, made]
    page.write_text("\n\n".join(part.strip() for part in parts if part) + "\n", encoding="utf-8")


def publish(where: Path, name: str, told: list[Section], results: Results) -> bool:
    """Writes a page and says where it is, or why it could not be written."""
    try:
        _write_page(where, name, told, results)
    except LabError as error:
        print(f"{programs.NAME}: {error}", file=sys.stderr)
        return False
    print(f"\npage: {where}", file=sys.stderr)
    return True


def _write_page(path: Path, name: str, told: list[Section], results: Results) -> None:
    with _writing():
        # Only now: what pages and figures need is slow to load, and a run does without it.
        from loadtests.reporting import page

        text = page.html(name, told, results)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        # Half a page is none.
        if path.is_file():
            path.unlink()
        raise LabError(f"{path}: {error.strerror}") from None


@contextlib.contextmanager
def _writing() -> Iterator[None]:
    """Makes a LabError of a file that cannot be written, and of a library that is missing."""
    try:
        yield
    except ImportError as error:
        raise LabError(f"there is no {error.name}: pip install {error.name}") from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise LabError(f"{where}{error.strerror}") from None


def reported(records: Sequence[Record]) -> list[Study]:
    """The studies of which these are records."""
    told = {str(record["study"]) for record in records if "study" in record}
    told |= {study_of(record) for record in records if record["record"] == "run"}
    return [study for study in STUDIES.values() if study.name in told]
