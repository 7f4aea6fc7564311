"""Debian packages that tests need: `packages.py [build|programs]` installs those that are missing.

Installs as root, or with sudo if it asks for no password; otherwise prints which packages are
missing, which tests are left out without them, and the command that installs them. `build` is only
about what the product is built with, `programs` about `make programs`. The exit code is 1 if
something is missing in the end.

Uses the standard library only: it runs before there is a virtual environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

#: Servers are in folders that only root has on its path.
FOLDERS = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin"])

#: Programs, files and Python modules; the package of each, and what is not possible without it.
BUILD = {
    "cc": ("gcc", "the build"),
    "/usr/include/stdlib.h": ("libc6-dev", "the build"),
    "ensurepip": ("python3-venv", "virtual environments"),
}
TESTS = {
    "make": ("make", "the build"),
    "python3": ("python3", "CGI programs in Python"),
    "git": ("git", "git over HTTP, by CGI"),
    "lighttpd": ("lighttpd", "proxies, gateways and the load lab with lighttpd"),
    "/usr/lib/lighttpd/mod_openssl.so": ("lighttpd-mod-openssl", "lighttpd with TLS"),
    "nginx": ("nginx-light", "proxies, gateways and the load lab with nginx"),
    "haproxy": ("haproxy", "proxies and gateways with HAProxy"),
    "apache2": ("apache2", "proxies and gateways with Apache"),
    "/usr/lib/apache2/modules/mod_wsgi.so": ("libapache2-mod-wsgi-py3", "mod_wsgi in the lab"),
    "caddy": ("caddy", "proxies and gateways with Caddy"),
    "curl": ("curl", "the commands of the manual"),
    "wget": ("wget", "downloads that are continued"),
    "openssl": ("openssl", "proxies with TLS"),
    "setpriv": ("util-linux", "containers, servers without privileges"),
    "ip": ("iproute2", "hosts in network namespaces"),
    "ps": ("procps", "processes as ps shows them"),
    "wrk": ("wrk", "wrk, the load lab's client"),
    "ab": ("apache2-utils", "ab as a client of the load lab"),
    "httperf": ("httperf", "httperf as a client of the load lab"),
    "h2load": ("nghttp2-client", "h2load as a client of the load lab"),
    "/usr/include/openssl/ssl.h": ("libssl-dev", "the load lab's client for TLS"),
    "php-cgi": ("php-cgi", "CGI programs in PHP"),
    "/usr/share/adminer/adminer.php": ("adminer", "a large application in PHP, by CGI"),
    "/usr/share/doc/php-sqlite3": ("php-sqlite3", "a large application in PHP, by CGI"),
    "systemd-analyze": ("systemd", "service files"),
    "systemd-socket-activate": ("systemd", "socket activation by systemd's own program"),
    "logrotate": ("logrotate", "log rotation"),
    "zsh": ("zsh", "completion in zsh"),
    "fish": ("fish", "completion in fish"),
    "mandoc": ("mandoc", "man pages"),
    "promtool": ("prometheus", "metrics, rules and the dashboard with Prometheus"),
    "/usr/lib/postgresql": ("postgresql", "inspection of a worker that waits for PostgreSQL"),
    "chromium": ("chromium", "pages in a browser"),
    "chromedriver": ("chromium-driver", "pages in a browser"),
}
#: What `make programs` needs, and `make test` does not.
PROGRAMS = {
    "/usr/lib/postgresql": ("postgresql", "Kinto"),
    "lighttpd": TESTS["lighttpd"],
    "php-cgi": TESTS["php-cgi"],
    "/usr/share/dokuwiki/doku.php": ("dokuwiki", "DokuWiki, by CGI"),
    "chromium": TESTS["chromium"],
    "chromedriver": TESTS["chromedriver"],
}

#: What a program is tested with, and has packages of its own.
PARTS = {
    "/usr/share/adminer/adminer.php": ["/usr/share/doc/php-sqlite3"],
    "lighttpd": ["/usr/lib/lighttpd/mod_openssl.so"],
}

#: Run as root, with the packages as arguments.
INSTALL = """
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
# Packages of servers would start them.
if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    trap 'exit 1' INT TERM
    printf '#!/bin/sh\\nexit 101\\n' >$policy
    chmod 755 $policy
fi
# How far it is, apt writes to standard output, between other lines.
install() {
    timeout 900 apt-get install -qq --yes --no-install-recommends -o APT::Status-Fd=1 "$@"
}
timeout 300 apt-get update -qq
# One that this release does not have must not keep away the others.
install "$@" || for package; do install "$package"; done
"""


def is_present(name: str) -> bool:
    """Whether a program, a file or a module of Python is installed."""
    if name.startswith("/"):
        return os.path.exists(name)
    if name == "ensurepip":
        return find_spec(name) is not None
    return shutil.which(name, path=FOLDERS) is not None


def missing(names: dict[str, tuple[str, str]]) -> dict[str, list[str]]:
    """The packages that are not installed; for each what is not possible without it."""
    found: dict[str, list[str]] = {}
    for name, (package, use) in names.items():
        if not is_present(name):
            found.setdefault(package, []).append(use)
    return found


def lacking(program: str) -> str:
    """Why a program cannot be used; empty if it is installed with its parts."""
    for name in (program, *PARTS.get(program, ())):
        if not is_present(name):
            package = {**BUILD, **TESTS, **PROGRAMS}[name][0]
            return f"{name} is not installed (Debian: apt install {package})"
    return ""


def need(*names: str) -> None:
    """Skip the running test unless these programs are installed; the reason names the package."""
    for name in names:
        if reason := lacking(name):
            # Here, because programs of others use this without pytest.
            import pytest

            pytest.skip(reason)


def root() -> list[str] | None:
    """The words before a command that make it run as root; None if that is not possible."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    asked = subprocess.run(
        ["sudo", "-n", "true"], stderr=subprocess.DEVNULL, check=False, timeout=60
    )
    return ["sudo", "-n"] if asked.returncode == 0 else None


def install(command: list[str], packages: list[str]) -> None:
    """Run the command that installs these packages, and report how far it is."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../core"))
    from progress import Step

    names = " ".join(packages)
    apt = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    with Step("Debian packages", f"{names}: up to some minutes") as step, apt:
        for line in apt.stdout or ():
            # `pmstatus:nginx:45.0:Installing nginx` or `dlstatus:3:20.0:Retrieving file 3 of 9`
            kind, _, rest = line.rstrip().partition(":")
            parts = rest.split(":", 2)
            if kind in ("dlstatus", "pmstatus") and len(parts) == 3:
                step.report(f"{float(parts[1]):.0f} %, {parts[2]}")


def main(arguments: list[str]) -> int:
    """Install what is missing, or tell what is; 1 if something is missing then."""
    chosen = {"build": BUILD, "programs": {**BUILD, **PROGRAMS}}
    names = chosen.get(" ".join(arguments), {**BUILD, **TESTS})
    packages = missing(names)
    if packages and shutil.which("apt-get") is not None and (words := root()) is not None:
        install([*words, "sh", "-c", INSTALL, "sh", *packages], list(packages))
        packages = missing(names)
    if not packages:
        return 0
    print("These Debian packages are missing; left out without them:", file=sys.stderr)
    for package, uses in packages.items():
        print(f"    {package:23} {'; '.join(dict.fromkeys(uses))}", file=sys.stderr)
    print(
        "To install them, as root:\n    apt-get install --no-install-recommends",
        *packages,
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("interrupted; the same command goes on with what is done so far", file=sys.stderr)
        sys.exit(130)
