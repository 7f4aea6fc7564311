"""The watcher process: changes in a real file system, and its messages about them."""

from __future__ import annotations

import itertools
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from poorhttp.config.settings import Settings
from poorhttp.plugins.dev.reload.watch import filesystems, watcher_process
from poorhttp.plugins.dev.reload.watch.filesystems import Mounts, delay, is_forced
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.plugins.dev.reload.watch.snapshot import Snapshot
from poorhttp.plugins.dev.reload.watch.watcher import Watcher
from poorhttp.plugins.dev.reload.watch.watcher_process import WatcherProcess
from poorhttp.targets.target import CODE, FILES
from tests.testkit.client import HANG
from tests.testkit.process import descriptors, lives, opened, stopped, watches
from tests.testkit.server import ROOT, environment, wait_for

#: Where nothing more is expected: what comes before such a file is all that has come.
MARK = "mark_"


class Watched:
    """A project in a folder, and the watcher of it.

    Attributes:
        notices: what it had to say.
    """

    def __init__(self, project: WatchedProject, folder: Path) -> None:
        self.watcher = Watcher(project)
        self.notices: list[str] = []
        self._folder = folder
        self._marks = 0
        self.settle()

    def message(self) -> dict[str, str]:
        """What it tells next, by path; notices are kept apart."""
        while True:
            told = {path: kind for path, kind in self._next().items() if MARK not in path}
            if told:
                return told

    def settle(self) -> dict[str, str]:
        """Everything that it tells until a save that happens now is told."""
        self._marks += 1
        mark = self._folder / f"{MARK}{self._marks}.py"
        replace(mark, "x")
        told: dict[str, str] = {}
        while str(mark) not in told:
            told |= self._next()
        return {path: told[path] for path in told if MARK not in path}

    def _next(self) -> dict[str, str]:
        assert select.select([self.watcher], [], [], HANG)[0], "nothing is told"
        received = self.watcher.receive()
        self.notices += [text for kind, text in received if kind == "notice"]
        return {path: kind for kind, path in received if kind != "notice"}

    def notice(self) -> str:
        """What it has to say next."""
        while not self.notices:
            assert select.select([self.watcher], [], [], HANG)[0], "nothing is said"
            self.notices += [text for kind, text in self.watcher.receive() if kind == "notice"]
        return self.notices.pop(0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a project."""
    path = tmp_path.resolve() / "work"
    (path / "package/deep").mkdir(parents=True)
    (path / "app.py").write_text("first")
    (path / "package/views.py").write_text("first")
    for name in ("app.py", "package/views.py"):
        # Long before it is watched.
        os.utime(path / name, (1, 1))
    return path


@pytest.fixture
def watched(folder: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """The same, watched."""
    found = Watched(WatchedProject([(str(folder), CODE)]), folder)
    yield found
    found.watcher.close()
    assert found.notices == []


def replace(path: Path, text: str) -> None:
    """Save as most editors do."""
    temporary = path.with_name(path.name + "~")
    temporary.write_text(text)
    os.replace(temporary, path)


# One file


def test_a_file_that_is_replaced(folder: Path, watched: Watched) -> None:
    replace(folder / "app.py", "again")
    assert watched.message() == {str(folder / "app.py"): "code"}
    assert watched.settle() == {}


def test_a_file_that_is_written_in_place(folder: Path, watched: Watched) -> None:
    (folder / "package/views.py").write_text("again")
    assert watched.message() == {str(folder / "package/views.py"): "code"}


def test_two_saves_of_the_same_size_within_a_moment_are_two(folder: Path, watched: Watched) -> None:
    for text in ("one", "two", "ten", "six"):
        replace(folder / "app.py", text)
        assert watched.message() == {str(folder / "app.py"): "code"}


def test_a_save_in_two_steps_is_told_when_it_is_done(folder: Path, watched: Watched) -> None:
    """As vim does where it keeps a copy: the file is away for a moment."""
    os.rename(folder / "app.py", folder / "app.py~")
    (folder / "4913").write_text("")
    os.remove(folder / "4913")
    (folder / "app.py").write_text("again")
    os.remove(folder / "app.py~")
    assert watched.settle() == {str(folder / "app.py"): "code"}


def test_an_empty_file_is_not_told_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_process, "HALF_DONE_WAIT", HANG)
    monkeypatch.setattr(watcher_process, "MAX_BURST", HANG)
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    with (folder / "app.py").open("w") as file:
        assert not select.select([watched.watcher], [], [], 0.1)[0]
        file.write("again")
    assert watched.message() == {str(folder / "app.py"): "code"}
    watched.watcher.close()


def test_a_file_that_is_written_slowly_is_told_when_it_is_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_process, "HALF_DONE_WAIT", HANG)
    monkeypatch.setattr(watcher_process, "MAX_BURST", HANG)
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    with (folder / "app.py").open("r+") as file:
        for text in ("half of ", "what it will be"):
            file.write(text)
            file.flush()
            assert not select.select([watched.watcher], [], [], 0.1)[0]
    assert watched.message() == {str(folder / "app.py"): "code"}
    assert watched.settle() == {}
    watched.watcher.close()


def test_a_file_that_stays_open_is_told_all_the_same(folder: Path, watched: Watched) -> None:
    with (folder / "app.py").open("r+") as file:
        file.write("again")
        file.flush()
        assert watched.message() == {str(folder / "app.py"): "code"}
    assert watched.settle() == {}


def test_a_save_that_leaves_no_trace(folder: Path) -> None:
    """The kernel's clock for files stands still for some milliseconds."""
    path = folder / "app.py"
    path.write_text("one")
    written = path.stat().st_mtime_ns
    snapshot = Snapshot(WatchedProject([(str(folder), CODE)]), written)
    # As if the clock had been looked at in the same moment.
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            "poorhttp.plugins.dev.reload.watch.snapshot.time.time_ns", lambda: written
        )
        assert snapshot.compare_all() == {str(path): "code"}
    path.write_text("two")
    os.utime(path, ns=(written, written))
    assert snapshot.changed(str(path)) == {str(path): "code"}
    # Of one that claims to have been written long ago, its ctime tells; of others' writes, too.
    os.utime(path, (1, 1))
    snapshot.compare_all()
    for polled in (False, True):
        path.write_text("ten")
        os.utime(path, (1, 1))
        for expected in ({str(path): "code"}, {}):
            found = snapshot.compare_all() if polled else snapshot.changed(str(path))
            assert found == expected


