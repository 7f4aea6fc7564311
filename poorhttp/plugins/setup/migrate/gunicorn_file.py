"""Reads gunicorn.conf.py: a process without rights runs it (`sandbox.py`)."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import select
import signal
import site
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate import sandbox
from poorhttp.plugins.setup.migrate.environment import named_in
from poorhttp.plugins.setup.migrate.equivalents.gunicorn import RULES
from poorhttp.plugins.setup.migrate.equivalents.plan import Setting, clean
from poorhttp.plugins.setup.migrate.source_files import SourceFiles

#: Seconds that the file may take, of the processor and in all; its memory; bytes of its results.
SECONDS = 5
PATIENCE = 10.0
MEMORY = 1024**3
LONGEST = 1024**2

#: Seconds in which the process has to give up its rights; it does not run the file before.
START = 60.0

#: Lists and objects in each other in a result.
DEEPEST = 8

#: The program of the process, whose argument is the folder of this package.
PROGRAM = (
    "import sys; library = sys.path[:]; sys.path.append(sys.argv[1]); "
    "from poorhttp.plugins.setup.migrate.sandbox import main; sys.path[:] = library; main()"
)

#: What a file can do, in words, if a part is lacking; for users other than root.
UNPROTECTED = {
    sandbox.NO_NEW_RIGHTS: "programs that it starts could get other rights (setuid)",
    sandbox.NAMESPACES: "only seccomp keeps it from the network",
    sandbox.LANDLOCK: "it could read every file that you can read",
    sandbox.SECCOMP: (
        "it could send signals to your processes, connect to Unix sockets, change permissions and "
        "times of your files, and more"
    ),
    sandbox.LIMITS: "it could use more memory and processor time than it should",
}

#: How often the process is started again, without a statement that has ended it.
RESTARTS = 2


class NotRunByRoot(ConfigError):
    """The kernel lacks a part of what would take the rights of root away."""


@dataclass
class GunicornFile:
    """What a file has set, and what to warn of.

    Attributes:
        settings: in the order of the file; a statement that fails has an explanation.
        warnings: what the kernel has not protected while the file ran.
    """

    settings: list[Setting]
    warnings: list[str]


def read(text: str, file: str, environ: Mapping[str, str], files: SourceFiles) -> GunicornFile:
    """Return the settings of a file.

    Args:
        text: its text.
        file: its name.
        environ: variables, of which it sees those that it names.
        files: opens its folder.

    Raises:
        ConfigError: it is not Python, or is not run as root because the kernel lacks something.
    """
    request: dict[str, object] = {"text": text, "file": file, "names": sorted(RULES)}
    request |= {"path": os.path.abspath(file), "library": _library(), "parent": os.getpid()}
    request |= {"environment": named_in(text, environ), "seconds": SECONDS, "memory": MEMORY}
    skip: list[int] = []
    with _folders(file, files) as folders:
        for _ in range(RESTARTS + 1):
            request |= {"folders": folders, "skip": skip}
            reports, ended = _run(file, request, list(folders.values()))
            if ended:
                break
            skip.append(max((_number(each, "statement") for each in reports), default=0))
    settings: list[Setting] = []
    for report in reports:
        if "syntax" in report:
            line = _number(report, "line")
            raise ConfigError(f"{file}:{line}: {clean(str(report['syntax']))}")
        settings += _settings(report, file)
    if not ended:
        line = max((_number(each, "line") for each in reports), default=1)
        why = "The file did not finish running: nothing after this line was read."
        settings.append(Setting("", "", f"{file}:{line}", "…", note=why))
    return GunicornFile(settings, _warnings(file, reports[0]))


def _warnings(file: str, first: Mapping[str, object]) -> list[str]:
    """Return what to say of the parts that the kernel lacks."""
    found = first.get("lacking")
    lacking = [str(name) for name in found] if isinstance(found, list) else []
    if not lacking:
        return []
    names = " and ".join([", ".join(lacking[:-1]), lacking[-1]] if lacking[1:] else lacking)
    return [
        f"{file} was run with some of your rights, because this system does not offer {names}: "
        + "; ".join(UNPROTECTED.get(name, f"nothing of {name} is in force") for name in lacking)
    ]


def _run(
    file: str, request: Mapping[str, object], descriptors: Sequence[int]
) -> tuple[list[dict[str, object]], bool]:
    """Run the file; return what is told of each statement, and whether all were run.

    Raises:
        ConfigError: the process has not come to the file: root lacks something, for example.
    """
    package = str(Path(__file__).absolute().parents[4])
    # A file, because a pipe would block when the process does not read it.
    with tempfile.TemporaryFile() as given:
        given.write(json.dumps(request).encode())
        given.seek(0)
        # Nothing of `environ` is here: a Procfile sets some of it, and the dynamic linker, which
        # loads what LD_PRELOAD names, would read it with the rights of this process.
        kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", PROGRAM, package],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=kept,
                cwd="/",
                start_new_session=True,
                pass_fds=descriptors,
            )
        except OSError as error:
            why = f"{sys.executable} does not start: {error.strerror}"
            raise ConfigError(f"{file}: cannot be run: {why}") from None
        with process:
            assert process.stdout is not None
            try:
                output = _output(process.stdout.fileno())
            finally:
                # Not waited for yet, so that the number is still its own.
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
    reports: list[dict[str, object]] = []
    for line in output.splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            report = json.loads(line, parse_constant=str)
            if isinstance(report, dict) and _depth(report) <= DEEPEST:
                reports.append(report)
    if not reports or "lacking" not in reports[0]:
        raise ConfigError(f"{file}: the process that runs it without rights has not started")
    if reports[0].get("refused"):
        raise NotRunByRoot(_refusal(file, reports[0]["lacking"]))
    ended = any("end" in report or "syntax" in report for report in reports)
    return reports, ended


def _refusal(file: str, lacking: object) -> str:
    names = ", ".join(map(str, lacking)) if isinstance(lacking, list) else ""
    return (
        f"{file}: is not run by root, because this system does not offer what would take root's "
        f"rights away: {names} (docs/guides/migrate.md). Start poorhttp migrate as another user, "
        "best as one who owns nothing: setpriv --reuid=65534 --regid=65534 --clear-groups "
        "poorhttp migrate FILE"
    )


def _output(fd: int) -> bytes:
    """Return what comes from a pipe until its end or a deadline, and no more than `LONGEST`.

    The first result comes from the process itself, when it has given up its rights.
    """
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    found = bytearray()
    deadline = time.monotonic() + START
    while len(found) < LONGEST:
        left = deadline - time.monotonic()
        if left <= 0 or not poller.poll(left * 1000):
            break
        data = os.read(fd, min(65_536, LONGEST - len(found)))
        if not data:
            break
        if not found:
            deadline = time.monotonic() + PATIENCE
        found += data
    return bytes(found)


def _depth(value: object) -> int:
    """Return how deep lists and objects are in each other, at most `DEEPEST` + 1."""
    depth, level = 0, [value]
    while level and depth <= DEEPEST:
        inner: list[object] = []
        for each in level:
            inner += each.values() if isinstance(each, dict) else []
            inner += each if isinstance(each, list) else []
        depth, level = depth + 1, inner
    return depth


@contextlib.contextmanager
def _folders(file: str, files: SourceFiles) -> Iterator[dict[str, int]]:
    """Open the folders that a file may read: its own, and the current one if that is above it.

    Neither if it is the home of the user, who keeps keys and passwords there, or above a home.

    Raises:
        ConfigError: they cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        found: dict[str, int] = {}
        try:
            own = files.open_folder(file)
            stack.callback(os.close, own)
            here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, here)
            # The name that belongs to the descriptor, also if a link is put into the path now.
            name, above = (os.readlink(f"/proc/self/fd/{fd}") for fd in (own, here))
        except OSError as error:
            raise ConfigError(f"{file}: its folder cannot be opened: {error.strerror}") from None
        if not _is_home(name):
            found[name] = own
        # The user nobody gets no more of root's folders than it could enter by itself.
        reachable = os.geteuid() != 0 or _is_public(above)
        if _is_above(above, name) and reachable and not _is_home(above):
            found[above] = here
        yield found


