"""systemctl and journalctl: checks unit files, and asks the manager to run them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.manual.stand_ins.manager import ADDRESS, JOURNAL
from tests.manual.stand_ins.units import FOLDERS, Unit, UnitError

#: What only root may do.
CHANGING = {"start", "stop", "restart", "reload", "enable", "disable", "daemon-reload", "kill"}
VERIFIED = Path("/run/systemctl.verified")


def ask(command: str, name: str) -> int:
    """Have the manager do something, and print its response; the exit code."""
    connection = socket.socket(socket.AF_UNIX)
    if not os.path.exists(ADDRESS):
        with Path("/run/systemctl.log").open("ab") as log:
            subprocess.Popen(
                [sys.executable, "-S", "-m", "tests.manual.stand_ins.manager"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    end = time.monotonic() + 240
    while True:
        try:
            connection.connect(ADDRESS)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
    with connection, connection.makefile("rw") as stream:
        stream.write(json.dumps([command, name]) + "\n")
        stream.flush()
        code, text = json.loads(stream.readline())
    if text:
        print(text, file=sys.stderr if command in CHANGING else sys.stdout)
    if code and command in CHANGING and (journal := JOURNAL / Unit(name).name).exists():
        print(journal.read_text(errors="replace"), file=sys.stderr)
    return int(code)


def verify() -> int:
    """Check the units of this machine that have changed by systemd-analyze."""
    if shutil.which("systemd-analyze") is None:
        return 0
    paths = [
        path for path in Path(FOLDERS[0]).glob("*.*") if path.suffix in (".service", ".socket")
    ]
    seen = VERIFIED.stat().st_mtime_ns if VERIFIED.exists() else 0
    new = [
        path
        for path in paths
        if not path.is_symlink() and path.stat().st_ctime_ns > seen and "@" not in path.name
    ]
    VERIFIED.touch()
    if not new:
        return 0
    words = ["systemd-analyze", "verify", *map(str, new)]
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)
    about = [line for line in found.stderr.splitlines() if any(p.name in line for p in new)]
    if about:
        print(*about, sep="\n", file=sys.stderr)
        return 1
    return 0


def enable(name: str, remove: bool) -> int:
    """Link a unit from the units that want it."""
    unit = Unit(name)
    wanted = [*unit.words("Install.WantedBy"), *unit.words("Install.RequiredBy")]
    if not wanted:
        print(f"The unit file {unit.name} has no [Install] section.", file=sys.stderr)
        return 1
    for target in wanted:
        link = Path("/etc/systemd/system", f"{target}.wants", unit.name)
        if remove:
            link.unlink(missing_ok=True)
        elif not link.is_symlink():
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(unit.path)
    return 0


def systemctl(words: list[str]) -> int:
    now = "--now" in words
    quiet = {"--now", "--no-pager", "--quiet", "-q", "--full", "-l"}
    rest = [word for word in words if word not in quiet]
    if not rest or rest[0].startswith("-"):
        print(f"systemctl: the stand-in of tests/manual does not know {words}", file=sys.stderr)
        return 2
    command, names = rest[0], rest[1:]
    if command in CHANGING and os.geteuid():
        print(f"Failed to {command}: Access denied (run it with sudo)", file=sys.stderr)
        return 4
    if command in CHANGING - {"stop", "disable", "kill"} and (code := verify()):
        return code
    for name in names:
        code = 0
        if command == "cat":
            unit = Unit(name)
            for path in [unit.path, *unit.drop_ins()]:
                print(f"# {path}\n{path.read_text()}")
        elif command in ("enable", "disable"):
            code = enable(name, command == "disable")
            if now and not code:
                code = ask("start" if command == "enable" else "stop", name)
        elif command in ("reload-or-restart", "try-restart"):
            code = ask("restart", name)
        elif command in CHANGING | {"status", "is-active"}:
            code = ask(command, name)
        else:
            print(f"systemctl: the stand-in of tests/manual does not know {command}")
            code = 2
        if code:
            return code
    return 0


def journalctl(words: list[str]) -> int:
    names, last, rest = [], 0, iter(words)
    for word in rest:
        if word in ("-u", "--unit"):
            names.append(next(rest))
        elif word.startswith("-u"):
            names.append(word[2:])
        elif word in ("-n", "--lines"):
            last = int(next(rest))
    for name in names:
        path = JOURNAL / Unit(name).name
        lines = path.read_text(errors="replace").splitlines() if path.exists() else []
        stem = Unit(name).stem
        for line in lines[-last:]:
            plain = "cat" in words or "-ocat" in words
            print(line if plain else f"Jan 05 10:00:00 www {stem}[1000]: {line}")
    return 0


def main(words: list[str]) -> int:
    """The command that the first word names."""
    try:
        return systemctl(words[1:]) if words[0] == "systemctl" else journalctl(words[1:])
    except UnitError as error:
        print(error, file=sys.stderr)
        return 5


sys.exit(main(sys.argv[1:]))
