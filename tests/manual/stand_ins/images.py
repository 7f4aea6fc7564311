"""docker, podman and kubectl: checks that the files exist that they are given; prints nothing."""

from __future__ import annotations

import re
import sys
from pathlib import Path

#: Options whose value is a file or folder, by command.
PATHS = {"-f", "--file", "-k", "--kustomize", "--env-file", "--from-file"}


def missing(words: list[str]) -> list[str]:
    """Files of options, and of a build's instructions, that do not exist."""
    given = {}
    for at, word in enumerate(words[:-1]):
        if word in PATHS:
            given[word] = words[at + 1]
    names = [name.rpartition("=")[2] for name in given.values() if not name.startswith("http")]
    lost = [name for name in names if name != "-" and not Path(name).exists()]
    if words[1:2] == ["build"] and not lost:
        folder = Path(words[-1])
        file = Path(given.get("-f") or given.get("--file") or folder / "Dockerfile")
        if not file.exists():
            file = folder / "Containerfile"
        if not file.exists():
            return [str(file)]
        for found in re.finditer(r"^(?:COPY|ADD)\s+((?:--\S+\s+)*)(.+)$", file.read_text(), re.M):
            if "--from" in found[1]:
                continue
            sources = found[2].split()[:-1]
            lost += [
                source
                for source in sources
                if source not in (".", "./") and not list(folder.glob(source.strip("/")))
            ]
    if "-k" in given and not (Path(given["-k"]) / "kustomization.yaml").exists():
        lost.append(f"{given['-k']}/kustomization.yaml")
    return lost


def main(words: list[str]) -> int:
    if lost := missing(words):
        print(f"{words[0]}: no such file:", *lost, file=sys.stderr)
        return 1
    return 0


sys.exit(main(sys.argv[1:]))