@pytest.mark.parametrize("polls", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        "cp -p {new} {old}",
        "rm {old} && cp -p {new} {old}",
        "cp -p {new} {old}.tmp && mv {old}.tmp {old}",
        "cat {new} > {old} && touch -r {new} {old}",
        "ln -f {new} {old}",
    ],
)
def test_a_file_of_equal_size_and_time_takes_its_place(
    command: str, folder: Path, polls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if polls:
        monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
        monkeypatch.setenv("WATCHFILES_POLL_DELAY_MS", "20")
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    old, new = folder / "app.py", folder.parent / "new.py"
    for text in ("other", "third"):
        new.write_text(text)
        os.utime(new, (1, 1))
        subprocess.run(["sh", "-c", command.format(old=old, new=new)], check=True, timeout=HANG)
        assert str(old) in watched.message()
        # Of a link the next write would change both.
        new.unlink()
    watched.watcher.close()
    assert watched.notices == []


def test_a_file_that_appears_moves_and_vanishes(folder: Path, watched: Watched) -> None:
    (folder / "new.html").write_text("new")
    assert watched.message() == {str(folder / "new.html"): "code"}
    os.rename(folder / "new.html", folder / "package/old.html")
    assert watched.message() == {
        str(folder / "new.html"): "code",
        str(folder / "package/old.html"): "code",
    }
    os.remove(folder / "package/old.html")
    assert watched.message() == {str(folder / "package/old.html"): "code"}


def test_what_does_not_matter_is_not_told(folder: Path, watched: Watched) -> None:
    (folder / ".app.py.swp").write_text("x")
    (folder / "app.db").write_text("x")
    (folder / "notes.txt").write_text("x")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/app.pyc").write_text("x")
    (folder / "node_modules/x").mkdir(parents=True)
    (folder / "node_modules/x/x.py").write_text("x")
    (folder / "new").mkdir()
    (folder / "temporary.py").write_text("x")
    os.remove(folder / "temporary.py")
    assert watched.settle().keys() <= {str(folder / "temporary.py")}
    assert watched.settle() == {}


def test_permissions_are_not_a_change(folder: Path, watched: Watched) -> None:
    os.utime(folder / "app.py", (1, 1_000_000_000))
    assert watched.message() == {str(folder / "app.py"): "code"}
    os.chmod(folder / "app.py", 0o600)
    os.utime(folder / "app.py", (2, 1_000_000_000))
    assert watched.settle() == {}


def test_a_name_that_is_no_text_loses_nothing(folder: Path, watched: Watched) -> None:
    name = os.fsencode(folder) + b"/caf\xe9.py"
    with open(name, "w") as file:
        file.write("x")
    (folder / "app.py").write_text("again")
    assert watched.settle() == {os.fsdecode(name): "code", str(folder / "app.py"): "code"}
    (folder / "app.py").write_text("and again")
    assert watched.message() == {str(folder / "app.py"): "code"}


# Many files


def test_a_thousand_files_are_told_once(folder: Path, watched: Watched) -> None:
    paths = [folder / f"package/{number}.py" for number in range(900)]
    paths += [folder / f"fresh/{number % 7}/{number}.html" for number in range(100)]
    with stopped(watched.watcher.pid):
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    told = watched.message()
    assert told == dict.fromkeys(map(str, paths), "code")
    with stopped(watched.watcher.pid):
        for path in paths:
            path.write_text("xx")
    assert watched.message() == told
    with stopped(watched.watcher.pid):
        shutil.rmtree(folder / "fresh")
        shutil.rmtree(folder / "package")
    assert watched.message().keys() == told.keys() | {str(folder / "package/views.py")}


def test_what_follows_a_save_is_one_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a formatter, which takes its time for each."""
    monkeypatch.setattr(watcher_process, "SAME_SAVE", HANG)
    monkeypatch.setattr(watcher_process, "EVENT_WAIT", 1.0)
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    paths = [folder / name for name in ("app.py", "package/views.py", "new.py")]
    for path in paths:
        path.write_text("again")
    assert watched.message() == dict.fromkeys(map(str, paths), "code")
    watched.watcher.close()


def test_more_than_the_system_keeps_loses_nothing(folder: Path, watched: Watched) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    names = [folder / "one~", folder / "two~"]
    names[0].write_text("x")
    with stopped(watched.watcher.pid):
        for number in range(limit // 2 + 1):
            os.rename(names[number % 2], names[(number + 1) % 2])
        replace(folder / "app.py", "again")
        (folder / "fresh").mkdir()
        (folder / "fresh/x.py").write_text("x")
    told = {str(folder / "app.py"): "code", str(folder / "fresh/x.py"): "code"}
    assert watched.message() == told
    (folder / "fresh/x.py").write_text("xx")
    assert watched.settle() == {str(folder / "fresh/x.py"): "code"}


def test_a_checkout_is_told_when_git_is_done(folder: Path) -> None:
    (folder / ".git").mkdir()
    lock = folder / ".git/index.lock"
    project = WatchedProject([(str(folder / "package"), CODE)])
    watched = Watched(project, folder / "package")
    lock.write_text("")
    paths = [folder / "package/views.py", folder / "package/deep/new.py"]
    for path in paths:
        path.write_text("again")
        # Git is slow.
        assert not select.select([watched.watcher], [], [], 0.15)[0]
    lock.unlink()
    assert watched.message() == dict.fromkeys(map(str, paths), "code")
    watched.watcher.close()


# Folders


def test_a_folder_that_is_moved_in_and_out(folder: Path, watched: Watched) -> None:
    outside = folder.parent / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "inner/x.py").write_text("x")
    os.rename(outside, folder / "came")
    path = folder / "came/inner/x.py"
    assert watched.message() == {str(path): "code"}
    path.write_text("again")
    assert watched.message() == {str(path): "code"}
    os.rename(folder / "came", folder / "moved")
    assert watched.message() == {str(path): "code", str(folder / "moved/inner/x.py"): "code"}
    os.rename(folder / "moved", outside)
    assert watched.message() == {str(folder / "moved/inner/x.py"): "code"}
    (outside / "inner/x.py").write_text("elsewhere")
    assert watched.settle() == {}


def test_a_project_that_is_taken_away_and_comes_back(folder: Path, watched: Watched) -> None:
    away = folder.parent / "away"
    os.rename(folder, away)
    assert set(watched.message()) == {
        str(folder / "app.py"),
        str(folder / "package/views.py"),
    }
    (folder / "package").mkdir(parents=True)
    (folder / "package/views.py").write_text("new")
    assert watched.message() == {str(folder / "package/views.py"): "code"}
    (folder / "package/views.py").write_text("newer")
    assert watched.settle() == {str(folder / "package/views.py"): "code"}


def test_a_folder_above_that_is_exchanged(folder: Path) -> None:
    """Nothing happens to the folder that is watched, and yet it is another one."""
    release = folder.parent / "release"
    for number in (1, 2):
        (folder.parent / f"v{number}").mkdir()
        (folder.parent / f"v{number}/app.py").write_text(f"version {number}")
    release.symlink_to("v1")
    watched = Watched(WatchedProject([(str(release), CODE)]), release)
    (folder.parent / "next").symlink_to("v2")
    os.replace(folder.parent / "next", release)
    assert watched.message()[str(release / "app.py")] == "code"
    (folder.parent / "v2/app.py").write_text("again")
    assert watched.settle() == {str(release / "app.py"): "code"}
    watched.watcher.close()


def test_a_file_that_is_a_link(folder: Path) -> None:
    real = folder.parent / "real"
    real.mkdir()
    (real / "settings.py").write_text("first")
    (real / "other.py").write_text("first")
    (folder / "settings.py").symlink_to(real / "settings.py")
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    (real / "other.py").write_text("not ours")
    replace(real / "settings.py", "again")
    assert watched.settle() == {str(folder / "settings.py"): "code"}
    watched.watcher.close()


@pytest.mark.parametrize("polls", [False, True])
def test_links_that_lead_elsewhere_now(
    polls: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To files, folders and other links; each target is followed, the new one as well."""
    if polls:
        monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
        monkeypatch.setenv("WATCHFILES_POLL_DELAY_MS", "20")
    outside = folder.parent / "outside"
    for number in "12":
        (outside / number).mkdir(parents=True)
        for name in ("settings.yml", "views.py"):
            (outside / number / name).write_text("first")
            os.utime(outside / number / name, (1, 1))

    def lead(link: Path, target: str) -> None:
        new = link.with_name("new~")
        new.symlink_to(target)
        new.replace(link)

    lead(outside / "current", "1")
    lead(outside / "settings", "current/settings.yml")
    lead(folder / "one.yml", "../outside/1/settings.yml")
    lead(folder / "chain.yml", "../outside/settings")
    lead(folder / "shop", "../outside/current")
    lead(folder / "later.yml", str(outside / "later/settings.yml"))
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)

    def told() -> set[str]:
        """All names that are told until everything that has happened is."""
        return {os.path.relpath(path, folder) for path in watched.settle()}

    files = [outside / "1/settings.yml", outside / "1/views.py"]
    names = {"one.yml", "chain.yml", "shop/settings.yml", "shop/views.py"}
    for _ in range(2):
        for file in files:
            file.write_text(f"{file.read_text()}, saved")
        assert told() == names
    lead(folder / "one.yml", "../outside/2/settings.yml")
    assert told() == {"one.yml"}
    replace(outside / "2/settings.yml", "again")
    assert told() == {"one.yml"}
    lead(outside / "current", "2")
    assert told() == names - {"one.yml"}
    for text in ("now", "then"):
        (outside / "2/settings.yml").write_text(text)
        assert told() == names - {"shop/views.py"}
    (outside / "1/settings.yml").write_text("nobody cares")
    assert told() == set()
    # Over one link of three.
    lead(outside / "settings", "1/settings.yml")
    assert told() == {"chain.yml"}
    replace(outside / "1/settings.yml", "here again")
    assert told() == {"chain.yml"}
    # What it leads to is there at last.
    (outside / "later").mkdir()
    (outside / "later/settings.yml").write_text("late")
    assert watched.message() == {str(folder / "later.yml"): "code"}
    watched.watcher.close()
    assert watched.notices == []


