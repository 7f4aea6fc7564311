"""The web servers that can be put in front of ours: which program, and how it is started.

Every command runs in the foreground, in a folder that holds a copy of the configuration, and
writes nowhere else.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

#: Debian keeps servers where only root looks for programs.
SEARCH = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"

#: The ports that stand in the configurations.
_PORT = re.compile(r"\b(?:80[08][0-9]|8443)\b")

#: README.md has it too.
CERTIFICATE = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    *("-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
    *("-keyout", "site.pem.key", "-out", "site.pem"),
)


class ProxyError(Exception):
    """Something that whoever starts a proxy can mend."""


@dataclass(frozen=True)
class Program:
    """One of them.

    Attributes:
        name: of the program, and of the folder with its configurations.
        package: the package of Debian that has it.
        suffix: how the names of its configurations end.
        words: the command behind the program's path, for a configuration in a folder.
    """

    name: str
    package: str
    suffix: str
    words: Callable[[Path, str], list[str]]

    def cases(self) -> list[str]:
        """Return what there is a configuration for."""
        found = {path.name.removesuffix(self.suffix) for path in (FOLDER / self.name).iterdir()}
        return [case for case in ("balanced", "site", "gateway", "http2") if case in found]

    def path(self) -> str:
        """Return where the program is."""
        found = shutil.which(self.name, path=SEARCH)
        if found is None:
            raise ProxyError(f"{self.name} is not installed: apt install {self.package}")
        return found

    def ports(self, case: str) -> list[int]:
        """Return the ports that a configuration names, in order; each stands there once."""
        text = (FOLDER / self.name / f"{case}{self.suffix}").read_text()
        settings = re.sub("^ *#.*", "", text, flags=re.MULTILINE)
        found = [int(port) for port in _PORT.findall(settings)]
        if len(set(found)) < len(found):
            raise ProxyError(f"{case}{self.suffix} names a port twice: {found}")
        return sorted(found)

    def prepare(self, case: str, folder: Path, ports: Mapping[int, int]) -> None:
        """Copy the configurations into `folder`, with other ports where `ports` has some.

        Everything else stays as it is.
        """
        unknown = set(ports) - set(self.ports(case))
        if unknown:
            raise ProxyError(f"{case}{self.suffix} does not name the ports {sorted(unknown)}")
        shutil.copytree(FOLDER / self.name, folder, dirs_exist_ok=True)
        if case == "site":
            make_certificate(folder)
        path = folder / f"{case}{self.suffix}"
        path.write_text(
            _PORT.sub(lambda found: str(ports.get(int(found[0]), found[0])), path.read_text())
        )

    def command(self, case: str, folder: Path) -> list[str]:
        """Return the command that starts it in `folder`, which has to be its working directory."""
        return [self.path(), *self.words(folder, f"{case}{self.suffix}")]

    def environment(self, folder: Path) -> dict[str, str]:
        """Return its environment: Caddy keeps things below the home folder."""
        return {**os.environ, "HOME": str(folder)}


def is_servers(port: int) -> bool:
    """Tell whether a port of a configuration is that of a server, and not its own."""
    return 8080 <= port < 8090


def make_certificate(folder: Path) -> None:
    """Make a key and a certificate for this machine that nobody else believes, good for a day."""
    done = subprocess.run(
        [*CERTIFICATE, "-days", "1"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ProxyError(f"openssl makes no certificate: {done.stderr.strip()}")


def _nginx(folder: Path, name: str) -> list[str]:
    words = ["-e", "stderr", "-p", str(folder), "-c", str(folder / name)]
    if os.geteuid() == 0:
        # Else it becomes another user, who may not write into the folder.
        words += ["-g", "user root;"]
    return words


PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program("lighttpd", "lighttpd", ".conf", lambda _, name: ["-D", "-f", name]),
        Program("nginx", "nginx-light", ".conf", _nginx),
        Program(
            "haproxy", "haproxy", ".cfg", lambda _, name: ["-db", "-f", "common.cfg", "-f", name]
        ),
        Program(
            "apache2",
            "apache2",
            ".conf",
            lambda folder, name: ["-DFOREGROUND", "-d", str(folder), "-f", name],
        ),
        Program(
            "caddy",
            "caddy",
            ".Caddyfile",
            lambda _, name: ["run", "--adapter", "caddyfile", "--config", name],
        ),
    )
}
