"""Reads gunicorn.conf.py: a process without rights runs it (`restricted.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from poorhttp.config.migrate.equivalents.gunicorn import RULES
from poorhttp.config.migrate.equivalents.plan import Setting
from poorhttp.errors import ConfigError

#: Seconds that the file may take, of the processor and in all; its memory; bytes of its results.
SECONDS = 5
PATIENCE = 10.0
MEMORY = 2 * 1024**3
LONGEST = 4 * 1024**2

#: How often the process is started again, without a statement that has ended it.
RESTARTS = 2


def read(text: str, file: str, environ: Mapping[str, str]) -> list[Setting]:
    """Return the settings of a file; a statement that fails has an explanation.

    Raises:
        ConfigError: it is not Python.
    """
    skip: list[int] = []
    for _ in range(RESTARTS + 1):
        reports, ended = _run(text, file, environ, skip)
        if ended:
            break
        skip.append(max((_number(each, "statement") for each in reports), default=0))
    settings: list[Setting] = []
    for report in reports:
        if "syntax" in report:
            raise ConfigError(f"{file}:{report.get('line')}: {report['syntax']}")
        settings += _settings(report, file)
    if not ended:
        line = max((_number(each, "line") for each in reports), default=1)
        why = "The file did not finish running: nothing after this line was read."
        settings.append(Setting("", "", f"{file}:{line}", "…", note=why))
    return settings


def _run(
    text: str, file: str, environ: Mapping[str, str], skip: list[int]
) -> tuple[list[dict[str, object]], bool]:
    """Run the file; return what is told of each statement, and whether all were run."""
    program = Path(__file__).with_name("restricted.py")
    request: dict[str, object] = {"text": text, "file": file, "names": sorted(RULES), "skip": skip}
    request |= {"seconds": SECONDS, "memory": MEMORY}
    with subprocess.Popen(
        [sys.executable, "-I", str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(text, environ),
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def kill() -> None:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(PATIENCE, kill)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request).encode())
                process.stdin.close()
            output = process.stdout.read(LONGEST)
        finally:
            timer.cancel()
            kill()
    reports: list[dict[str, object]] = []
    ended = False
    for line in output.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            report = json.loads(line)
            if isinstance(report, dict):
                ended = ended or "end" in report or "syntax" in report
                reports.append(report)
    return reports, ended


def _environment(text: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a file names, and gunicorn's own: others may be secrets."""
    words = set(re.findall(r"\w+", text))
    usual = {"PATH", "LANG", "LC_ALL", "TZ", "WEB_CONCURRENCY", "PORT", "FORWARDED_ALLOW_IPS"}
    return {
        name: value
        for name, value in environ.items()
        if name in words | usual or name.startswith("GUNICORN_")
    }


def _settings(report: Mapping[str, object], file: str) -> list[Setting]:
    found: list[Setting] = []
    error = report.get("error")
    for each in _objects(report.get("set")):
        place = f"{file}:{_number(each, 'line')}"
        setting = Setting(str(each.get("name")), each.get("value"), place, str(each.get("text")))
        if "function" in each and setting.name in RULES and RULES[setting.name].apply is None:
            setting.note = "It is a function, which has no equivalent."
        elif "other" in each:
            setting.note = f"Its value is {each['other']}, which has no equivalent."
        elif each.get("value") is None and "function" not in each:
            setting.note = "It is None: gunicorn's default."
        found.append(setting)
    if error and "ModuleNotFoundError" in str(error) and os.geteuid() == 0:
        error = f"{error}; as root, it is run by the user nobody, who may not find everything"
    for each in _objects(report.get("missing")):
        place = f"{file}:{_number(each, 'line')}"
        why = f"Its value could not be found out here ({error}): write the option by hand."
        if not error:
            why = "This line was not reached here."
        found.append(Setting(str(each.get("name")), "", place, str(each.get("text")), note=why))
    if error and not report.get("missing"):
        place = f"{file}:{_number(report, 'line')}"
        why = f"This was not run: {error}."
        found.append(Setting("", "", place, str(report.get("text", "")), note=why))
    return found


def _objects(value: object) -> list[dict[str, object]]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def _number(report: Mapping[str, object], name: str) -> int:
    value = report.get(name)
    return value if isinstance(value, int) else 0
