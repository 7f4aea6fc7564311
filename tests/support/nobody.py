"""The unprivileged user `nobody`, for tests that run as root.

The interpreter and this checkout may lie where that user cannot read them, as in the home of root:
then there is a copy. Who runs the tests without being root is nobody enough.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.testkit.client import HANG
from tests.testkit.server import ROOT, run

#: Whether we can become somebody else at all.
IS_ROOT = os.geteuid() == 0

#: Becomes nobody only once the interpreter runs, which nobody may not be allowed to start.
_BECOME = """
import os, pwd, sys
if os.geteuid() == 0:
    them = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(them.pw_gid)
    os.setuid(them.pw_uid)
"""

_COMMAND = _BECOME + "from poorhttp.cli import main; sys.exit(main())"


def may_read(path: str | Path) -> bool:
    """Whether nobody may."""
    if not IS_ROOT:
        return os.access(path, os.R_OK)
    found = subprocess.run(
        ["test", "-r", path], user="nobody", extra_groups=[], check=False, timeout=HANG
    )
    return found.returncode == 0


def link(source: str, target: str) -> None:
    """Give a file a second name, or copy it to another file system; who may read it may here."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


class Nobody:
    """What can be run by nobody.

    Attributes:
        env: the environment in which Python and this package can be read by everybody.
    """

    def __init__(self, folder: Path) -> None:
        """Put copies into `folder`, where they are needed."""
        self.env: dict[str, str] = {}
        package = ROOT / "poorhttp"
        if not may_read(package / "__init__.py"):
            shutil.copytree(package, folder / "package" / "poorhttp")
            self.env["PYTHONPATH"] = str(folder / "package")
        library = Path(sysconfig.get_path("stdlib"))
        if not may_read(library / "os.py"):
            home = folder / "python"
            left_out = shutil.ignore_patterns("site-packages", "test", "idlelib", "config-*")
            shutil.copytree(
                library, home / "lib" / library.name, ignore=left_out, copy_function=link
            )
            self.env["PYTHONHOME"] = str(home)

    def run(
        self, *arguments: str, program: str = "", cwd: str | Path = "/"
    ) -> subprocess.CompletedProcess[str]:
        """Run the command with `arguments`, or a program that is given as text."""
        return self.as_root(_BECOME + program if program else _COMMAND, *arguments, cwd=cwd)

    def as_root(
        self, program: str, *arguments: str, cwd: str | Path = "/"
    ) -> subprocess.CompletedProcess[str]:
        """Run a program that is given as text as who we are; it may become nobody itself."""
        return run(sys.executable, "-c", program, *arguments, cwd=Path(cwd), env=self.env)
