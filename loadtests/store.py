"""Raw results, one JSON object per line, append-only; read compressed, too."""

from __future__ import annotations

import errno
import gzip
import json
import lzma
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from loadtests.errors import LabError
from loadtests.programs import INSTALLED, ROOT

RESULTS = Path("poorlab-results") if INSTALLED else ROOT / "loadtests" / "results"
_OPENERS: dict[str, Callable[..., TextIO]] = {".xz": lzma.open, ".gz": gzip.open}

Record = dict[str, Any]
"""Always has `record` (run, sample, figure, note, faults, missing, failure, done) and `run`, the
name of its run."""


def now() -> str:
    """The time as ISO 8601 with its offset; also the name of a run."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


class Store:
    """Appends the records of one run to a file, each on disk before the next is measured.

    `lost` says why records are not in the file, if the disk was full; they still are in `records`,
    as are all of this run. All records that follow are of the study `study`, if there is one.
    """

    def __init__(self, path: Path, run: str) -> None:
        if path.suffix in _OPENERS:
            raise LabError(f"{path}: results can be appended to a file that is not compressed only")
        self.path = path
        self.run = run
        self.study = ""
        self.records: list[Record] = []
        self.lost = ""
        self._file: BinaryIO | None = None

    def add(self, record: str, **values: Any) -> None:
        study = {"study": self.study} if self.study else {}
        line = {"record": record, "run": self.run, **study, **values}
        self.records.append(line)
        try:
            if self._file is None:
                # Only now, so that a run that never begins leaves no empty file.
                self.path.parent.mkdir(parents=True, exist_ok=True)
                _cut_half_line(self.path)
                # Without a buffer: what did not fit is not tried again, and is not half there.
                self._file = self.path.open("ab", buffering=0)
            octets = (json.dumps(line, ensure_ascii=False) + "\n").encode()
            end = os.fstat(self._file.fileno()).st_size
            if self._file.write(octets) != len(octets):
                self._file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.lost = f"{self.path}: {error.strerror}"

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def begin(output: Path | None, study: str = "") -> Store:
    """The store of a run that begins now: at `output`, or where results go otherwise."""
    run = now()
    made = Store((output or new_path(run)).resolve(), run)
    made.study = study
    return made


def _cut_half_line(path: Path) -> None:
    """Takes away what a run wrote last that was cut off."""
    if path.is_file() and (text := path.read_bytes()) and not text.endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)


def without_paths(text: str) -> str:
    """`text` without the folders of this machine, for results that others will read."""
    for folder, name in ((str(ROOT), "."), (sys.prefix, "venv"), (str(Path.home()), "~")):
        text = text.replace(folder, name)
    return text


def new_path(run: str) -> Path:
    """Where a run's results go if nothing else is said."""
    return RESULTS / (run[:19].replace(":", "").replace("T", "-") + ".jsonl")


def load(paths: Iterable[Path]) -> list[Record]:
    """The records of these files, or of those with `.xz` or `.gz` behind their names.

    Raises LabError naming file and line of what cannot be read.
    """
    records: list[Record] = []
    for named in paths:
        compressed = [named.with_name(named.name + suffix) for suffix in _OPENERS]
        path = next((one for one in (named, *compressed) if one.exists()), named)
        try:
            with _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8") as file:
                lines = file.read().splitlines()
        except (lzma.LZMAError, EOFError):
            raise LabError(f"{path}: not a compressed file, or only a part of one") from None
        except OSError as error:
            raise LabError(f"{path}: {error.strerror or error}") from None
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
            except ValueError:
                # A run that was cut off ends in half a line; what is before it still counts.
                if number == len(lines):
                    break
                raise LabError(f"{path}:{number}: not a JSON object") from None
            if not isinstance(record, dict) or not {"record", "run"} <= record.keys():
                raise LabError(f"{path}:{number}: not a record of the load lab")
            records.append(record)
    return records
