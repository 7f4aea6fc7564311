"""The manager of services that systemctl asks: a process that starts, stops and watches them.

It listens at /run/systemctl.sock; a request is a line of JSON, `[COMMAND, UNIT]`, the response one
too, `[EXIT CODE, TEXT]`. What services print is in /run/journal/UNIT.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

from tests.manual.stand_ins.sockets import Socket
from tests.manual.stand_ins.units import Unit, UnitError

ADDRESS = "/run/systemctl.sock"
JOURNAL = Path("/run/journal")
#: Seconds that a service may take to start or to stop.
LIMIT = 240


def user_of(unit: Unit) -> tuple[int, int, str]:
    """The user, group and name under which a service runs; makes a dynamic user."""
    name = unit.get("User", unit.stem if unit.is_on("DynamicUser") else "root")
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        if not unit.is_on("DynamicUser"):
            raise UnitError(f"{unit.name}: Failed to determine user credentials: {name}") from None
        number = 61184 + len(name) + sum(name.encode()) % 4000
        subprocess.run(["groupadd", "-g", str(number), name], check=True, timeout=240)
        words = ["useradd", "-M", "-u", str(number), "-g", name, "-d", "/", name]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL, timeout=240)
        found = pwd.getpwnam(name)
    group = found.pw_gid
    if unit.get("Group"):
        import grp

        group = grp.getgrnam(unit.get("Group")).gr_gid
    return found.pw_uid, group, name


def accepting(pid: int) -> set[str]:
    """The worker processes of nginx that accept connections, if `pid` is that of nginx."""
    found = set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):
            title = Path(f"/proc/{child}/cmdline").read_text().strip("\0 ")
            if title == "nginx: worker process":
                found.add(child)
    return found


class Service:
    """A service: its main process, and what it has said about itself."""

    def __init__(self, unit: Unit, sockets: list[Socket]) -> None:
        self.unit = unit
        self.sockets = sockets
        self.pid = 0
        self.state = "inactive"
        self.status = ""
        self.stopping = False
        self.heard = threading.Condition()
        self.notices: dict[str, str] = {}
        self.journal = JOURNAL / unit.name
        self.group = 0

    # What a service is started with

    def environment(self, folders: dict[str, str]) -> dict[str, str]:
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}
        # The stand-ins of programs need them.
        env |= {name: value for name, value in os.environ.items() if name.startswith("MANUAL_")}
        for pair in self.unit.words("Environment"):
            name, _, value = pair.partition("=")
            env[name] = value
        for given in self.unit.all("EnvironmentFile"):
            path = Path(given.removeprefix("-"))
            if not path.exists() and not given.startswith("-"):
                raise UnitError(f"{self.unit.name}: Failed to load environment files: {path}")
            for line in path.read_text().splitlines() if path.exists() else ():
                if "=" in line and not line.lstrip().startswith(("#", ";")):
                    key, _, value = line.partition("=")
                    env[key.strip()] = value.strip().strip("\"'")
        return env | folders

    def folders(self, user: int, group: int) -> dict[str, str]:
        """Make its folders; the variables that name them."""
        found = {}
        places = {"Runtime": "/run", "State": "/var/lib", "Cache": "/var/cache", "Logs": "/var/log"}
        for kind, place in places.items():
            paths = [Path(place, name) for name in self.unit.words(f"{kind}Directory")]
            for path in paths:
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(int(self.unit.get(f"{kind}DirectoryMode", "0755"), 8))
                os.chown(path, user, group)
            if paths:
                found[f"{kind.upper()}_DIRECTORY"] = ":".join(map(str, paths))
        return found

    def check(self, words: list[str]) -> None:
        """Refuse what systemd would not find."""
        unit = self.unit
        if not os.access(words[0], os.X_OK):
            raise UnitError(f"{unit.name}: Unable to locate executable '{words[0]}' (203/EXEC)")
        hidden = ["/home/", "/root/"] if unit.get("ProtectHome") in ("yes", "true", "on") else []
        hidden += ["/tmp/", "/var/tmp/"] if unit.is_on("PrivateTmp") else []
        seen = (os.environ["MANUAL_ROOT"], os.environ["MANUAL_PROGRAMS"])
        for path in (words[0], unit.get("WorkingDirectory")):
            if path.startswith(tuple(hidden)) and not path.startswith(seen):
                message = "is hidden by ProtectHome= or PrivateTmp="
                raise UnitError(f"{unit.name}: {path} {message}")
        folder = unit.get("WorkingDirectory", "/").removeprefix("-")
        if not os.path.isdir(folder):
            raise UnitError(f"{unit.name}: Changing to {folder} failed (200/CHDIR)")

    def execute(self, text: str, wait: bool) -> int:
        """Run a command line; its exit status, or the process if it is not waited for."""
        failing_is_fine = plain = False
        while text[0] in "-+!@:":
            failing_is_fine |= text[0] == "-"
            plain |= text[0] in "+!"
            text = text[1:]
        user, group, name = user_of(self.unit)
        env = self.environment(self.folders(user, group))
        if self.pid:
            env["MAINPID"] = str(self.pid)
        words = []
        for word in shlex.split(text):
            if word.startswith("$") and word[1:].strip("{}") in env and "{" not in word:
                words += env[word[1:]].split()
            else:
                words.append(re.sub(r"\$\{(\w+)\}", lambda found: env.get(found[1], ""), word))
        self.check(words)
        if wait:
            with self.journal.open("ab") as log:
                status = subprocess.run(
                    words,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.unit.get("WorkingDirectory", "/"),
                    user=None if plain else user,
                    group=None if plain else group,
                    check=False,
                    timeout=240,
                ).returncode
            return 0 if failing_is_fine else status
        return self._fork(words, env, user, group, name)

    def _fork(self, words: list[str], env: dict[str, str], user: int, group: int, name: str) -> int:
        notify = f"/run/notify-{self.unit.stem}"
        Path(notify).unlink(missing_ok=True)
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        heard.bind(notify)
        os.chmod(notify, 0o777)
        threading.Thread(target=self._hear, args=[heard], daemon=True).start()
        env["NOTIFY_SOCKET"] = notify
        passed = [opened for unit in self.sockets for opened in unit.sockets]
        log = os.open(self.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        pid = os.fork()
        if pid:
            os.close(log)
            return pid
        try:
            os.setsid()
            if passed:
                env["LISTEN_FDS"] = str(len(passed))
                names = [name for unit in self.sockets for name in unit.names]
                env["LISTEN_FDNAMES"] = ":".join(names)
                env["LISTEN_PID"] = str(os.getpid())
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            # First out of the way of each other.
            high = [os.dup2(opened.fileno(), 200 + at) for at, opened in enumerate(passed)]
            for at, number in enumerate(high):
                os.dup2(number, 3 + at)
            os.closerange(3 + len(passed), 300)
            os.umask(int(self.unit.get("UMask", "0022"), 8))
            os.chdir(self.unit.get("WorkingDirectory", "/"))
            if user:
                os.initgroups(name, group)
                more = self.unit.words("SupplementaryGroups")
                if more:
                    import grp

                    os.setgroups([*os.getgroups(), *(grp.getgrnam(it).gr_gid for it in more)])
            os.setgid(group)
            os.setuid(user)
            os.execve(words[0], words, env)
        except BaseException:
            traceback.print_exc()
        os._exit(203)

    def _hear(self, heard: socket.socket) -> None:
        """Read what it tells through NOTIFY_SOCKET."""
        while message := heard.recv(65536):
            with self.heard:
                for line in message.decode().splitlines():
                    name, _, value = line.partition("=")
                    self.notices[name] = value
                    if name == "STATUS":
                        self.status = value
                    elif name == "MAINPID":
                        self.pid = int(value)
                self.heard.notify_all()

    # Commands

    def start(self) -> None:
        """Start it, and wait until it is up."""
        unit = self.unit
        self.stopping = False
        self.notices.clear()
        self.pid = 0
        kind = unit.get("Type", "simple")
        for text in unit.all("ExecStartPre"):
            if self.execute(text, wait=True):
                raise UnitError(f"{unit.name}: ExecStartPre failed: {text}")
        text = unit.get("ExecStart")
        if kind in ("forking", "oneshot"):
            if self.execute(text, wait=True):
                self.state = "failed"
                raise UnitError(f"{unit.name}: ExecStart failed: {text}")
            if kind == "forking":
                self.pid = int(Path(unit.get("PIDFile")).read_text())
        else:
            self.pid = self.execute(text, wait=False)
            threading.Thread(target=self._watch, args=[self.pid], daemon=True).start()
            if kind.startswith("notify"):
                with self.heard:
                    up = self.heard.wait_for(
                        lambda: "READY" in self.notices or not self.pid or self.stopping, LIMIT
                    )
                if not up or not self.pid:
                    self.state = "failed"
                    raise UnitError(f"Job for {unit.name} failed because it did not become ready.")
        self.state = "active"

    def _watch(self, pid: int) -> None:
        """Wait for the end of its first main process; restart it if the unit says so."""
        _, status = os.waitpid(pid, 0)
        with self.heard:
            code = os.waitstatus_to_exitcode(status)
            if self.pid != pid:
                return
            self.pid = 0
            self.heard.notify_all()
        started = self.state == "active"
        self.state = "inactive" if code in (0, -signal.SIGTERM) else "failed"
        restart = self.unit.get("Restart", "no")
        prevent = self.unit.words("RestartPreventExitStatus")
        if self.stopping or not started or restart == "no" or str(code) in prevent:
            return
        if restart == "always" or code not in (0, -signal.SIGTERM):
            try:
                self.start()
            except UnitError:
                traceback.print_exc()

    def is_running(self) -> bool:
        try:
            return bool(self.pid) and Path(f"/proc/{self.pid}/stat").read_text().split()[2] != "Z"
        except (FileNotFoundError, ProcessLookupError):  # the latter: it ended after the opening
            return False

    def stop(self) -> None:
        self.stopping = True
        for text in self.unit.all("ExecStop"):
            self.execute("-" + text, wait=True)
        pid = self.pid
        if self.is_running():
            name = self.unit.get("KillSignal", "SIGTERM")
            os.kill(pid, getattr(signal, name if name.startswith("SIG") else f"SIG{name}"))
        end = time.monotonic() + LIMIT
        while self.is_running():
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        self.state = "inactive"
        for name in self.unit.words("RuntimeDirectory"):
            if self.unit.get("RuntimeDirectoryPreserve", "no") == "no":
                subprocess.run(["rm", "-rf", f"/run/{name}"], check=True, timeout=240)

    def reload(self) -> None:
        if not self.is_running():
            raise UnitError(f"{self.unit.name} is not active, cannot reload.")
        if self.unit.get("Type") == "notify-reload":
            self._reload_by_signal()
            return
        texts = self.unit.all("ExecReload")
        if not texts:
            raise UnitError(f"Job type reload is not applicable for unit {self.unit.name}.")
        before = accepting(self.pid)
        with self.heard:
            self.notices.clear()
        for text in texts:
            if self.execute(text, wait=True):
                raise UnitError(f"Reload failed for {self.unit.name}: {text}")
        # systemd does not wait for more. A person is slower than a reload; the next command of a
        # page is not.
        if Path(f"/proc/{self.pid}/comm").read_text() == "poorhttp\n":
            with self.heard:
                self.heard.wait_for(lambda: {"RELOADING", "READY"} <= set(self.notices), LIMIT)
        end = time.monotonic() + LIMIT
        while before & accepting(self.pid) and time.monotonic() < end:
            time.sleep(0.01)

    def _reload_by_signal(self) -> None:
        """SIGHUP, RELOADING=1, READY=1."""
        with self.heard:
            self.notices.clear()
            os.kill(self.pid, signal.SIGHUP)
            if not self.heard.wait_for(lambda: {"RELOADING", "READY"} <= set(self.notices), LIMIT):
                raise UnitError(f"Reload of {self.unit.name} timed out.")


class Manager:
    """All units."""

    def __init__(self) -> None:
        self.services: dict[str, Service] = {}
        self.sockets: dict[str, Socket] = {}

    def start(self, name: str) -> None:
        """Start a unit, with the socket units that it requires."""
        unit = Unit(name)
        if unit.kind == "socket":
            if unit.name not in self.sockets:
                self.sockets[unit.name] = Socket(unit)
                if f"{unit.stem}.service" not in self.services or not self.active(unit.stem):
                    self._await(self.sockets[unit.name])
            return
        if unit.kind != "service" or self.active(unit.name):
            return
        needed = [*unit.words("Unit.Requires"), *unit.words("Sockets"), *unit.words("Unit.Wants")]
        needed = [it for it in dict.fromkeys(needed) if it.endswith(".socket")]
        for it in needed:
            self.start(it)
        own = [
            it for it in self.sockets if it == f"{unit.stem}.socket" or it in unit.words("Sockets")
        ]
        service = Service(unit, [self.sockets[it] for it in own])
        self.services[unit.name] = service
        service.start()

    def _await(self, opened: Socket) -> None:
        """Start the service of a socket when somebody connects."""
        name = opened.unit.get("Service", f"{opened.unit.stem}.service")

        def begin() -> None:
            try:
                opened.watch()
                if not self.active(name):
                    self.start(name)
            except (UnitError, OSError, ValueError):
                traceback.print_exc()

        threading.Thread(target=begin, daemon=True).start()

    def active(self, name: str) -> bool:
        name = name if "." in name else f"{name}.service"
        if name.endswith(".socket"):
            return name in self.sockets
        return name in self.services and self.services[name].is_running()

    def stop(self, name: str) -> None:
        name = Unit(name).name
        if name in self.sockets:
            self.sockets.pop(name).close()
        elif name in self.services:
            self.services[name].stop()

    def do(self, command: str, name: str) -> tuple[int, str]:
        """Do what systemctl is asked to."""
        unit = Unit(name)
        if command == "is-active":
            active = self.active(name)
            return (0, "active") if active else (3, "inactive")
        if command == "status":
            return self.status(unit)
        if command == "restart":
            self.stop(name)
        if command in ("start", "restart"):
            self.start(name)
        elif command == "reload":
            if unit.name in self.services:
                self.services[unit.name].unit = unit
            self.services.get(unit.name, Service(unit, [])).reload()
        elif command == "stop":
            self.stop(name)
        elif command == "kill":
            os.kill(self.services[unit.name].pid, signal.SIGTERM)
        return 0, ""

    def status(self, unit: Unit) -> tuple[int, str]:
        """The text of `systemctl status`."""
        lines = [f"● {unit.name} - {unit.get('Unit.Description', unit.name)}"]
        lines.append(f"     Loaded: loaded ({unit.path}; enabled; preset: enabled)")
        service = self.services.get(unit.name)
        active = self.active(unit.name)
        if unit.kind == "socket":
            lines.append(f"     Active: {'active (listening)' if active else 'inactive (dead)'}")
            return 0 if active else 3, "\n".join(lines)
        if not service or not active:
            failed = service is not None and service.state == "failed"
            lines.append(f"     Active: {'failed' if failed else 'inactive (dead)'}")
            return 3, "\n".join(lines)
        program = Path(f"/proc/{service.pid}/comm").read_text().strip()
        lines.append("     Active: active (running) since Mon 2026-01-05 10:00:00 UTC")
        lines.append(f"   Main PID: {service.pid} ({program})")
        if service.status:
            lines.append(f'     Status: "{service.status}"')
        return 0, "\n".join(lines)


def main() -> None:
    """Serve requests of systemctl one after another."""
    JOURNAL.mkdir(exist_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(ADDRESS)
    os.chmod(ADDRESS, 0o666)
    listening.listen()
    manager = Manager()
    while True:
        connection, _ = listening.accept()
        with connection, connection.makefile("rw") as stream:
            command, name = json.loads(stream.readline())
            try:
                result = manager.do(command, name)
            except UnitError as error:
                result = (1, str(error))
            except Exception:
                result = (1, traceback.format_exc())
            stream.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