@pytest.mark.parametrize("command", ["mv {new} {old}", "cp {new} {old}", "cp -p {new} {old}"])
def test_an_archive_of_modules_is_replaced(command: str, folder: Path) -> None:
    old, new = folder.parent / "lib/shop.zip", folder.parent / "new.zip"
    egg = folder.parent / "lib/site-packages/shop.egg"
    egg.parent.mkdir(parents=True)
    for path in (old, egg):
        path.write_text("first")
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    watched.watcher.watch_also([str(old / "shop/web"), str(egg)])
    watched.settle()
    for path, kind in ((old, "code"), (egg, "outside")):
        new.write_text("other")
        words = command.format(old=path, new=new)
        subprocess.run(["sh", "-c", words], check=True, timeout=HANG)
        assert watched.message() == {str(path): kind}
    watched.watcher.close()


def test_a_configuration_file_elsewhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    etc = folder.parent / "etc"
    etc.mkdir()
    (etc / "site.ini").write_text("first")
    monkeypatch.chdir(folder)
    watched = Watched(WatchedProject.of([Settings()], str(etc / "site.ini")), folder)
    (etc / "other.ini").write_text("nothing")
    replace(etc / "site.ini", "again")
    assert watched.settle() == {str(etc / "site.ini"): "configuration"}
    shutil.rmtree(etc)
    assert watched.message() == {str(etc / "site.ini"): "configuration"}
    etc.mkdir()
    (etc / "site.ini").write_text("back")
    assert watched.message() == {str(etc / "site.ini"): "configuration"}
    watched.watcher.close()


