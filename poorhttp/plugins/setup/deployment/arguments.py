"""The command line of `poorhttp init`, and its `--help`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from poorhttp.config.help import entry
from poorhttp.config.suggestions import suggestion
from poorhttp.errors import UsageError
from poorhttp.plugins.setup.shell.vocabulary import Switch

SUMMARY = (
    "Write poorhttp.ini for the application in a folder, and optionally files for systemd, web "
    "servers in front and containers."
)

#: Kinds of files, in the order in which they are written.
KINDS = {
    "systemd": "Write a systemd service and its socket unit.",
    "nginx": "Write an nginx site that passes requests on.",
    "caddy": "Write a Caddyfile.",
    "lighttpd": "Write a lighttpd configuration.",
    "haproxy": "Write an HAProxy configuration.",
    "apache": "Write an Apache site.",
    "docker": "Write a container file, for podman and docker.",
    "kubernetes": "Write manifests for kubectl apply -k, and the container file.",
}

HELP = Switch(("-h", "--help"), "Show this help.")

OPTIONS = {
    switch.names[-1].removeprefix("--"): switch
    for switch in (
        *(Switch([f"--{kind}"], summary) for kind, summary in KINDS.items()),
        Switch(["--target"], "What to serve; by default what poorhttp dev finds.", "TARGET"),
        Switch(["--name"], "Name of service, image and resources; default: the folder's.", "NAME"),
        Switch(["--domain"], "Host name, such as www.example.org; default: any.", "NAME"),
        Switch(["--user"], "User of the service; default: one that systemd creates.", "USER"),
        Switch(["--bind"], "Address, HOST:PORT or unix:PATH; default: 127.0.0.1:8080.", "ADDRESS"),
        Switch(["--force"], "Overwrite files."),
        HELP,
    )
}

#: What a value must be, and an example.
PATTERNS = {
    "name": (
        r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?",
        "lower-case letters, digits and hyphens, such as my-shop",
    ),
    "domain": (r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", "a host name, such as example.org"),
    "user": (r"[A-Za-z_][A-Za-z0-9_.-]*", "a user name, such as www-data"),
    "bind": (
        r"(?:localhost|[0-9.]+|\[[0-9a-fA-F:]+\]):[1-9][0-9]{0,4}|unix:/[A-Za-z0-9._/-]*[A-Za-z0-9._-]",
        "ADDRESS:PORT, or unix: and the absolute path of a socket, like unix:/run/shop/shop.sock",
    ),
    "target": (r"[^\s#;]\S*", "a target, such as package.module:application"),
}


class Arguments:
    """The parsed command line.

    Attributes:
        folder: of the application.
        kinds: of the files that are written beside poorhttp.ini.
        values: of the options that were given; of a switch it is empty.
    """

    def __init__(self, words: Sequence[str]) -> None:
        """Parse the words behind `init`.

        Raises:
            UsageError: with a suggestion if a name is misspelt.
        """
        self.values: dict[str, str] = {}
        folders, rest = [], list(words)
        while rest:
            word = rest.pop(0)
            if word in HELP.names:
                self.values["help"] = ""
            elif word == "--":
                folders += rest
                rest = []
            elif word.startswith("-"):
                self._read_option(word, rest)
            else:
                folders.append(word)
        if len(folders) > 1:
            raise UsageError(
                f'init takes one folder, but there are "{folders[0]}" and "{folders[1]}"'
            )
        self.folder = folders[0] if folders else "."
        self.kinds = [kind for kind in KINDS if kind in self.values]
        if "kubernetes" in self.kinds and "docker" not in self.kinds:
            self.kinds.insert(self.kinds.index("kubernetes"), "docker")

    def _read_option(self, word: str, rest: list[str]) -> None:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        if not flag.startswith("--") or name not in OPTIONS:
            flags = [f"--{known}" for known in OPTIONS]
            raise UsageError(f'unknown option "{flag}"{suggestion(flag, flags)}')
        metavar = OPTIONS[name].metavar
        if not metavar and equals:
            raise UsageError(f"{flag} takes no value")
        if metavar and not equals:
            if not rest or rest[0].startswith("--"):
                raise UsageError(f"{flag}: needs a value: {flag} {metavar}")
            value = rest.pop(0)
        if name in self.values:
            raise UsageError(f"{flag} is given twice")
        pattern, right = PATTERNS.get(name, ("", ""))
        if metavar and not re.fullmatch(pattern, value):
            raise UsageError(f'{flag}: "{value}" is wrong; write {right}')
        self.values[name] = value


def usage() -> str:
    """Return the text of `--help`."""
    options = "".join(
        entry(", ".join(switch.names) + f" {switch.metavar}".rstrip(), switch.summary)
        for switch in OPTIONS.values()
    )
    return (
        "Usage: poorhttp init [FOLDER] [OPTION ...]\n\n"
        f"{textwrap.fill(SUMMARY, 95)}\n\n"
        "It asks nothing, runs no code of the project, and overwrites no file without --force. If\n"
        "poorhttp.ini exists, it sets target and mode.\n\n"
        f"{options}\n"
        "Example: poorhttp init --systemd --nginx --domain www.example.org\n"
    )
