"""The virtual environment of a program, `.venv/programs/NAME`: made once, and kept.

It has the servers beside the program. Ours is linked from this tree and not built again, so the
environment has the Python that runs this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.programs.running.application import Application
from tests.testkit.server import ROOT

FOLDER = ROOT / ".venv" / "programs"

#: The reference, and what one of our modes is made of; a program may ask for others.
SERVERS = ("gunicorn==27.0.1", "gevent==26.9.0")

#: A proxy that refuses everything: programs are used without a network.
NOWHERE = "http://127.0.0.1:9"


def distributions(application: type[Application]) -> list[str]:
    """What pip installs, with versions."""
    theirs = {each.partition("==")[0] for each in application.requirements}
    servers = (each for each in SERVERS if each.partition("==")[0] not in theirs)
    return [*servers, *application.requirements]


def wanted(application: type[Application]) -> str:
    """What an environment is made of: the text of its file `made-of.txt`."""
    parts = (*distributions(application), "sources:", *application.sources)
    return "\n".join([str(ROOT), sys.version, *parts, ""])


def is_made(name: str, application: type[Application]) -> bool:
    """Whether the environment is there and is made of what the program asks for now."""
    made_of = FOLDER / name / "made-of.txt"
    return made_of.exists() and made_of.read_text() == wanted(application)


def make(name: str, application: type[Application]) -> None:
    """Make the environment anew, and print what pip collects; a RuntimeError if that fails."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    python = str(folder / "bin" / "python")
    _run(name, sys.executable, "-m", "venv", str(folder))
    _run(name, python, "-m", "pip", "install", *distributions(application))
    for source in application.sources:
        _unpack(name, python, source, folder / "sources")
    packages = sysconfig.get_path("purelib", "venv", {"base": str(folder)})
    (Path(packages) / "poorhttp").symlink_to(ROOT / "poorhttp")
    (folder / "made-of.txt").write_text(wanted(application))


def _unpack(name: str, python: str, source: str, folder: Path) -> None:
    """Download a source distribution, and unpack it into a folder with its name."""
    distribution = source.partition("==")[0]
    archives = folder / "archives" / distribution
    _run(
        *(name, python, "-m", "pip", "download", "--no-deps", "--no-binary", distribution),
        *("--dest", str(archives), source),
    )
    (archive,) = archives.iterdir()
    _run(name, "tar", "-xf", str(archive), "-C", str(folder))
    (folder / archive.name.removesuffix(".tar.gz")).rename(folder / distribution)


def _run(name: str, *words: str) -> None:
    """Run a command, and print what pip collects; a RuntimeError if it fails."""
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with process:
        assert process.stdout
        lines = []
        try:
            for line in process.stdout:
                lines.append(line)
                if line.startswith("Collecting "):
                    print(f"{name:10} {line}", end="", flush=True)
        except BaseException:
            # Interrupted: it must not go on in a folder that the next run makes anew.
            process.terminate()
            raise
    if process.returncode:
        last = "".join(lines[-15:])
        raise RuntimeError(f"{' '.join(words)}: exit code {process.returncode}\n{last}")


def variables(name: str, application: type[Application], home: Path) -> dict[str, str]:
    """The environment variables of servers and clients: nothing of whoever runs this."""
    path = [str(FOLDER / name / "bin"), os.environ.get("PATH", os.defpath), "/usr/sbin"]
    return {
        "PATH": os.pathsep.join(path),
        "PYTHONPATH": "",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "http_proxy": NOWHERE,
        "https_proxy": NOWHERE,
        "no_proxy": "127.0.0.1,localhost",
        **dict(each.split("=", 1) for each in application.environ),
    }