def test_static_files_are_assets(folder: Path) -> None:
    project = WatchedProject([(str(folder), CODE), (str(folder / "public"), FILES)])
    (folder / "public").mkdir()
    watched = Watched(project, folder)
    (folder / "public/index.html").write_text("new")
    (folder / "site.css").write_text("new")
    assert watched.settle() == {
        str(folder / "public/index.html"): "asset",
        str(folder / "site.css"): "asset",
    }
    watched.watcher.close()


# Modules that are loaded from elsewhere


def test_an_editable_install(folder: Path, watched: Watched) -> None:
    package = folder.parent / "src/package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("first")
    os.utime(package / "__init__.py", (1, 1))
    watched.watcher.watch_also([str(package), str(folder.parent / "not there")])
    wait_for(lambda: watches(watched.watcher.pid) == 4, "four folders are watched")
    (package / "data.txt").write_text("nothing")
    replace(package / "__init__.py", "again")
    assert watched.settle() == {str(package / "__init__.py"): "code"}


def test_folders_are_watched_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_process, "ROOT_CHECK", 10 * HANG)
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    (folder.parent / "src").mkdir()
    watched.watcher.watch_also([str(folder.parent / "src")])
    wait_for(lambda: watches(watched.watcher.pid) == 4, "four folders are watched")
    watched.watcher.close()


