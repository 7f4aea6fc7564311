"""The study `compress`: JSON that is compressed on the fly."""

from __future__ import annotations

import http.client
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loadtests.apps.records import content
from loadtests.clients.connection import Answer
from loadtests.errors import ServerFailure
from loadtests.reporting.model import Column, Section, method
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.registry.wire import COMPRESSED, RECORDS
from loadtests.stats.results import Results, Spread
from loadtests.studies import comparison, tables
from loadtests.studies.bench.scenarios import Scenario
from loadtests.studies.comparison import CPU, RATE, Measure, median
from loadtests.studies.engine import Lab, Step, Trial, steps
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study

NAME = "compress"
SIZES = (10, 100)
"""KB."""
CODINGS = {"none": "", "gzip": "gzip", "br": "br", "zstd": "zstd"}
"""What is accepted, by the words in the names of scenarios."""
CONNECTIONS = 16
PLAIN = "none"


class Files(Application):
    """The same as files of a folder."""

    def answer(self, target: str, body: bytes) -> Answer:
        return Answer(200, "application/json", content(int(target.strip("/"))))


def scenario(size: int, coding: str) -> Scenario:
    """Answers of so many KB to clients that accept a coding."""
    fields = (("Accept-Encoding", CODINGS[coding]),) if CODINGS[coding] else ()
    what = f"json{size}-{coding}", f"{size} KB, {coding}", RECORDS, CONNECTIONS
    return Scenario(*what, target=f"/{size}", headers=fields, compared=False)


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """Answers of each size in each coding."""
    folder = lab.fixtures.enter_context(tempfile.TemporaryDirectory(prefix="loadtests-compress-"))
    Path(folder).chmod(0o755)
    for size in SIZES:
        (Path(folder) / str(size)).write_bytes(content(size))
    files = Files(folder)
    asked = [
        {
            server: replace(scenario(size, coding), application=server.application or files)
            for server in chosen
            # It has no other coding in Debian.
            if not (server.name.startswith("nginx") and coding in ("br", "zstd"))
        }
        for size in SIZES
        for coding in CODINGS
    ]
    return steps(lab, asked, NAME, take)


def take(trial: Trial, asked: Scenario) -> str:
    """A sample, with the size of an answer, of which the content must be right."""
    # Asked without Accept-Encoding first.
    with trial.running(asked.application, asked.target) as running:
        coding, size = _received(running.port, asked)
        sample = trial.observe(asked, running)
    sample |= {"coding": coding, "size": size}
    trial.lab.store.add("sample", **sample)
    return f"{sample['cpu_us']:8.1f} µs, {size:,} bytes{f' ({coding})' if coding else ''}"


def _received(port: int, asked: Scenario) -> tuple[str, int]:
    """Coding and bytes of an answer. Raises ServerFailure if its content is wrong."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", asked.target, headers=dict(asked.headers))
    answer = connection.getresponse()
    body, coding = answer.read(), answer.getheader("Content-Encoding", "")
    connection.close()
    if coding not in (CODINGS[asked.kind.partition("-")[2]], ""):
        raise ServerFailure(f"it answers with {coding}, which was not accepted")
    if _decoded(coding, body) != content(int(asked.target.strip("/"))):
        raise ServerFailure(f"what it has compressed by {coding} is something else")
    return coding, len(body)


def _decoded(coding: str, body: bytes) -> bytes:
    if coding == "gzip":
        import gzip

        return gzip.decompress(body)
    if coding == "br":
        import brotli

        return bytes(brotli.decompress(body))
    if coding == "zstd":
        import zstandard

        return bytes(zstandard.ZstdDecompressor().decompressobj().decompress(body))
    return body


def _ratio(results: Results, place: str, server: str) -> Spread | None:
    """The size against that without compression; none if it is not compressed."""
    found = {
        s["coding"]: s["size"]
        for s in results.samples
        if (s["scenario"], s["server"]) == (place, server)
    }
    [coding] = found or [""]
    whole = len(content(int(place.partition("-")[0].removeprefix("json"))))
    return tables.once(found[coding] / whole) if coding else None


def report(results: Results) -> list[Section]:
    """A section for each size and coding."""
    measures = (
        CPU,
        Measure(Column("of the size", "%", 1, 100), _ratio),
        median("size", "bytes"),
        RATE,
    )
    words = {
        scenario(size, coding).name: f"{size} KB, {coding}" for size in SIZES for coding in CODINGS
    }
    titles = {name: f"JSON of {told}".replace(PLAIN, "as it is") for name, told in words.items()}
    told = comparison.sections(
        results,
        *((f"{NAME}-{name}", title, {name: ""}, measures) for name, title in titles.items()),
        limits=True,
    )
    how = method(__file__, connections=CONNECTIONS)
    return told + comparison.ending(results, NAME, words, comparison.DETAILS, how)


STUDY = Study(
    NAME,
    "CPU time and size of JSON that is compressed on the fly",
    "",
    lambda: COMPRESSED,
    plan,
    report,
    scales=(FULL, QUICK, TINY),
    wrk=True,
)
