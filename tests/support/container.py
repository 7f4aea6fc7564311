"""Runs a container like conf/container/Containerfile by namespaces, without Docker.

No image is needed: what it has of files are those of this machine, read-only. All the rest is real:
a network, processes and mounts of its own, process 1, nobody's user without any rights, and nothing
that can be written to but /tmp.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from loadtests.network.hosts import Host
from tests.testkit.client import HANG, Connection
from tests.testkit.process import children
from tests.testkit.server import ROOT, Program, environment

FOLDER = ROOT / "conf" / "container"

#: Run as process 1 with a folder to make the root in, whether there is a /tmp, the user, then pairs
#: of what is seen where, up to `--`.
BEGIN = """
set -eu
new=$1 temporary=$2 user=$3
shift 3
mount -t tmpfs -o mode=755 tmpfs "$new"
mkdir "$new/tmp" "$new/proc" "$new/dev" "$new/old"
if [ "$temporary" = yes ]; then mount -t tmpfs -o mode=1777,size=64m tmpfs "$new/tmp"; fi
while [ "$1" != -- ]; do
    if [ -L "$1" ]; then
        cp -P "$1" "$new$2"
    else
        mkdir -p "$new${2%/*}"
        if [ -d "$1" ]; then mkdir -p "$new$2"; else touch "$new$2"; fi
        mount --bind "$1" "$new$2"
        case $1 in /dev/*) ;; *) mount -o remount,bind,ro "$new$2" ;; esac
    fi
    shift 2
done
shift
mount -t proc proc "$new/proc"
cd "$new"
pivot_root . old
umount -l old
mount -o remount,ro /
cd /srv/app
exec setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --no-new-privs \
    --bounding-set=-all --inh-caps=-all --ambient-caps=-all -- "$@"
"""


def instructions() -> list[tuple[str, str]]:
    """The lines of the container file, each split into its instruction and the rest."""
    text = (FOLDER / "Containerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.split(None, 1)[1]) for line in text.splitlines() if line.strip()]


def only(wanted: str) -> str:
    """What stands behind an instruction that is there once."""
    (found,) = [rest for instruction, rest in instructions() if instruction == wanted]
    return found


class Container(Program):
    """What the container file says, on `host`.

    `env` are further variables of it, `files` further files, and where it has them, `application`
    is the folder of the application.

    Attributes:
        init: its process 1, as it is numbered outside.
    """

    def __init__(
        self,
        host: Host,
        config: Path = FOLDER / "poorhttp.ini",
        *,
        env: Mapping[str, str] | None = None,
        temporary: bool = True,
        files: Mapping[str, str] | None = None,
        application: Path = ROOT / "apps" / "lightheavy",
    ) -> None:
        self.host = host
        words = json.loads(only("CMD"))
        assert words[:2] == ["poorhttp", "serve"]
        variables = dict(pair.split("=", 1) for pair in only("ENV").split())
        shown = {
            **{path: path for path in ("/usr", "/bin", "/sbin", "/lib", "/lib64")},
            **{path: path for path in ("/etc/ld.so.cache", sys.base_prefix, sys.prefix)},
            **{path: path for path in ("/dev/null", "/dev/urandom")},
            str(ROOT): str(ROOT),
            str(application): "/srv/app",
            str(config): words[words.index("-c") + 1],
            **(files or {}),
        }
        pairs = [word for pair in shown.items() if Path(pair[0]).exists() for word in pair]
        self._folder = tempfile.TemporaryDirectory()
        super().__init__(
            *host.launcher,
            *("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"),
            *("--propagation", "private", "sh", "-c", BEGIN, "sh", self._folder.name),
            *("yes" if temporary else "no", only("USER"), *pairs, "--"),
            *(sys.executable, "-m", *words),
            env={**variables, **(env or {})},
            merged=True,
        )
        self.wait_line()
        (self.init,) = children(self.process.pid)

    def _close(self) -> None:
        super()._close()
        self._folder.cleanup()

    def connect(self, client: Host, port: int = 8080) -> Connection:
        """A connection from a host."""
        with client.inside():
            return Connection((self.host.address, port))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as its user."""
        user, _, group = only("USER").partition(":")
        return subprocess.run(
            ["nsenter", "--target", str(self.init), "--all", "-S", user, "-G", group, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment(),
            timeout=HANG,
            check=False,
        )

    def path(self, path: str) -> Path:
        """A file in it, as it is found outside."""
        return Path(f"/proc/{self.init}/root{path}")

    def stop(self, number: int) -> int:
        """Send a signal to its process 1, and wait for its end; the exit code."""
        os.kill(self.init, number)
        return self.wait()