@pytest.fixture
def installed(folder: Path) -> Path:
    """The folder of an installed package."""
    path = folder.parent / "lib/site-packages/package"
    path.mkdir(parents=True)
    (path / "__init__.py").write_text("first")
    os.utime(path / "__init__.py", (1, 1))
    return path


def watch_installed(watched: Watched, installed: Path, folders: int = 4) -> None:
    """Have the package watched beside the three folders of the project, and others."""
    watched.watcher.watch_also([str(installed)])
    wait_for(lambda: watches(watched.watcher.pid) == folders, f"{folders} folders are watched")
    assert watched.settle() == {}


def test_what_is_installed_is_told_when_pip_is_done(
    folder: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No pause of this test is long enough to be taken for the end of pip.
    monkeypatch.setattr(watcher_process, "INSTALL_QUIET", 2 * HANG)
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    watch_installed(watched, installed)
    shutil.rmtree(installed)
    # A save of the user's own does not wait for that.
    assert watched.settle() == {}
    installed.mkdir()
    (installed / "__init__.py").write_text("second")
    assert watched.settle() == {}
    watched.watcher.close()


def test_an_installed_package_that_is_removed_and_installed_again(
    watched: Watched, installed: Path
) -> None:
    told = {str(installed / "__init__.py"): "outside"}
    watch_installed(watched, installed)
    shutil.rmtree(installed)
    assert watched.message() == told
    installed.mkdir()
    # Some installers keep the time that a file had where it was packed.
    (installed / "__init__.py").write_text("second")
    os.utime(installed / "__init__.py", (1, 1))
    assert watched.message() == told
    wait_for(lambda: watches(watched.watcher.pid) == 4, "four folders are watched again")
    (installed / "more.py").write_text("third")
    found: dict[str, str] = {}
    while str(installed / "more.py") not in found:
        found |= watched.message()
    assert found.keys() - told == {str(installed / "more.py")}


def test_modules_of_a_zip_file_do_not_keep_others_from_being_watched(
    watched: Watched, installed: Path
) -> None:
    archive = installed.parent / "archive.zip"
    archive.write_bytes(b"PK")
    os.utime(archive, (1, 1))
    watched.watcher.watch_also([str(archive)])
    # That of the archive, too.
    watch_installed(watched, installed, 5)
    replace(installed / "__init__.py", "second")
    assert watched.message() == {str(installed / "__init__.py"): "outside"}


def test_setting_watches_costs_what_it_takes_of_the_processor(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine it takes long, and what is saved next is noticed as soon all the same."""
    clock = itertools.count(1000.0, 100.0)
    busy = SimpleNamespace(monotonic=lambda: next(clock), process_time=lambda: 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(watcher_process, "time", busy)
        watching = WatcherProcess(WatchedProject([(str(folder), CODE)]), -1, os.getpid(), 0)
        assert watching._watch_again()
        assert watching._watch_again_at <= next(clock)


def test_a_module_that_was_saved_while_it_was_loaded(folder: Path, watched: Watched) -> None:
    package = folder.parent / "src/package"
    package.mkdir(parents=True)
    (package / "old.py").write_text("first")
    (package / "new.py").write_text("a moment ago")
    os.utime(package / "old.py", (1, 1))
    watched.watcher.watch_also([str(package)])
    assert watched.message() == {str(package / "new.py"): "code"}


def test_only_what_matters_uses_up_watches(folder: Path) -> None:
    for name in ("node_modules/a/b", ".git/objects", "__pycache__", "env/lib"):
        (folder / name).mkdir(parents=True)
    (folder / "env/pyvenv.cfg").write_text("")
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    assert watches(watched.watcher.pid) == 3
    watched.watcher.close()


# Where the system does not tell


def test_polling(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
    monkeypatch.setenv("WATCHFILES_POLL_DELAY_MS", "20")
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    assert watches(watched.watcher.pid) == 0

    def write(path: Path, text: str) -> None:
        """Not seen before it is whole, which would be another change."""
        with stopped(watched.watcher.pid):
            path.write_text(text)

    # All of it within the same second, which notify's own polling would take for one.
    for text in ("one", "two", "ten"):
        write(folder / "app.py", text)
        assert watched.message() == {str(folder / "app.py"): "code"}
    (folder / "fresh/deep").mkdir(parents=True)
    write(folder / "fresh/deep/x.py", "x")
    assert watched.message() == {str(folder / "fresh/deep/x.py"): "code"}
    write(folder / "fresh/deep/x.py", "xx")
    assert watched.message() == {str(folder / "fresh/deep/x.py"): "code"}
    shutil.rmtree(folder / "fresh")
    assert watched.message() == {str(folder / "fresh/deep/x.py"): "code"}
    os.chmod(folder / "app.py", 0o600)
    assert watched.settle() == {}
    paths = [folder / f"package/{number}.py" for number in range(1000)]
    with stopped(watched.watcher.pid):
        for path in paths:
            path.write_text("x")
    assert watched.message() == dict.fromkeys(map(str, paths), "code")
    watched.watcher.close()


#: Watches a folder in a user namespace whose limits of inotify are lowered, and says what it hears.
LIMITED = """
import os, select, sys
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.targets.target import CODE
from poorhttp.plugins.dev.reload.watch.watcher import Watcher
limit, value, folder, also = sys.argv[1:]
with open(f"/proc/sys/user/max_inotify_{limit}", "w") as file:
    file.write(value)
watcher = Watcher(WatchedProject([(folder, CODE)]))
if also:
    watcher.watch_also([also])
while True:
    select.select([watcher, sys.stdin], [], [])
    for pair in watcher.receive():
        print(*pair, flush=True)
    if select.select([sys.stdin], [], [], 0)[0]:
        watcher.close()
        break
"""


@pytest.mark.parametrize(
    ("limit", "value", "also"),
    [("watches", "2", ""), ("instances", "0", ""), ("watches", "3", "also")],
)
def test_a_full_limit_of_inotify(folder: Path, limit: str, value: str, also: str) -> None:
    done = subprocess.run(
        ["unshare", "-Ur", "true"], capture_output=True, check=False, timeout=HANG
    )
    if done.returncode != 0:
        pytest.skip("no user namespaces here: " + done.stderr.decode())
    if also:
        (folder.parent / also).mkdir()
        (folder.parent / also / "x.py").write_text("x")
        os.utime(folder.parent / also / "x.py", (1, 1))
    outside = str(folder.parent / also) if also else ""
    process = subprocess.Popen(
        ["unshare", "-Ur", sys.executable, "-c", LIMITED, limit, value, str(folder), outside],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        cwd=ROOT,
    )
    assert process.stdin
    assert process.stdout
    try:
        line = process.stdout.readline()
        assert line.startswith("notice ")
        assert f"fs.inotify.max_user_{limit} ({value}) is used up" in line
        assert f"sudo sysctl fs.inotify.max_user_{limit}=" in line
        # Both of them are noticed all the same.
        (folder / "app.py").write_text("again")
        assert f"code {folder}/app.py\n" in iter(process.stdout.readline, "")
        if also:
            (folder.parent / also / "x.py").write_text("xx")
            assert f"code {folder.parent}/also/x.py\n" in iter(process.stdout.readline, "")
        process.communicate("", HANG)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate(timeout=HANG)


MOUNTINFO = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:30 / /home/my\\040net rw,relatime - nfs4 server:/home rw
31 22 0:31 / /mnt/c rw - 9p drvfs rw
32 22 0:32 / /mnt/c/local rw - tmpfs tmpfs rw
33 22 0:33 / /ssh rw,nosuid - fuse.sshfs host:/ rw
34 22 0:34 / /layers rw - fuse.fuse-overlayfs fuse-overlayfs rw
35 22 0:35 / /twice rw - nfs a:/b rw
36 35 0:36 / /twice rw - ext4 /dev/sdb rw
"""


def test_file_systems_that_others_write_to() -> None:
    mounts = Mounts(MOUNTINFO)
    assert mounts.remote("/home/my net/project") == "nfs4"
    assert mounts.remote("/mnt/c/project/deep") == "9p"
    assert mounts.remote("/ssh") == "fuse.sshfs"
    for local in ("/home/other", "/mnt/c/local/x", "/layers/x", "/twice/x", "/", "/mnt"):
        assert mounts.remote(local) == ""
    assert mounts.all_remote(["/mnt/c/x", "/home/x"]) == {"/mnt/c/x": "9p"}


def test_file_systems_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystems, "REMOTE", {"proc"})
    assert Mounts.now().all_remote(["/proc/self", "/dev"]) == {"/proc/self": "proc"}


def test_remote_files_are_looked_at_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "far").mkdir()
    (folder / "far/x.py").write_text("first")
    table = f"1 0 0:1 / {folder}/far rw - nfs4 server:/ rw\n"
    # The kernel says what is mounted where; this is what it would say.
    monkeypatch.setattr(Mounts, "now", lambda: Mounts(table))
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    assert f"{folder}/far is on nfs4" in watched.notice()
    # Both are told, and once: what this machine writes to it the system tells of.
    (folder / "far/x.py").write_text("again")
    assert watched.message() == {str(folder / "far/x.py"): "code"}
    assert watched.settle() == {}
    watched.watcher.close()