def _is_public(folder: str) -> bool:
    """Tell whether every user may enter a folder and all above it."""
    parts = folder.split("/")
    return all(
        os.stat("/".join(parts[:length]) or "/").st_mode & stat.S_IXOTH
        for length in range(1, len(parts) + 1)
    )


def _is_home(folder: str) -> bool:
    """Tell whether a folder is the home of this user, or above that of any user with a shell."""
    own = {"/", os.environ.get("HOME", "/")}
    others = set()
    for user in pwd.getpwall():
        if user.pw_uid in (os.geteuid(), os.getuid()):
            own.add(user.pw_dir)
        elif not user.pw_shell.endswith(("/nologin", "/false", "/sync")):
            others.add(user.pw_dir)
    if any(_is_above(folder, os.path.realpath(home)) for home in own):
        return True
    # Without a look at them, which could mount homes of a network.
    return any(_is_above(folder, home) and folder != home.rstrip("/") for home in others)


def _is_above(folder: str, path: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _library() -> list[str]:
    """Return the folders of installed packages."""
    names = site.getsitepackages()
    if site.ENABLE_USER_SITE and os.geteuid() != 0:
        names.append(site.getusersitepackages())
    return [os.path.realpath(name) for name in names if os.path.isdir(name)]


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
        error = f"{error}; as root, the file finds what the user nobody may read"
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
