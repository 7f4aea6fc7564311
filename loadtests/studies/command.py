"""The command line of the studies: one command each, and `compare` for all of them."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadtests import store
from loadtests.arguments import names
from loadtests.choice import choose, unknown
from loadtests.errors import LabError
from loadtests.measure.cpu_affinity import cores
from loadtests.reporting import markdown, markdown_insert, promises, sheets
from loadtests.reporting.model import Section
from loadtests.reporting.provenance import colophon, lost
from loadtests.stats.results import Results, study_of
from loadtests.store import Record
from loadtests.studies import engine
from loadtests.studies.catalogue import STUDIES
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study

COMPARE = "compare"
ORIGIN = "Made by `python -m loadtests report` from raw results; not edited by hand."
SCALES = (QUICK, FULL, TINY)


def add(commands: Any) -> None:
    """Adds a command for each study, and one for all."""
    known = STUDIES
    for study in known.values():
        summary = f"{study.summary} ({study.source})" if study.source else study.summary
        command = commands.add_parser(study.name, help=summary, description=summary)
        if study.experiments:
            command.add_argument(
                "names",
                nargs="*",
                metavar="EXPERIMENT",
                help=f"of: {' '.join(study.experiments)}; default all",
            )
        _common(command, [study])
        study.arguments(command)
    summary = (
        "run the ten old studies, or those named, one after the other, and make one page of it"
    )
    command = commands.add_parser(COMPARE, help=summary, description=summary)
    command.add_argument("names", nargs="*", metavar="STUDY", help=f"of: {' '.join(known)}")
    _common(command, list(known.values()))


def _common(command: argparse.ArgumentParser, chosen: list[Study]) -> None:
    scales, first = command.add_mutually_exclusive_group(), chosen[0]
    ours = len(chosen) == 1 and not first.source
    told = {
        QUICK.name: "a look" if ours else "a look, in less than two minutes each",
        FULL.name: "as thoroughly as it is reported",
        TINY.name: "whether it works",
    }
    default, *_ = known = first.scales if len(chosen) == 1 else SCALES
    for scale in known:
        words = told[scale.name]
        if ours:
            rounds = f"{scale.rounds} round{'s' * (scale.rounds > 1)}" if scale.rounds else "rounds"
            words += f": {rounds} of {scale.seconds:g} s"
        scales.add_argument(
            f"--{scale.name}",
            dest="scale",
            action="store_const",
            const=scale.name,
            default=default.name,
            help=words + (" (default)" if scale is default else ""),
        )
    command.add_argument(
        "--rounds", type=_rounds, metavar="N", help="instead of those of the scale"
    )
    command.add_argument("--seconds", type=_seconds, metavar="S", help="of each sample, likewise")
    command.add_argument(
        "--servers",
        type=names,
        metavar="NAME,NAME",
        help="names or beginnings; default "
        + ("all" if len(chosen) > 1 else ",".join(first.usual) or "all"),
    )
    command.add_argument(
        "--output", type=Path, metavar="FILE", help="append the raw results here (JSON Lines)"
    )
    command.add_argument(
        "--resume", type=Path, metavar="FILE", help="go on with the run that was interrupted there"
    )
    command.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="the page (default: beside the results)",
    )
    command.set_defaults(studies=chosen)


def _rounds(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.1 <= value <= 600:
        raise argparse.ArgumentTypeError("must be from 0.1 to 600 seconds")
    return value


def add_report(command: argparse.ArgumentParser) -> None:
    """Adds what can be made of results of studies."""
    group = command.add_argument_group("studies", "without any of these: the tables, here")
    for name, metavar, what in (
        ("html", "FILE", "a page of tables and figures that needs nothing but itself"),
        ("markdown", "FILE", "the same as Markdown, its figures in a folder beside it"),
        ("figures", "FOLDER", "the figures, as SVG; of the Markdown, too"),
        ("csv", "FOLDER", "each table and each figure as comma-separated values"),
        ("into", "FILE", "the tables, in short, into this page, where it is marked"),
    ):
        before = ["--plots"] if name == "figures" else []
        group.add_argument(f"--{name}", *before, type=Path, metavar=metavar, help=what)
    # Results say of which study they are; before, the page had to be named.
    for name in ("reliability", "operations", "content", "proxies", "cluster", "development"):
        command.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)


def is_one(command: str) -> bool:
    """Whether a command is that of a study."""
    return command == COMPARE or command in STUDIES


def measure(options: argparse.Namespace, command: str) -> int:
    """Runs what was asked for, tells the outcome and makes the page; returns the exit code."""
    chosen: list[Study] = options.studies
    if len(chosen) > 1:
        names = options.names or [study.name for study in chosen if study.source]
        chosen = choose("study", chosen, names)
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
    unmade = []
    # Material that a plan makes vanishes with the run.
    material = contextlib.ExitStack()
    try:
        for study in chosen:
            servers = study.servers()
            if options.servers:
                servers = _those(study, options.servers, one_of_many=len(chosen) > 1)
            elif study.usual:
                servers = [one for one in servers if one.name in study.usual]
            own = _own(study, options)
            amount = _scale(study, scale, options)
            lab = engine.Lab(
                writing, amount.seconds, amount.rounds, server_core, client_core, material=material
            )
            planned = study.plan(lab, amount, servers, own)
            writing.study = study.name
            try:
                about = {"study": study.name, "scale": scale}
                engine.run(lab, planned, command, finished, with_wrk=study.wrk, **about)
            except LabError as error:
                if len(chosen) == 1:
                    raise
                unmade.append(study.name)
                print(f"loadtests: {study.name}: {error}", file=sys.stderr)
    finally:
        material.close()
        writing.close()
        kept = [] if writing.lost or not path.is_file() else store.load([path])
        # Those of the run that was interrupted, too; all of ours, if the disk was full.
        records = [record for record in kept if record["run"] == run] or writing.records
        if writing.lost:
            records = [*records, {"record": "note", "run": run, "lost": writing.lost}]
        told = sections(Results(records), chosen)
        if told:
            _print(told, lost(Results(records)))
            where = options.page or path.with_suffix(".html")
            try:
                _write_page(where, title(chosen), told, Results(records))
                print(f"\npage: {where}", file=sys.stderr)
            except LabError as error:
                unmade.append("page")
                print(f"loadtests: {error}", file=sys.stderr)
        if records:
            print(f"raw results: {writing.lost or path}", file=sys.stderr)
    strict = {study.name for study in chosen if study.strict}
    failed = any(one.get("study") in strict for one in Results(records).failures)
    return int(bool(unmade or writing.lost or failed))


def _own(study: Study, options: argparse.Namespace) -> argparse.Namespace:
    """The options with those of the study: where several run each has its defaults."""
    parser = argparse.ArgumentParser()
    study.arguments(parser)
    own = argparse.Namespace(**{**vars(parser.parse_args([])), **vars(options)})
    if study.experiments:
        asked = options.names if len(options.studies) == 1 else ()
        for name in asked:
            if name not in study.experiments:
                raise unknown("experiment", name, study.experiments, " ")
        own.names = asked or study.experiments
    return own


def _scale(study: Study, name: str, options: argparse.Namespace) -> Scale:
    """The study's scale of this name, with the rounds and seconds that were asked for."""
    scale = next((one for one in study.scales if one.name == name), study.scales[0])
    return replace(
        scale,
        rounds=options.rounds or scale.rounds,
        seconds=options.seconds or scale.seconds,
    )