def test_what_the_environment_says_of_polling() -> None:
    for text in ("1", "true", "yes"):
        assert is_forced({"WATCHFILES_FORCE_POLLING": text})
    for text in ("", "false", "disable", "disabled"):
        assert not is_forced({"WATCHFILES_FORCE_POLLING": text})
    assert not is_forced({})
    assert delay({"WATCHFILES_POLL_DELAY_MS": "250"}) == 0.25
    assert delay({"WATCHFILES_POLL_DELAY_MS": "often"}) == delay({}) == 0


def test_too_many_folders_are_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poorhttp.plugins.dev.reload.watch.project.FOLDERS", 2)
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    assert "too many folders" in watched.notice()
    watched.watcher.close()


# The process


def test_it_leaves_nothing_behind(folder: Path) -> None:
    before = descriptors(os.getpid())
    watcher = Watcher(WatchedProject([(str(folder), CODE)]))
    pid = watcher.pid
    watcher.close()
    assert not psutil.pid_exists(pid)
    assert watcher.fileno() == -1
    assert watcher.receive() == []
    assert descriptors(os.getpid()) == before
    watcher.close()
    watcher.watch_also([str(folder)])


def test_ctrl_c_is_for_the_main_process(folder: Path, watched: Watched) -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1):
        os.kill(watched.watcher.pid, number)
    assert watched.settle() == {}


