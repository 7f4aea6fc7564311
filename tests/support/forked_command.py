"""Runs commands of `poorhttp` to their end, each as a fork (`tests.testkit.forked`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from tempfile import TemporaryFile

from tests.testkit.client import HANG
from tests.testkit.forked import ForkedProcess, can_fork
from tests.testkit.server import ROOT, command, environment, run, written

#: What commands import, which takes longer than all else that they do.
LIBRARY = (
    *("array", "email.parser", "enum", "importlib.metadata", "inspect", "json", "pathlib", "re"),
    *("shlex", "shutil", "subprocess", "tempfile", "textwrap", "threading", "typing"),
)

#: The same of commands that load no application, whose end could be of interest.
MODULES = {
    "completion": ("poorhttp.plugins.monitor.ctl", "poorhttp.plugins.setup.shell.command"),
    "ctl": ("http.client", "poorhttp.plugins.monitor.ctl"),
    "init": ("poorhttp.plugins.setup.deployment.command",),
    "migrate": ("poorhttp.plugins.setup.migrate.command",),
}


def run_command(
    *words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None, shared: bool = False
) -> CompletedProcess[str]:
    """Run `poorhttp` with these words; `env` is what it has beside `environment()`.

    A command with other variables for the interpreter is a program of its own, unless many have the
    same ones, which are `shared`.
    """
    if not (shared or can_fork(env)):
        return run(*command(*words), cwd=cwd, env=env)
    with TemporaryFile() as output, TemporaryFile() as errors:
        process = ForkedProcess(
            words,
            stdout=output.fileno(),
            stderr=errors.fileno(),
            cwd=cwd,
            env=environment(env),
            imported=(*LIBRARY, *MODULES.get("".join(words[:1]), ())),
            frees="".join(words[:1]) not in MODULES,
        )
        try:
            code = process.wait(HANG)
        except TimeoutExpired:
            process.kill()
            raise
        return CompletedProcess(process.args, code, written(output), written(errors))
