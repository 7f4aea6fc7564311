"""`poorhttp migrate` as root, on files of somebody who wants root's rights; and as another user."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from poorhttp.errors import Failure
from poorhttp.plugins.setup.migrate import gunicorn_file, sandbox, seccomp, sources
from tests.commands.test_migrate import flat, plan_of
from tests.support.development import write
from tests.support.forked_command import run_command
from tests.support.nobody import Nobody
from tests.testkit.client import HANG
from tests.testkit.process import children, lives
from tests.testkit.server import ROOT, Program, command, environment, run, wait_for

CASES = ROOT / "tests" / "cases" / "migrate" / "hostile"

#: A user who is not root; nothing belongs to them but what tests give.
STRANGER = 65533

Migrate = Callable[..., "subprocess.CompletedProcess[str]"]

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to lose")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may write, in one that everybody may enter."""
    with TemporaryDirectory() as name:
        above = Path(name).resolve()
        above.chmod(0o755)
        (above / "theirs").mkdir()
        (above / "theirs").chmod(0o777)
        yield above / "theirs"


@pytest.fixture(scope="module")
def interpreter(nobody: Nobody) -> str:
    """An interpreter that every user may start: ours, or a copy of it beside its library."""
    if "PYTHONHOME" not in nobody.env:
        return sys.executable
    program = Path(nobody.env["PYTHONHOME"]) / "bin" / f"python3.{sys.version_info.minor}"
    if not program.exists():
        program.parent.mkdir()
        shutil.copy2(os.path.realpath(sys.executable), program)
        library = Path(sysconfig.get_config_var("LIBDIR")) / sysconfig.get_config_var("INSTSONAME")
        if library.suffix != ".a" and library.exists():
            shutil.copy2(library, program.parent)
            nobody.env["LD_LIBRARY_PATH"] = str(program.parent)
    return str(program)


@pytest.fixture(params=["root", "another user"])
def migrate(request: pytest.FixtureRequest) -> Migrate:
    """Run the command in a folder, as root and as another user."""
    if request.param == "root":
        if os.geteuid() != 0:
            pytest.skip("only root is root")
        return lambda *words, cwd, env=None: run_command("migrate", *words, cwd=cwd, env=env)
    return request.getfixturevalue("migrate_as_other")  # type: ignore[no-any-return]


