"""Raw results, a JSON object a line. Nothing is ever rewritten: a run only appends."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

from loadtests.application import ROOT
from loadtests.errors import LabError

RESULTS = ROOT / "loadtests" / "results"

Record = dict[str, Any]
"""Always has `record` (run, sample, figure, note, faults, missing, failure) and `run`, the name of
its run."""


def now() -> str:
    """The time as ISO 8601 with its offset; also the name of a run."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


class Store:
    """Appends the records of one run to a file, each on disk before the next is measured."""

    def __init__(self, path: Path, run: str) -> None:
        self.path = path
        self.run = run
        self._file: TextIO | None = None

    def add(self, record: str, **values: Any) -> None:
        """Writes one record."""
        if self._file is None:
            # Only now, so that a run that never begins leaves no empty file.
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8")
        line = {"record": record, "run": self.run, **values}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


def new_path(run: str) -> Path:
    """Where a run's results go if nothing else is said."""
    return RESULTS / (run[:19].replace(":", "").replace("T", "-") + ".jsonl")


def load(paths: Iterable[Path]) -> list[Record]:
    """The records of these files. Raises LabError naming file and line of what cannot be read."""
    records: list[Record] = []
    for path in paths:
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise LabError(f"{path}: {error.strerror}") from None
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
