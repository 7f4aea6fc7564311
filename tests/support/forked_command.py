"""Runs commands of `poorhttp`, each as a fork of one process that has imported the package.

Most of what a command takes is the start of the interpreter with its imports, which is done once:
once more for each environment of the interpreter that many commands share. Whoever tests what
happens at the start uses `run(*command(...))`.
"""

from __future__ import annotations

import atexit
import json
import select
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

from tests.testkit.client import HANG
from tests.testkit.server import ROOT, command, environment, run

#: Reads requests, a line of JSON each: arguments, folder, environment, files for both outputs.
#: Answers with the exit code. A child leaves the loop and becomes the command.
FORKING = """
import atexit, gc, json, os, sys
del sys.path[0]
from importlib.util import find_spec
from poorhttp.cli import main
import poorhttp.worker.check
if find_spec("poorhttp.plugins"):
    import poorhttp.plugins.discovery.search, poorhttp.plugins.setup.deployment.command
    import poorhttp.plugins.setup.migrate.command
gc.collect()
gc.freeze()
answers = os.dup(1)
while line := sys.stdin.readline():
    pid = os.fork()
    if pid == 0:
        break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(answers, b"%d\\n" % code)
else:
    sys.exit()
os.close(answers)
words, folder, variables, *files = json.loads(line)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for number, file in enumerate(files, 1):
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
os.closerange(3, 16)
os.environ.clear()
os.environ.update(variables)
os.chdir(folder)
sys.argv[:] = words
code = main()
# All that an exit does but for freeing memory, which would copy the pages that are shared.
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)
"""


@cache
def forking(*variables: tuple[str, str]) -> tuple[subprocess.Popen[bytes], Path]:
    """The process that forks, with these variables, and a folder for what commands write."""
    process = subprocess.Popen(
        [*command()[:-2], "-c", FORKING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment(dict(variables)),
        bufsize=0,
        start_new_session=True,
    )
    folder = TemporaryDirectory()

    def end() -> None:
        process.communicate(timeout=HANG)
        folder.cleanup()

    atexit.register(end)
    return process, Path(folder.name)


def run_command(
    *words: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None, shared: bool = False
) -> CompletedProcess[str]:
    """Run `poorhttp` with these words; `env` is what it has beside `environment()`.

    A command with other variables for the interpreter is a program of its own, unless many have the
    same ones, which are `shared`.
    """
    own = ("PYTHON", "LANG", "LC_", "LD_")
    variables = {name: text for name, text in (env or {}).items() if name.startswith(own)}
    if variables and not shared:
        return run(*command(*words), cwd=cwd, env=env)
    process, folder = forking(*variables.items())
    files = [folder / "output", folder / "errors"]
    for file in files:
        file.unlink(missing_ok=True)
    program = str(ROOT / "poorhttp" / "__main__.py")
    request = [[program, *words], str(cwd), environment(env), *map(str, files)]
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(request).encode() + b"\n")
    assert select.select([process.stdout], [], [], HANG)[0], f"{words} does not end"
    code = int(process.stdout.readline())
    output, errors = (file.read_text() for file in files)
    return CompletedProcess([sys.executable, program, *words], code, output, errors)
