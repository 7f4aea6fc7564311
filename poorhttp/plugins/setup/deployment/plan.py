"""Values that all files of a deployment share: names, folders, the target, the mode."""

from __future__ import annotations

import os
import sys

from poorhttp.plugins.setup.deployment.mode import Mode
from poorhttp.plugins.setup.deployment.project import DeployedProject

#: The configuration file.
INI = "poorhttp.ini"

#: The folder for all files where the folder of the project itself is served.
HIDDEN = ".deploy"

#: Schemes of targets whose files can be requested.
FILES = ("static", "pages", "cgi")

#: What a container has the project in.
IN_CONTAINER = "/srv/app"


class Plan:
    """The deployment of one application.

    Attributes:
        folder: absolute path of the project.
        name: of the service, the image and the resources of Kubernetes.
        domain: name of the host; empty for any.
        user: whose rights the service has; empty for one of its own.
        host: IP address, without brackets, that the server listens on.
        port: its port.
        socket: path of the Unix socket that it listens at instead; empty for TCP.
        group: whose members may connect to that socket.
        project: the source of the application.
        mode: its mode, with reasons.
        target: to be served; empty if `options` have a mount.
        options: further options, by name: `pythonpath`, `mount`, `static`.
        environment: variables that the application needs.
        found: the sentence that says what was found.
        proxied: whether a web server on this machine stands in front.
        missing: lines that a poorhttp.ini which is there needs for that.
        deploy: the folder for all files but poorhttp.ini, in that of the project.
        ini: path of poorhttp.ini, from there.
    """

    def __init__(
        self, folder: str, name: str, target: str, mode: Mode, project: DeployedProject
    ) -> None:
        self.folder = folder
        self.name = name
        self.domain = ""
        self.user = ""
        self.host, self.port = "127.0.0.1", 8080
        self.socket = ""
        self.group = "www-data"
        self.project = project
        self.mode = mode
        self.target = target
        self.options: dict[str, list[str]] = {}
        self.environment: dict[str, str] = {}
        self.found = ""
        self.proxied = False
        self.missing: list[str] = []
        # What is in the folder of files may be requested, unless its name is hidden.
        self.deploy = HIDDEN if target in [f"{scheme}:." for scheme in FILES] else "deploy"
        self.ini = f"{HIDDEN}/{INI}" if self.deploy == HIDDEN else INI

    @property
    def bind(self) -> str:
        """Where the server listens."""
        return f"unix:{self.socket}" if self.socket else self._at(self.host)

    @property
    def local_host(self) -> str:
        """The host by which the server is reached on this machine."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    @property
    def address(self) -> str:
        """Where the server is reached on this machine."""
        return f"unix:{self.socket}" if self.socket else self._at(self.local_host)

    def _at(self, host: str) -> str:
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    @property
    def served(self) -> dict[str, list[str]]:
        """The options that say what is served and how."""
        target = {"target": [self.target]} if self.target else {}
        mode = {name: [text] for name, text in self.mode.values.items()}
        return {**target, **self.options, **mode}


def server_command() -> list[str]:
    """Return the words that start the server: the command of this installation."""
    beside = os.path.join(os.path.dirname(sys.executable), "poorhttp")
    return [beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "poorhttp"]
