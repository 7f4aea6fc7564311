"""Installed programs used by the lab: path, version, package; where the lab itself is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.errors import LabError

ROOT = Path(__file__).resolve().parent.parent
"""The project's folder."""
INSTALLED = (ROOT.name, ROOT.parent.name) == ("lab", "poorlab")
"""Whether the lab is that of its wheel, and not of a clone."""
COMMAND = "poorlab" if INSTALLED else "python -m loadtests"
"""How the lab is called."""
NAME = "poorlab" if INSTALLED else "loadtests"
"""What its messages begin with."""


@dataclass(frozen=True)
class Program:
    """`names` are those under which it is installed; the last word of what it says when asked for
    its version that has a digit and a point in it, is its version. What is no program but a part of
    one is in a `folder` of its own."""

    names: Sequence[str]
    package: str
    version: str = "-v"
    folder: str = ""


PROGRAMS = {
    "nginx": Program(["nginx"], "nginx-light"),
    "lighttpd": Program(["lighttpd"], "lighttpd"),
    "haproxy": Program(["haproxy"], "haproxy"),
    "apache": Program(["apache2", "httpd"], "apache2"),
    "php_cgi": Program(["php-cgi"], "php-cgi"),
    "php_fpm": Program(["php-fpm", "php-fpm8.2", "php-fpm8.3", "php-fpm8.4"], "php-fpm"),
    "perl": Program(["perl"], "perl"),
    "ps": Program(["ps"], "procps", "--version"),
    "php": Program(["php"], "php-cli"),
    "mod_wsgi": Program(["mod_wsgi.so"], "libapache2-mod-wsgi-py3", "", "/usr/lib/apache2/modules"),
    "webfsd": Program(["webfsd"], "webfs", ""),
    "mini_httpd": Program(["mini_httpd", "mini-httpd"], "mini-httpd", "-V"),
    "micro_httpd": Program(["micro-httpd", "micro_httpd"], "micro-httpd", ""),
    "xinetd": Program(["xinetd"], "xinetd", "-version"),
    "busybox": Program(["busybox"], "busybox", "--help"),
    "sh": Program(["sh"], "dash", ""),
    "wrk": Program(["wrk"], "wrk"),
    "ab": Program(["ab"], "apache2-utils", "-V"),
    "h2load": Program(["h2load"], "nghttp2-client", "--version"),
    "openssl": Program(["openssl"], "openssl", "version"),
    "strace": Program(["strace"], "strace", "-V"),
    "valgrind": Program(["valgrind"], "valgrind", "--version"),
    "testssl": Program(["testssl", "testssl.sh"], "testssl.sh", ""),
    # It has no option that only tells its version.
    "httperf": Program(["httperf"], "httperf", ""),
}


def _found(name: str) -> str | None:
    # Servers are in folders that only root has on its path.
    folders = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    program = PROGRAMS[name]
    mode = os.F_OK if program.folder else os.F_OK | os.X_OK
    paths = (shutil.which(one, mode, program.folder or folders) for one in program.names)
    return next(filter(None, paths), None)


def path(name: str) -> str:
    """Where a program is. Raises LabError if it is not installed."""
    if found := _found(name):
        return found
    raise LabError(missing(name))


def missing(name: str) -> str:
    """Why a program cannot be used; empty if it can."""
    if _found(name):
        return ""
    program = PROGRAMS[name]
    return f"{program.names[0]} is not installed (Debian: apt install {program.package})"


def version(name: str) -> str:
    """The version that a program tells; empty if it is not installed or tells none."""
    found, option = _found(name), PROGRAMS[name].version
    if not found or not option:
        return ""
    done = subprocess.run([found, option], capture_output=True, text=True, check=False)
    for word in (done.stdout + done.stderr).replace("/", " ").replace("(", " ").split():
        number = word.strip("v)")
        if number[:1].isdigit() and "." in number:
            return number
    return ""
