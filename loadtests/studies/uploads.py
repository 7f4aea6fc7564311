"""The study `uploads`: a large body for an application that hashes it as it comes."""

from __future__ import annotations

import functools
import hashlib
import os
import random
import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from loadtests.clients.connection import Connection
from loadtests.errors import ServerFailure
from loadtests.measure import resources
from loadtests.reporting.model import MIB, Section, method
from loadtests.reporting.promises import Promise, mode
from loadtests.servers.application import Application
from loadtests.servers.registry import Server
from loadtests.servers.registry.wire import UPLOADS
from loadtests.stats.results import Results
from loadtests.studies import comparison, sample
from loadtests.studies.comparison import Measure, median
from loadtests.studies.engine import Lab, Step, Trial, rounds
from loadtests.studies.study import FULL, QUICK, TINY, Scale, Study, scales

NAME = "uploads"
HASHED = Application("loadtests/apps", "hashed")
BLOCK = 1 << 20
"""Bytes that are sent again and again."""
WARM = 8
"""Bodies of one block before memory is looked at."""
PATIENCE = 120.0
MOST = 8
"""MiB that a streamed body may take."""
WHOLE = "whole body first"
SCALES = scales(
    *(FULL, QUICK, TINY),
    # Blocks of a body.
    blocks=(1024, 256, 4),
)


@functools.cache
def _block() -> bytes:
    return random.Random(1).randbytes(BLOCK)


@functools.cache
def expected(blocks: int) -> tuple[str, float]:
    """The digest of a body, and the CPU seconds that it takes."""
    before, digest = time.process_time(), hashlib.sha256()
    for _ in range(blocks):
        digest.update(_block())
    return digest.hexdigest(), time.process_time() - before


def upload(port: int, blocks: int) -> str:
    """Sends a body, without copying it in this process; the answer.

    Raises ServerFailure, or OSError if the connection ends before.
    """
    length = blocks * BLOCK
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
    with Connection(port, PATIENCE) as connection, open(os.memfd_create("block"), "wb") as file:
        file.write(_block())
        file.flush()
        connection.send(head.encode("ascii"))
        connection.socket.setblocking(True)
        for _ in range(blocks):
            at = 0
            while at < BLOCK:
                at += os.sendfile(connection.socket.fileno(), file.fileno(), at, BLOCK - at)
        answer = connection.read()
    if answer.status != 200:
        raise ServerFailure(f"the answer to a body of {blocks} MiB is {answer.status}")
    return answer.body.decode("ascii")


def take(trial: Trial, blocks: int) -> str:
    """One body, after small ones; what it costs in CPU time and memory."""
    digest, alone = expected(blocks)
    with trial.running(HASHED) as running:
        try:
            with ThreadPoolExecutor(WARM) as clients:
                # At once, so that all processes have one.
                list(clients.map(partial(upload, running.port), [1] * WARM))
            before, cpu = resources.memory(running.processes()), sample.cpu_seconds(running)
            began = time.monotonic()
            with resources.Watch(running.processes) as watch:
                answered = upload(running.port, blocks)
            seconds = time.monotonic() - began
        except OSError as error:
            running.processes()
            raise ServerFailure(f"an upload failed: {error}") from None
        cpu = sample.cpu_seconds(running) - cpu
    if answered != digest:
        raise ServerFailure(f"it received another body: {answered[:80]}")
    megabytes = blocks * BLOCK / 1e6
    trial.sample(
        scenario=NAME,
        requests=1,
        errors={},
        megabytes=megabytes,
        seconds=seconds,
        rate=megabytes / seconds,
        cpu_ms=cpu * 1e3 / megabytes,
        hash_ms=alone * 1e3 / megabytes,
        grown=watch.highest.rss - before.rss,
        rss=before.rss,
    )
    grown = (watch.highest.rss - before.rss) * MIB
    return f"{cpu * 1e3 / megabytes:.2f} ms per MB, {grown:.1f} MiB more"


def plan(lab: Lab, scale: Scale, chosen: Sequence[Server], options: Namespace) -> list[Step]:
    """A body for every server once a round."""
    return rounds(lab, NAME, chosen, partial(take, blocks=scale.amounts.blocks))


GROWN = median("grown", "more memory (RSS)", "MiB", 1, MIB)
MEASURES: Sequence[Measure] = (
    median("cpu_ms", "CPU per MB", "ms", 2),
    GROWN,
    median("rate", "received", "MB/s", highest=True),
    median("rss", "memory before", "MiB", 1, MIB),
)


STREAMED = [one.name for one in UPLOADS if one.ours and WHOLE not in one.name]
_GROWN = comparison.places(
    Results.median, {mode(name): (NAME, name, "grown") for name in STREAMED}, MIB
)


def report(results: Results) -> list[Section]:
    """CPU time and memory of a large body."""
    told: list[Section] = []
    if results.servers(NAME):
        size = max(one["megabytes"] for one in results.samples)
        alone = results.samples[0]["hash_ms"]
        title = f"A body of {size * 1e6 * MIB:,.0f} MiB for an application that hashes it"
        text = [f"SHA-256 alone takes {alone:.2f} ms per MB in the process of the lab."]
        made = comparison.section(results, NAME, title, {NAME: ""}, MEASURES)
        told.append(replace(made, text=text))
    how = method(__file__, block=BLOCK >> 20, warm=WARM, whole=WHOLE)
    return told + comparison.ending(results, NAME, {}, (), how)


STUDY = Study(
    NAME,
    "CPU time and memory of a large body for an application that hashes it",
    "",
    lambda: UPLOADS,
    plan,
    report,
    promises=(
        Promise("", "more memory (RSS) while a body is streamed", MOST, "MiB", _GROWN, places=1),
    ),
    scales=SCALES,
)