@pytest.fixture
def migrate_as_other(nobody: Nobody, interpreter: str) -> Migrate:
    """Run the command as another user than root."""

    def start(
        *words: str, cwd: Path, env: dict[str, str] | None = None, program: str = ""
    ) -> subprocess.CompletedProcess[str]:
        code = program or "import sys; from poorhttp.cli import main; sys.exit(main())"
        other: Any = {"user": STRANGER, "group": STRANGER, "extra_groups": []}
        return subprocess.run(
            [interpreter, "-B", "-c", code, "migrate", *words],
            cwd=cwd,
            env=environment({"PYTHONPATH": str(ROOT), "HOME": "/"} | nobody.env | (env or {})),
            **(other if os.geteuid() == 0 else {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )

    return start


@pytest.fixture
def targets(folder: Path) -> Iterator[dict[str, object]]:
    """What the attacks are aimed at: a file, a secret, listening sockets."""
    above = folder.parent
    file, secret = folder / "there", above / "secret"
    file.write_text("kept")
    file.chmod(0o666)
    secret.write_text("secret")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        unix.bind(str(above / "unix"))
        (above / "unix").chmod(0o666)
        abstract.bind("\0poorhttp-" + above.name)
        for listener in (unix, abstract):
            listener.listen()
        yield {
            "file": str(file),
            "new": str(folder / "new"),
            "outside": str(above),
            "port": tcp.getsockname()[1],
            "unix": str(above / "unix"),
            "abstract": "poorhttp-" + above.name,
            "secrets": ["/etc/shadow", str(secret), os.path.expanduser("~/.bashrc")],
            "variables": ["POORHTTP_ADMIN_TOKEN", "SECRET_KEY", "SHOP_URL"],
        }
        for listener in (tcp, unix, abstract):
            listener.settimeout(0)
            with pytest.raises(BlockingIOError):
                listener.accept()
    assert file.read_text() == "kept"
    assert file.stat().st_mode & 0o777 == 0o666
    assert not (folder / "new").exists()


def test_attacks(migrate: Migrate, folder: Path, targets: dict[str, object]) -> None:
    """Each attempt of tests/cases/migrate/hostile/attacks.py fails, as root and as another user."""
    shutil.copy(CASES / "attacks.py", folder / "gunicorn.conf.py")
    (folder / "targets.json").write_text(json.dumps(targets))
    secrets = {"POORHTTP_ADMIN_TOKEN": "1", "SECRET_KEY": "2"}
    secrets["SHOP_URL"] = "postgres://shop:password@db/shop"
    done = migrate("gunicorn.conf.py", cwd=folder, env=secrets)
    assert done.returncode == 0, done.stderr
    assert "not run" not in done.stdout
    # The values of the option.
    lines = done.stdout.partition("\nenv =\n")[2].partition("\n\n")[0].splitlines()
    outcomes = dict(line.strip().rsplit("=", 1) for line in lines)
    assert len(outcomes) > 90
    refused = {"EPERM", "EACCES", "ENOENT", "EBADF", "RuntimeError", "ValueError", "MemoryError"}
    variables = outcomes.pop("variables")
    assert {name: each for name, each in outcomes.items() if each not in refused} == {}
    assert variables == "none"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="x86_64 has other architectures in it")
@pytest.mark.parametrize(
    "statement",
    [
        # getpid as x32 numbers it.
        "ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 + 39))",
        # getpid of i386: mov eax, 20; int 0x80; ret.
        "(m := mmap.mmap(-1, 4096, prot=7)).write(bytes.fromhex('b814000000cd80c3')) and "
        "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()",
    ],
)
def test_system_calls_of_other_architectures_end_the_process(
    folder: Path, migrate: Migrate, statement: str
) -> None:
    off = "sys.modules['poorhttp.plugins.setup.migrate.sandbox'].REFUSED = ()"
    text = f"import ctypes, mmap, sys\n{off}\n{statement}\nbind = ':81'\n"
    (folder / "gunicorn.conf.py").write_text(text)
    done = migrate("gunicorn.conf.py", cwd=folder)
    assert "it does not end, or ends the process" in flat(done.stdout)
    assert "bind = 0.0.0.0:81" in done.stdout


def test_the_list_of_system_calls_has_the_numbers_of_the_kernel() -> None:
    """Both columns of the list, as the headers of the kernel have them."""
    found: dict[tuple[str, int], str] = {}
    headers = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")
    for column, header in enumerate(headers):
        if not os.path.isfile(header):
            pytest.skip(f"needs {header}: linux-libc-dev")
        for line in Path(header).read_text(encoding="utf-8").splitlines():
            words = line.split()
            if words[:1] == ["#define"] and len(words) > 2 and words[2].isdigit():
                name = words[1].removeprefix("__NR3264_").removeprefix("__NR_")
                found.setdefault((name, column), words[2])
    checked = {
        "open": seccomp.OPEN,
        "openat": seccomp.OPENAT,
        "ioctl": seccomp.IOCTL,
        "fcntl": seccomp.FCNTL,
        "prlimit64": seccomp.PRLIMIT64,
        "seccomp": seccomp.SECCOMP,
        "pivot_root": (sandbox.PIVOT_ROOT["x86_64"], sandbox.PIVOT_ROOT_GENERIC),
    }
    for name, numbers in (seccomp.ALLOWED | checked).items():
        for column, number in enumerate(numbers):
            # The generic table names newfstatat after its variant for 32 bits.
            known = found.get((name, column), found.get((name.removeprefix("new"), column), ""))
            assert known == str(number or "") or (number == 0 and known == "0"), (name, column)


@only_root
@pytest.mark.parametrize("way", ["-m", "-c"])
def test_modules_of_the_folder_are_not_imported_by_root(folder: Path, way: str) -> None:
    """They have the names of the standard library."""
    trap = "import os\nif os.getuid() == 0:\n    os.mkdir({!r})\n"
    for name in sorted(sys.stdlib_module_names):
        (folder / f"{name}.py").write_text(trap.format(str(folder / f"imported-{name}")))
    # `python -m` itself imports some of the current folder, before 3.11.
    (folder / "empty").mkdir()
    (folder / "empty" / "__main__.py").touch()
    run(sys.executable, "-m", "empty", cwd=folder)
    for marker in folder.glob("imported-*"):
        (folder / f"{marker.name.removeprefix('imported-')}.py").unlink()
        marker.rmdir()
    conf = "import settings\nbind = f':{settings.port}'\n"
    port = "import os\nport = 8000 + (os.getuid() == 65534)\n"
    write(folder, {"settings.py": port, "gunicorn.conf.py": conf})
    words = command("migrate", "gunicorn.conf.py")
    if way == "-c":
        start = "import sys; sys.path.remove(''); from poorhttp.cli import main; sys.exit(main())"
        words = [sys.executable, "-c", start, *words[-2:]]
    done = run(*words, cwd=folder)
    assert [path.name for path in folder.glob("imported-*")] == []
    assert "bind = 0.0.0.0:8001" in done.stdout, done.stderr


def test_a_procfile_does_not_set_variables_of_the_process(folder: Path) -> None:
    """The dynamic linker obeys some before any guard is there: it loads libraries, writes files."""
    variables = f"LD_DEBUG=files LD_DEBUG_OUTPUT={folder}/written LD_PRELOAD={folder}/theirs.so"
    conf = "# LD_DEBUG LD_DEBUG_OUTPUT LD_PRELOAD\nworkers = 3\n"
    write(folder, {"Procfile": f"web: {variables} gunicorn app:app\n", "gunicorn.conf.py": conf})
    done = run_command("migrate", "Procfile", cwd=folder)
    assert "workers = 3" in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["Procfile", "gunicorn.conf.py"]


#: Denies system calls to the command, as a kernel without them does: their numbers, and the error.
WITHOUT = """
import ctypes, struct, sys
numbers, error = {numbers!r}, {error}
code = [(0x20, 0, 0, 0)]
for number in numbers:
    code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | error)]
code.append((0x06, 0, 0, 0x7FFF0000))
text = b"".join(struct.pack("HBBI", *each) for each in code)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(code), text)), 0, 0) == 0
from poorhttp.cli import main
sys.exit(main())
"""

#: What a kernel, or the list of a container, may lack: numbers on x86_64 and elsewhere, and errors.
PARTS = {
    sandbox.LANDLOCK: ([444], [444], 38),
    sandbox.SECCOMP: ([317], [277], 38),
    sandbox.NAMESPACES: ([272], [97], 1),
    sandbox.TREE: ([165], [40], 1),
    sandbox.NOBODY_PART: ([117], [147], 1),
}


def without(part: str) -> str:
    """A program that runs the command without a part."""
    *numbers, error = PARTS[part]
    generic = os.uname().machine != "x86_64"
    return WITHOUT.format(numbers=numbers[generic], error=error)


@only_root
@pytest.mark.parametrize("part", PARTS)
def test_root_runs_no_file_where_a_part_is_lacking(folder: Path, part: str) -> None:
    (folder / "gunicorn.conf.py").write_text("bind = ':81'\n")
    words = (sys.executable, "-c", without(part), "migrate")
    done = run(*words, "gunicorn.conf.py", cwd=folder)
    assert done.returncode == 3
    assert done.stdout == ""
    assert "gunicorn.conf.py: is not run by root" in done.stderr
    assert part in done.stderr
    if part == sandbox.LANDLOCK:
        # A file that starts the server is read without the other one.
        (folder / "Procfile").write_text("web: gunicorn app:app\n")
        done = run(*words, "Procfile", cwd=folder)
        assert "target = app:app" in done.stdout
        assert "ATTENTION: ./gunicorn.conf.py: is not run by root" in done.stdout
        assert "./gunicorn.conf.py: is not run by root" in done.stderr


@pytest.mark.parametrize("part", [sandbox.LANDLOCK, sandbox.SECCOMP, sandbox.NAMESPACES])
def test_other_users_are_told_what_is_lacking(
    folder: Path, migrate_as_other: Migrate, targets: dict[str, object], part: str
) -> None:
    """The other parts are in force: what is attacked stays as it is."""
    text = f"file = {targets['file']!r}\nopen(file, 'w')\n"
    (folder / "gunicorn.conf.py").write_text(f"{text}bind = ':81'\n")
    done = migrate_as_other("gunicorn.conf.py", cwd=folder, program=without(part))
    assert done.returncode == 0, done.stderr
    assert f"does not offer {part}: {gunicorn_file.UNPROTECTED[part]}" in done.stderr
    assert "bind = 0.0.0.0:81" in done.stdout
    assert "ATTENTION" in done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "import os\nwhile True: os.write(fd, b'x' * 65536)",
        "open('fifo')",
        "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    ],
)
def test_waiting_has_an_end(folder: Path, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    monkeypatch.setattr(gunicorn_file, "PATIENCE", 1.5)
    os.mkfifo(folder / "fifo", 0o666)
    text = plan_of(folder, "gunicorn.conf.py", f"import os\nfd = 3\n{statement}\n").text("a test")
    assert "does not end" in text or "did not finish" in text


def test_the_process_ends_with_the_command(folder: Path) -> None:
    """Also if the command is killed, which cannot end it."""
    (folder / "gunicorn.conf.py").write_text("import time\ntime.sleep(1000)\n")
    with Program(*command("migrate", "gunicorn.conf.py"), cwd=folder) as started:
        wait_for(lambda: children(started.process.pid), "the process")
        (child,) = children(started.process.pid)
        status = Path(f"/proc/{child}/status")
        # The list of system calls is the last part.
        wait_for(lambda: "Seccomp:\t2" in status.read_text(), "the sandbox")
        started.process.kill()
        wait_for(lambda: not lives(child), "the end of the process")


@only_root
@pytest.mark.parametrize("kind", ["link", "folder", "hard link"])
def test_root_reads_no_file_through_links_of_others(folder: Path, kind: str) -> None:
    """Neither the file itself, nor a file that it names."""
    secret = folder.parent / "secret"
    secret.mkdir(mode=0o700)
    (secret / "x.ini").write_text("[uwsgi]\ntoken = 123456\n")
    if kind == "folder":
        (folder / "x").symlink_to(secret)
        name = "x/x.ini"
    else:
        (os.symlink if kind == "link" else os.link)(secret / "x.ini", folder / "x.ini")
        name = "x.ini"
    for path in (folder, *folder.iterdir()):
        if kind != "hard link":
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    own = folder / "uwsgi.ini"
    own.write_text(f"[uwsgi]\nhttp = :80\nini = {name}\n")
    os.chown(own, STRANGER, STRANGER)
    for file in ("uwsgi.ini", name):
        done = run_command("migrate", file, cwd=folder)
        assert "123456" not in done.stdout + done.stderr, file
        assert done.returncode == (0 if file == "uwsgi.ini" else 3), file


@only_root
@pytest.mark.parametrize("suffix", ["ini", "py"])
def test_root_reads_no_file_of_root_that_others_name(folder: Path, suffix: str) -> None:
    secret = folder.parent / f"secret.{suffix}"
    secret.write_text("[uwsgi]\ntoken = 123456\n" if suffix == "ini" else "workers = 123456\n")
    flag = "uwsgi --ini" if suffix == "ini" else "gunicorn app:app -c"
    procfile = folder / "Procfile"
    procfile.write_text(f"web: {flag} {secret}\n")
    os.chown(procfile, STRANGER, STRANGER)
    done = run_command("migrate", "Procfile", cwd=folder)
    assert "123456" not in done.stdout
    assert "which names it, belongs to another user" in flat(done.stdout)


@only_root
def test_root_writes_through_no_folder_of_others(folder: Path) -> None:
    """The folder of the output is a link of the stranger."""
    roots = folder.parent / "roots"
    roots.mkdir()
    (folder / "conf").symlink_to(roots)
    for path in (folder, folder / "conf"):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    words = ("migrate", "-o", "conf/poorhttp.ini", "--force", "gunicorn", "app:app")
    done = run_command(*words, cwd=folder)
    assert done.returncode == 3
    assert "is a symbolic link of user" in done.stderr
    assert list(roots.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("gunicorn.conf.py", "raise SystemError('\\x1b]0;x\\x07')\n(\n"),
        ("gunicorn.conf.py", "'\x1b]0;x\x07' = 1\n"),
        ("Procfile", "web: gunicorn 'app\x1b]0;x\x07\n"),
        ("uwsgi.ini", "[uwsgi]\nmodule = \x1b]0;x\x07\nx\x1b[2J = 1\n"),
        ("\x1b]0;x\x07", "nothing that is known"),
        ("shop.service", "[Service]\nExecStart=gunicorn '\x1b]0;x\x07'\nType=\x9b2J\n"),
    ],
)
def test_no_escape_sequence_reaches_the_terminal(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    done = run_command("migrate", name, cwd=folder)
    printed = done.stdout + done.stderr
    assert [letter for letter in printed if not letter.isprintable() and letter != "\n"] == []
    assert done.returncode in (0, 3)


def test_secrets_of_the_environment_are_not_written(folder: Path) -> None:
    """A stranger's file names variables; the ini file that is written is not secret."""
    variables = "env = A=$(POORHTTP_ADMIN_TOKEN)$(API_KEY)\nenv = B=$(STAGE)\n"
    (folder / "uwsgi.ini").write_text(f"[uwsgi]\nmodule = app\nhttp = :80\n{variables}")
    env = {"POORHTTP_ADMIN_TOKEN": "123456", "API_KEY": "654321", "STAGE": "test"}
    done = run_command("migrate", "uwsgi.ini", cwd=folder, env=env)
    assert "B=test" in done.stdout
    assert "123456" not in done.stdout
    assert "654321" not in done.stdout


#: Files whose size, or the work that they make, has to be limited.
LARGE = {
    "unknown": "\n" * 10**6,
    "Procfile": f"web: gunicorn {'a' * 10**6}",
    "flags.service": "ExecStart=gunicorn app " + "-w 1 " * 10**5,
    "variables.service": "ExecStart=gunicorn " + "$(${" * 10**5,
    "lines.service": "ExecStart=gunicorn app\n[Service]\n" + "A=B\n" * 10**4,
    "placeholders.ini": "[uwsgi]\nhttp = :80\nmodule = " + "%($(" * 10**5,
    "settings.json": json.dumps({"uwsgi": {f"k{number}": 1 for number in range(50_000)}}),
    "included.ini": "[uwsgi]\nhttp = :80\n" + "ini = :uwsgi\n" * 1000,
    "repeated.ini": "[uwsgi]\n" + f"for = {'1 ' * 999}\nhttp = :80\nendfor =\n" * 400,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_files_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Each would take minutes."""
    (folder / name).write_text(LARGE[name])
    monkeypatch.chdir(folder)
    with pytest.raises(Failure) as refused:
        sources.read([name], {})
    assert refused.value.exit_code == 3
    assert str(refused.value).startswith(name)
    assert len(str(refused.value)) < 490


def test_a_home_is_not_read(folder: Path, migrate: Migrate) -> None:
    """The home of the user has keys; the file is run all the same."""
    text = "try:\n    proc_name = open({!r}).read()\nexcept OSError:\n    proc_name = 'kept'\n"
    for name in ("gunicorn.conf.py", "conf/gunicorn.conf.py"):
        files = {".netrc": "machine x login y password 123456"}
        write(folder, files | {name: text.format(str(folder / ".netrc"))})
        done = migrate(name, cwd=folder, env={"HOME": str(folder)})
        assert "proc_name = kept" in done.stdout, done.stderr


NEEDS = """
import decimal, json, logging.config, multiprocessing, os, platform, pwd, random
import socket, sqlite3, ssl, subprocess, tempfile, time, urllib.request, uuid
import settings
assert multiprocessing.cpu_count() == os.cpu_count() > 0
assert socket.gethostname() and uuid.uuid4() and time.localtime().tm_year > 2000
assert pwd.getpwuid(0).pw_name == 'root' and open('/proc/meminfo').read()
assert ssl.create_default_context() and sqlite3.connect(':memory:')
proc_name = settings.name + open('VERSION').read() + os.environ['STAGE']
"""


def test_what_a_configuration_needs(folder: Path, migrate: Migrate) -> None:
    files = {"VERSION": "1.2", "settings.py": "name = 'shop'", "conf/gunicorn.conf.py": NEEDS}
    write(folder, files)
    done = migrate("conf/gunicorn.conf.py", cwd=folder, env={"STAGE": "test"})
    assert "proc_name = shop1.2test" in done.stdout, done.stdout + done.stderr
    assert "not run" not in done.stdout
