"""Makes the files that `webbench` requests, 6,471 of 64 MB in all, and the order of requests.

How WebBench distributed sizes and requests is not public. Here are the classes of SPECweb96 (files
below 1 KB, below 10 KB, below 100 KB: https://www.spec.org/osg/web96/workload.html), with as many
files of each as make up 64 MB, and with probabilities that give what the study of 2001 saw: 6.2 KB
for an answer with its head (its bytes per second over its requests per second). That leaves no room
for the fourth class, of up to 1 MB.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

from loadtests.clients.native.compiled import cache_folder
from loadtests.errors import LabError
from loadtests.studies.originals import FILES, OCTETS

SEED = 2001
VERSION = 1
"""Of the files: another one, another folder."""
ASKED = 20_000
"""Requests that are drawn; after the last it begins again with the first."""
A_FOLDER = 100
"""Files in each."""


class Class(NamedTuple):
    """Files from `low` to below `high` bytes, evenly over the logarithms.

    `files` is the share of them in all files, `probability` that of a request to be for one.
    """

    name: str
    low: int
    high: int
    files: float
    probability: float


CLASSES = (
    Class("small", 102, 1_024, 0.30, 0.35),
    Class("medium", 1_024, 10_240, 0.49, 0.56),
    Class("large", 10_240, 102_400, 0.21, 0.09),
)


def files() -> dict[Class, dict[str, int]]:
    """The bytes of each file of a class, by its target; always the same."""
    random = Random(SEED)
    counts = [round(kind.files * FILES) for kind in CLASSES]
    counts[-1] = FILES - sum(counts[:-1])
    sizes = [
        [int(kind.low * (kind.high / kind.low) ** random.random()) for _ in range(count)]
        for kind, count in zip(CLASSES, counts, strict=True)
    ]
    sizes[-1] = _filled(sizes[-1], OCTETS - sum(map(sum, sizes[:-1])), CLASSES[-1])
    return {
        kind: {f"/{kind.name}{n // A_FOLDER}/{n}.gif": size for n, size in enumerate(of_kind)}
        for kind, of_kind in zip(CLASSES, sizes, strict=True)
    }


def _filled(sizes: Sequence[int], total: int, kind: Class) -> list[int]:
    """These sizes, each changed by as much of its way to a bound that they make up the total."""
    missing = total - sum(sizes)
    bound = kind.high - 1 if missing > 0 else kind.low
    share = missing / sum(bound - size for size in sizes)
    filled = [int(size + share * (bound - size)) for size in sizes]
    for number in range(total - sum(filled)):
        filled[number] += 1
    return filled


def asked() -> list[str]:
    """The targets of all requests, drawn by class; within a class all are as likely."""
    random = Random(SEED)
    targets = [list(of_kind) for of_kind in files().values()]
    drawn = random.choices(targets, [kind.probability for kind in CLASSES], k=ASKED)
    return [random.choice(of_kind) for of_kind in drawn]


def mean_answer() -> float:
    """Bytes of an answer, without its head, in the long run."""
    return sum(kind.probability * fmean(of.values()) for kind, of in files().items())


def _base() -> Path:
    # Servers that give up root's rights cannot read below root's home.
    return Path("/var/cache/poorhttp-loadtests") if os.geteuid() == 0 else cache_folder()


def folder() -> Path:
    """The folder with the files, made when first needed. Raises LabError if they have no room."""
    base = _base()
    ready = base / f"webbench-{VERSION}-{SEED}"
    if ready.is_dir():
        return ready
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix="webbench-", dir=base, ignore_cleanup_errors=True
        ) as unfinished:
            top = Path(unfinished) / "files"
            top.mkdir()
            top.chmod(0o755)
            _fill(top)
            top.rename(ready)
    except OSError as error:
        # Another run may have been faster.
        if not ready.is_dir():
            raise LabError(f"the files of the workload: {base}: {error.strerror}") from None
    return ready


def _fill(top: Path) -> None:
    random = Random(SEED)
    for of_kind in files().values():
        for target, size in of_kind.items():
            path = top / target[1:]
            path.parent.mkdir(mode=0o755, exist_ok=True)
            path.write_bytes(random.randbytes(size))