def test_it_has_nothing_open_that_is_not_its_own(folder: Path) -> None:
    """A port would be in use as long as it lives."""
    with socket.create_server(("127.0.0.1", 0)):
        watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
        assert sum(name.startswith("socket:") for name in opened(watched.watcher.pid)) == 1
        watched.watcher.close()


def test_another_one_takes_over(folder: Path, watched: Watched) -> None:
    pid = watched.watcher.pid
    package = folder.parent / "src"
    package.mkdir()
    watched.watcher.watch_also([str(package)])
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    (folder / "app.py").write_text("while nobody watched")
    assert not watched.watcher.reap(pid + 1)
    assert watched.watcher.reap(pid)
    assert not watched.watcher.reap(pid)
    assert watched.watcher.pid not in (0, pid)
    assert watched.message()[str(folder / "app.py")] == "code"
    wait_for(lambda: watches(watched.watcher.pid) == 4, "it watches what the other one did")
    (folder / "app.py").write_text("again")
    assert str(folder / "app.py") in watched.settle()


def test_what_it_had_told_before_it_ended_is_heard(folder: Path, watched: Watched) -> None:
    (folder / "app.py").write_text("again")
    assert select.select([watched.watcher], [], [], HANG)[0]
    pid = watched.watcher.pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    watched.watcher.reap(pid)
    assert ("code", str(folder / "app.py")) in watched.watcher.receive()


