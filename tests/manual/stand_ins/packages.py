"""apt and apt-get: checks that packages are installed here; starts nginx as its package does."""

from __future__ import annotations

import os
import subprocess
import sys

#: Packages that stand-ins replace, or that only a fresh machine needs.
REPLACED = {"certbot", "python3-certbot-nginx", "python3-venv", "python3-pip", "ca-certificates"}


def main(words: list[str]) -> int:
    """Install, or do nothing."""
    names = [word for word in words if not word.startswith("-")]
    if not names or names[0] not in ("install", "update", "upgrade"):
        print(f"apt: the stand-in of tests/manual does not know {words}", file=sys.stderr)
        return 2
    if os.geteuid():
        print("E: Could not open lock file. Are you root?", file=sys.stderr)
        return 100
    for name in names[1:]:
        if name in REPLACED:
            continue
        alternatives = [name, f"{name}-light"]
        if not any(is_installed(package) for package in alternatives):
            print(f"E: the package {name} is not installed on this machine", file=sys.stderr)
            return 100
        if name in ("nginx", "nginx-light"):
            return subprocess.run(
                ["systemctl", "start", "nginx"], check=False, timeout=240
            ).returncode
    return 0


def is_installed(name: str) -> bool:
    words = ["dpkg-query", "-W", "-f", "${Status}", name]
    found = subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)
    return found.stdout == "install ok installed"


sys.exit(main(sys.argv[1:]))
