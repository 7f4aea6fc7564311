"""The watcher process: changes in a real file system, and its messages about them."""

from __future__ import annotations

import itertools
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from poorhttp.plugins.dev.reload.watch import filesystems, watcher_process
from poorhttp.plugins.dev.reload.watch.filesystems import Mounts
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.plugins.dev.reload.watch.watcher import Watcher
from poorhttp.targets.target import CODE, FILES
from tests.support.development import save, write
from tests.testkit.client import HANG
from tests.testkit.process import opened, stopped, watches
from tests.testkit.server import Program, run, wait_for

#: Where nothing more is expected: what comes before such a file is all that has come.
MARK = "mark_"


class Watched:
    """A project in a folder, and the watcher of it, whose paths are relative to the folder here.

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
        mark = f"{MARK}{self._marks}.py"
        save(self._folder / mark, "x")
        told: dict[str, str] = {}
        while mark not in told:
            told |= self._next()
        return {path: told[path] for path in told if MARK not in path}

    def is_silent(self, seconds: float = 0.1) -> bool:
        """Whether nothing is told for so long."""
        return not select.select([self.watcher], [], [], seconds)[0]

    def wait_watches(self, number: int) -> None:
        """Wait until so many folders are watched."""
        wait_for(lambda: watches(self.watcher.pid) == number, f"{number} watched folders")

    def _next(self) -> dict[str, str]:
        assert not self.is_silent(HANG), "nothing is told"
        received = self.watcher.receive()
        self.notices += [text for kind, text in received if kind == "notice"]
        return {
            os.path.relpath(path, self._folder): kind for kind, path in received if kind != "notice"
        }

    def notice(self) -> str:
        """What it has to say next."""
        while not self.notices:
            self._next()
        return self.notices.pop(0)


def code(*names: str) -> dict[str, str]:
    """What is told of code files that have changed."""
    return dict.fromkeys(names, "code")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a project, whose files were saved long before it is watched."""
    path = tmp_path.resolve() / "work"
    (path / "package/deep").mkdir(parents=True)
    for name in ("app.py", "package/views.py"):
        write_old(path / name)
    return path


def write_old(path: Path) -> None:
    """Write a file as if it had been saved long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("first")
    os.utime(path, (1, 1))


#: Watches a project, that of `folder` if no other is given, until the test ends.
Watch = Callable[..., Watched]


@pytest.fixture
def watch(folder: Path) -> Iterator[Watch]:
    every: list[Watched] = []

    def start(*roots: tuple[str, str], at: Path = folder) -> Watched:
        every.append(Watched(WatchedProject([*roots] or [(str(at), CODE)]), at))
        return every[-1]

    yield start
    for each in every:
        each.watcher.close()
        assert each.notices == []


@pytest.fixture
def watched(watch: Watch) -> Watched:
    return watch()


@pytest.fixture
def polls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files looked at, unless the parameter is that the system tells of them."""
    if getattr(request, "param", True):
        monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "true")
        monkeypatch.setenv("WATCHFILES_POLL_DELAY_MS", "20")


BOTH = pytest.mark.parametrize("polls", [False, True], indirect=True)


# One file


def test_saves_of_the_same_size_within_a_moment_are_several(folder: Path, watched: Watched) -> None:
    for text in ("one", "two", "ten", "six"):
        save(folder / "app.py", text)
        assert watched.message() == code("app.py")
    assert watched.settle() == {}