def test_one_that_ends_again_and_again_is_given_up(folder: Path) -> None:
    watched = Watched(WatchedProject([(str(folder), CODE)]), folder)
    for _ in range(3):
        pid = watched.watcher.pid
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        assert watched.watcher.reap(pid)
    assert watched.watcher.pid == 0
    assert "restart the server" in watched.notice()
    assert watched.watcher.receive() == []
    assert watched.watcher.fileno() == -1


def test_it_ends_with_the_main_process() -> None:
    program = textwrap.dedent("""
        import os, time
        from poorhttp.plugins.dev.reload.watch.project import WatchedProject
        from poorhttp.targets.target import CODE
        from poorhttp.plugins.dev.reload.watch.watcher import Watcher
        watcher = Watcher(WatchedProject([(os.getcwd(), CODE)]))
        print(watcher.pid, flush=True)
        time.sleep(600)
    """)
    main = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment()
    )
    assert main.stdout
    pid = int(main.stdout.readline())
    wait_for(lambda: watches(pid), "it watches")
    main.kill()
    main.wait(HANG)
    main.stdout.close()
    wait_for(lambda: not lives(pid), "the end of the watcher")


def test_it_is_light() -> None:
    """The main process imports all that it needs: what two of them have is shared."""
    program = (
        "import sys\n"
        "import poorhttp.supervisor.supervisor\n"
        "from poorhttp.plugins.dev.reload.watch.watcher import Watcher\n"
        "heavy = {'re', 'typing', 'json', 'logging', 'asyncio', 'pathlib', 'watchfiles'}\n"
        "process = 'poorhttp.plugins.dev.reload.watch.watcher_process'\n"
        "print(process in sys.modules, *heavy & set(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=environment({"PYTHONPATH": str(ROOT)}),
        timeout=HANG,
    )
    assert done.stdout == "True\n"