def _those(study: Study, names: Sequence[str], *, one_of_many: bool) -> Sequence[Any]:
    try:
        return choose("server", study.servers(), names)
    except LabError:
        if one_of_many:
            return [one for one in study.servers() if one.name.startswith(tuple(names))]
        raise


def _interrupted(path: Path) -> tuple[str, str, set[str]]:
    """The last run of a file, its scale, and the names of its steps that were taken."""
    records = store.load([path])
    scales = {r["run"]: r["scale"] for r in records if r["record"] == "run" and "scale" in r}
    if not records or records[-1]["run"] not in scales:
        raise LabError(f"{path} has no run of a study that could be resumed")
    run = str(records[-1]["run"])
    done = {str(r["what"]) for r in records if r["run"] == run and r["record"] == "done"}
    return run, str(scales[run]), done


def _print(told: list[Section], missing: list[Section]) -> None:
    """The report in short; its tables if it has no answers, or without Rich."""
    try:
        # Only now: a run does without it.
        from loadtests.reporting import terminal
    except ImportError:
        shorter = False
    else:
        shorter = terminal.short(told)
    if shorter:
        terminal.tell(told, missing)
    else:
        print(markdown.tables([*told, *missing]))


def title(chosen: Sequence[Study]) -> str:
    """What a page about these studies is called."""
    if len(chosen) > 2:
        return "All studies"
    return " and ".join(study.name for study in chosen).capitalize()


def sections(results: Results, chosen: Sequence[Study]) -> list[Section]:
    """What is told of the studies of which something was measured."""
    told: list[Section] = []
    for study in chosen:
        own = results.of_study(study.name, study.experiments)
        if own.samples or own.figures or own.failures:
            known = sum((results.of_study(other, ()) for other in study.also), own)
            found = promises.table(study.name, study.promises, known)
            if found:
                answer = promises.answer(study.promises, known)
                own_table = replace(found, title="")
                told.append(Section(found.title, parts=[own_table], answer=answer))
            told += study.report(own)
    return told


def tell(options: argparse.Namespace, records: list[Record]) -> None:
    """Makes what was asked for of stored results: by default the tables, for a terminal.

    Raises LabError if there is nothing to tell, or a file cannot be written.
    """
    results = Results(records)
    chosen = reported(records)
    told = sections(results, chosen)
    if not told:
        raise LabError("there is nothing to report in these results")
    if options.html:
        _write_page(options.html, title(chosen), told, results)
    with _writing():
        if options.csv:
            sheets.write(told, options.csv)
        if options.markdown:
            folder = options.figures or options.markdown.with_suffix("")
            link = Path(os.path.relpath(folder, options.markdown.parent)).as_posix()
            made = markdown.document([*told, *colophon(results)], folder, link)
            head = f"# {title(chosen)}, measured\n\n{ORIGIN}\n\n"
            options.markdown.write_text(head + made, encoding="utf-8")
        elif options.figures:
            markdown.write_figures(told, options.figures)
    if options.into:
        for study in chosen:
            short = [one for one in sections(results, [study]) if not one.detail]
            markdown_insert.insert(options.into, study.name, markdown.tables(short, level=3))
    if not is_asked(options):
        print(markdown.tables([*told, *lost(results)]))


def is_asked(options: argparse.Namespace) -> bool:
    """Whether something is to be made of results of studies."""
    return any((options.html, options.csv, options.markdown, options.figures, options.into))


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


@contextmanager
def _writing() -> Iterator[None]:
    """Makes a LabError of a file that cannot be written, and of a library that is missing."""
    try:
        yield
    except ImportError as error:
        raise LabError(f"there is no {error.name}: pip install '.[lab]'") from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise LabError(f"{where}{error.strerror}") from None


def reported(records: Sequence[Record]) -> list[Study]:
    """The studies of which these are records."""
    named = {str(record["study"]) for record in records if "study" in record}
    named |= {study_of(record) for record in records if record["record"] == "run"}
    return [study for study in STUDIES.values() if study.name in named]