def test_a_file_that_is_written_slowly_is_told_when_it_is_closed(
    folder: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is empty at first, and one that is overwritten."""
    monkeypatch.setattr(watcher_process, "HALF_DONE_WAIT", HANG)
    monkeypatch.setattr(watcher_process, "MAX_BURST", HANG)
    watched = watch()
    for how, buffering in (("w", -1), ("r+", 1)):
        with (folder / "app.py").open(how, buffering) as file:
            for text in ("half of\n", "what it will be\n"):
                assert watched.is_silent()
                file.write(text)
        assert watched.message() == code("app.py")
        assert watched.settle() == {}


#: Commands by which a file takes the place of another one.
REPLACE = (
    "cp -p {new} {old}.tmp && mv {old}.tmp {old}",
    "cat {new} > {old} && touch -r {new} {old}",
    "ln -f {new} {old}",
)


@BOTH
@pytest.mark.parametrize("command", REPLACE)
def test_a_file_of_equal_size_and_time_takes_its_place(
    command: str, folder: Path, watch: Watch, polls: None
) -> None:
    watched = watch()
    old, new = folder / "app.py", folder.parent / "new.py"
    for text in ("other", "third"):
        new.write_text(text)
        os.utime(new, (1, 1))
        words = ["sh", "-c", command.format(old=old, new=new)]
        subprocess.run(words, check=True, timeout=HANG)
        assert "app.py" in watched.message()
        # Of a link the next write would change both.
        new.unlink()


def test_changes_of_files(folder: Path, watched: Watched) -> None:
    (folder / "new.html").write_text("new")
    assert watched.message() == code("new.html")
    os.rename(folder / "new.html", folder / "package/old.html")
    assert watched.message() == code("new.html", "package/old.html")
    os.remove(folder / "package/old.html")
    assert watched.message() == code("package/old.html")
    # As vim does where it keeps a copy: the file is away for a moment.
    os.rename(folder / "app.py", folder / "app.py~")
    (folder / "4913").write_text("")
    os.remove(folder / "4913")
    (folder / "app.py").write_text("again")
    os.remove(folder / "app.py~")
    assert watched.settle() == code("app.py")
    # Permissions are no change.
    os.utime(folder / "app.py", (1, 1_000_000_000))
    assert watched.message() == code("app.py")
    os.chmod(folder / "app.py", 0o600)
    os.utime(folder / "app.py", (2, 1_000_000_000))
    assert watched.settle() == {}
    # A file that stays open is told all the same.
    with (folder / "app.py").open("r+") as file:
        file.write("open")
        file.flush()
        assert watched.message() == code("app.py")
    assert watched.settle() == {}
    # A name that is no text loses nothing.
    name = os.fsdecode(b"caf\xe9.py")
    write(folder, {name: "x", "app.py": "again and again"})
    assert watched.settle() == code(name, "app.py")
    (folder / "app.py").write_text("once more")
    assert watched.message() == code("app.py")


def test_what_does_not_matter_is_not_told(folder: Path, watched: Watched) -> None:
    ignored = (".app.py.swp", "app.db", "notes.txt", "__pycache__/app.pyc", "node_modules/x/x.py")
    write(folder, dict.fromkeys((*ignored, "temporary.py"), "x"))
    (folder / "new").mkdir()
    os.remove(folder / "temporary.py")
    assert watched.settle().keys() <= {"temporary.py"}
    assert watched.settle() == {}


# Many files


def test_a_thousand_files_are_told_once(folder: Path, watched: Watched) -> None:
    names = [f"package/{number}.py" for number in range(900)]
    names += [f"fresh/{number % 7}/{number}.html" for number in range(100)]
    for text in ("x", "xx"):
        with stopped(watched.watcher.pid):
            write(folder, dict.fromkeys(names, text))
        assert watched.message() == code(*names)
    with stopped(watched.watcher.pid):
        shutil.rmtree(folder / "fresh")
        shutil.rmtree(folder / "package")
    assert watched.message() == code(*names, "package/views.py")


def test_more_than_the_system_keeps_loses_nothing(folder: Path, watched: Watched) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    names = [folder / "one~", folder / "two~"]
    names[0].write_text("x")
    with stopped(watched.watcher.pid):
        for number in range(limit // 2 + 1):
            os.rename(names[number % 2], names[(number + 1) % 2])
        write(folder, {"app.py": "again", "fresh/x.py": "x"})
    assert watched.message() == code("app.py", "fresh/x.py")
    (folder / "fresh/x.py").write_text("xx")
    assert watched.settle() == code("fresh/x.py")


def test_a_checkout_is_told_when_git_is_done(folder: Path, watch: Watch) -> None:
    (folder / ".git").mkdir()
    watched = watch(at=folder / "package")
    (folder / ".git/index.lock").touch()
    for name in ("views.py", "deep/new.py"):
        (folder / "package" / name).write_text("again")
        # Git is slow.
        assert watched.is_silent(0.15)
    (folder / ".git/index.lock").unlink()
    assert watched.message() == code("views.py", "deep/new.py")


# Folders


def test_a_folder_that_is_moved_in_and_out(folder: Path, watched: Watched) -> None:
    outside = folder.parent / "outside"
    write(outside, {"inner/x.py": "x"})
    os.rename(outside, folder / "came")
    assert watched.message() == code("came/inner/x.py")
    (folder / "came/inner/x.py").write_text("again")
    assert watched.message() == code("came/inner/x.py")
    os.rename(folder / "came", folder / "moved")
    assert watched.message() == code("came/inner/x.py", "moved/inner/x.py")
    os.rename(folder / "moved", outside)
    assert watched.message() == code("moved/inner/x.py")
    (outside / "inner/x.py").write_text("elsewhere")
    assert watched.settle() == {}


def lead(link: Path, target: str) -> None:
    """Make a link, or have one lead elsewhere at once."""
    new = link.with_name("new~")
    new.symlink_to(target)
    new.replace(link)


def test_a_folder_above_that_is_exchanged(folder: Path, watch: Watch) -> None:
    """Nothing happens to the folder that is watched, and yet it is another one."""
    write(folder.parent, {"v1/app.py": "version 1", "v2/app.py": "version 2"})
    release = folder.parent / "release"
    lead(release, "v1")
    watched = watch(at=release)
    lead(release, "v2")
    assert watched.message()["app.py"] == "code"
    (folder.parent / "v2/app.py").write_text("again")
    assert watched.settle() == code("app.py")


@BOTH
def test_links_that_lead_elsewhere_now(folder: Path, watch: Watch, polls: None) -> None:
    """To files, folders and other links; each target is followed, the new one as well."""
    outside = folder.parent / "outside"
    for number, name in itertools.product("12", ("settings.yml", "views.py")):
        write_old(outside / number / name)
    lead(outside / "current", "1")
    lead(outside / "settings", "current/settings.yml")
    lead(folder / "one.yml", "../outside/1/settings.yml")
    lead(folder / "chain.yml", "../outside/settings")
    lead(folder / "shop", "../outside/current")
    lead(folder / "later.yml", str(outside / "later/settings.yml"))
    watched = watch()
    names = {"one.yml", "chain.yml", "shop/settings.yml", "shop/views.py"}
    for text in ("saved", "saved again"):
        write(outside, {"1/settings.yml": text, "1/views.py": text})
        assert watched.settle().keys() == names
    lead(folder / "one.yml", "../outside/2/settings.yml")
    assert watched.settle().keys() == {"one.yml"}
    save(outside / "2/settings.yml", "again")
    assert watched.settle().keys() == {"one.yml"}
    lead(outside / "current", "2")
    assert watched.settle().keys() == names - {"one.yml"}
    for text in ("now", "then"):
        (outside / "2/settings.yml").write_text(text)
        assert watched.settle().keys() == names - {"shop/views.py"}
    (outside / "1/settings.yml").write_text("nobody cares")
    assert watched.settle() == {}
    # Over one link of three.
    lead(outside / "settings", "1/settings.yml")
    assert watched.settle().keys() == {"chain.yml"}
    (outside / "1/views.py").write_text("beside it")
    save(outside / "1/settings.yml", "here again")
    assert watched.settle().keys() == {"chain.yml"}
    # What it leads to is there at last.
    write(outside, {"later/settings.yml": "late"})
    assert watched.message() == code("later.yml")


@BOTH
def test_links_between_folders_of_the_project(folder: Path, watch: Watch, polls: None) -> None:
    """No file has changed, and yet another package is imported."""
    for number in "12":
        write_old(folder / f"versions/{number}/__init__.py")
    lead(folder / "shop", "versions/1")
    lead(folder / "over", "shop")
    watched = watch()
    lead(folder / "shop", "versions/2")
    assert watched.settle() == code("shop", "over")
    save(folder / "versions/2/__init__.py", "again")
    assert watched.settle() == code("versions/2/__init__.py")
    (folder / "shop").unlink()
    assert watched.settle() == {}
    (folder / "shop").symlink_to("versions/1")
    assert watched.settle() == code("shop", "over")


def test_static_files_are_assets(folder: Path, watch: Watch) -> None:
    (folder / "public").mkdir()
    watched = watch((str(folder), CODE), (str(folder / "public"), FILES))
    write(folder, {"public/index.html": "new", "site.css": "new"})
    assert watched.settle() == {"public/index.html": "asset", "site.css": "asset"}


# Modules that are loaded from elsewhere


def test_an_editable_install(folder: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is watched at once, and what was saved while it was loaded is told."""
    monkeypatch.setattr(watcher_process, "ROOT_CHECK", 10 * HANG)
    watched = watch()
    package = folder.parent / "src/package"
    write_old(package / "__init__.py")
    write(package, {"new.py": "a moment ago"})
    watched.watcher.watch_also([str(package), str(folder.parent / "not there")])
    assert watched.message() == code("../src/package/new.py")
    watched.wait_watches(4)
    (package / "data.txt").write_text("nothing")
    save(package / "__init__.py", "again")
    assert watched.settle() == code("../src/package/__init__.py")


#: A file of a package that is installed.
INSTALLED = "../lib/site-packages/package/__init__.py"


@pytest.fixture
def installed(folder: Path) -> Path:
    write_old(folder / INSTALLED)
    return folder.parent / "lib/site-packages/package"


def watch_installed(watched: Watched, installed: Path) -> None:
    """Have the package watched beside the three folders of the project."""
    watched.watcher.watch_also([str(installed)])
    watched.wait_watches(4)
    assert watched.settle() == {}


def test_what_is_installed_is_told_when_pip_is_done(
    installed: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No pause of this test is long enough to be taken for the end of pip.
    monkeypatch.setattr(watcher_process, "INSTALL_QUIET", 2 * HANG)
    watched = watch()
    watch_installed(watched, installed)
    shutil.rmtree(installed)
    # A save of the user's own does not wait for that.
    assert watched.settle() == {}
    write(installed, {"__init__.py": "second"})
    assert watched.settle() == {}


def test_an_installed_package_that_is_removed_and_installed_again(
    watched: Watched, installed: Path
) -> None:
    watch_installed(watched, installed)
    shutil.rmtree(installed)
    assert watched.message() == {INSTALLED: "outside"}
    # Some installers keep the time that a file had where it was packed.
    write_old(installed / "__init__.py")
    assert watched.message() == {INSTALLED: "outside"}
    watched.wait_watches(4)
    write(installed, {"more.py": "third"})
    more, found = INSTALLED.replace("__init__", "more"), set[str]()
    while more not in found:
        found |= watched.message().keys()
    assert found <= {INSTALLED, more}


def test_only_what_matters_uses_up_watches(folder: Path, watch: Watch) -> None:
    folders = ("node_modules/a/b", ".git/objects", "__pycache__", "env/lib")
    write(folder, {"env/pyvenv.cfg": "", **{f"{name}/x": "" for name in folders}})
    assert watches(watch().watcher.pid) == 3


# Where the system does not tell


def test_polling(folder: Path, watch: Watch, polls: None) -> None:
    watched = watch()
    assert watches(watched.watcher.pid) == 0

    # All of it within the same second, which notify's own polling would take for one.
    for name, text in zip(["app.py"] * 3 + ["fresh/deep/x.py"] * 2, "123xy", strict=True):
        # Not seen before it is whole, which would be another change.
        with stopped(watched.watcher.pid):
            write(folder, {name: text})
        assert watched.message() == code(name)
    shutil.rmtree(folder / "fresh")
    assert watched.message() == code("fresh/deep/x.py")
    os.chmod(folder / "app.py", 0o600)
    assert watched.settle() == {}
    names = [f"package/{number}.py" for number in range(1000)]
    with stopped(watched.watcher.pid):
        write(folder, dict.fromkeys(names, "x"))
    assert watched.message() == code(*names)


#: Watches a folder in a user namespace whose limits of inotify are lowered, and says what it hears.
LIMITED = """
import os, select, sys
from poorhttp.plugins.dev.reload.watch.project import WatchedProject
from poorhttp.targets.target import CODE
from poorhttp.plugins.dev.reload.watch.watcher import Watcher
limit, value, folder, *also = sys.argv[1:]
with open(f"/proc/sys/user/max_inotify_{limit}", "w") as file:
    file.write(value)
watcher = Watcher(WatchedProject([(folder, CODE)]))
watcher.watch_also(also)
while not os.path.exists(folder + "/end"):
    if select.select([watcher], [], [], 0.01)[0]:
        for pair in watcher.receive():
            print(*pair, file=sys.stderr, flush=True)
watcher.close()
"""


@pytest.mark.parametrize(
    ("limit", "value", "also"), [("instances", "0", ""), ("watches", "3", "also")]
)
def test_a_full_limit_of_inotify(folder: Path, limit: str, value: str, also: str) -> None:
    if (done := run("unshare", "-Ur", "true")).returncode:
        pytest.skip(f"no user namespaces here: {done.stderr}")
    others = [folder.parent / also / "x.py"] if also else []
    for path in others:
        write_old(path)
    folders = (folder, *(path.parent for path in others))
    words = ("unshare", "-Ur", sys.executable, "-c", LIMITED, limit, value)
    with Program(*words, *folders) as program:
        notice = program.wait_line(re.compile(r"\Anotice (.*)\n"))[1]
        assert f"fs.inotify.max_user_{limit} ({value}) is used up" in notice
        assert f"sudo sysctl fs.inotify.max_user_{limit}=" in notice
        # All of them are noticed all the same.
        for path in (folder / "app.py", *others):
            path.write_text("again")
            program.wait_log(f"code {path}\n")
        (folder / "end").touch()
        assert program.wait() == 0


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


def test_file_systems_that_others_write_to(monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = Mounts(MOUNTINFO)
    remote = {"/home/my net/project": "nfs4", "/mnt/c/project/deep": "9p", "/ssh": "fuse.sshfs"}
    local = ("/home/other", "/mnt/c/local/x", "/layers/x", "/twice/x", "/", "/mnt")
    for path, kind in {**remote, **dict.fromkeys(local, "")}.items():
        assert mounts.remote(path) == kind
    assert mounts.all_remote(["/mnt/c/x", "/home/x"]) == {"/mnt/c/x": "9p"}
    # Those of this process.
    monkeypatch.setattr(filesystems, "REMOTE", {"proc"})
    assert Mounts.now().all_remote(["/proc/self", "/dev"]) == {"/proc/self": "proc"}


def test_remote_files_are_looked_at_too(
    folder: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {"far/x.py": "first"})
    table = f"1 0 0:1 / {folder}/far rw - nfs4 server:/ rw\n"
    # The kernel says what is mounted where; this is what it would say.
    monkeypatch.setattr(Mounts, "now", lambda: Mounts(table))
    watched = watch()
    assert f"{folder}/far is on nfs4" in watched.notice()
    # Both are told, and once: what this machine writes to it the system tells of.
    (folder / "far/x.py").write_text("again")
    assert watched.message() == code("far/x.py")
    assert watched.settle() == {}


def test_too_many_folders_are_said(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("poorhttp.plugins.dev.reload.watch.project.FOLDERS", 2)
    assert "too many folders" in watch().notice()


# The process


def test_ctrl_c_is_for_the_main_process(watched: Watched) -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1):
        os.kill(watched.watcher.pid, number)
    assert watched.settle() == {}


def test_it_has_nothing_open_that_is_not_its_own(watch: Watch) -> None:
    """A port would be in use as long as it lives."""
    with socket.create_server(("127.0.0.1", 0)):
        names = opened(watch().watcher.pid)
        assert sum(name.startswith("socket:") for name in names) == 1


def kill(watched: Watched) -> int:
    """Kill the process; its number, which has not been heard of yet."""
    pid = watched.watcher.pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return pid


def test_another_one_takes_over(folder: Path, watched: Watched) -> None:
    (folder.parent / "src").mkdir()
    watched.watcher.watch_also([str(folder.parent / "src")])
    pid = kill(watched)
    (folder / "app.py").write_text("while nobody watched")
    assert [watched.watcher.reap(each) for each in (pid + 1, pid, pid)] == [False, True, False]
    assert watched.watcher.pid not in (0, pid)
    assert watched.message()["app.py"] == "code"
    watched.wait_watches(4)
    (folder / "app.py").write_text("again")
    assert "app.py" in watched.settle()


def test_what_it_had_told_before_it_ended_is_heard(folder: Path, watched: Watched) -> None:
    (folder / "app.py").write_text("again")
    assert not watched.is_silent(HANG)
    watched.watcher.reap(kill(watched))
    assert ("code", str(folder / "app.py")) in watched.watcher.receive()


def test_one_that_ends_again_and_again_is_given_up(watched: Watched) -> None:
    for _ in range(3):
        assert watched.watcher.reap(kill(watched))
    assert watched.watcher.pid == 0
    assert "restart the server" in watched.notice()
    assert (watched.watcher.receive(), watched.watcher.fileno()) == ([], -1)
