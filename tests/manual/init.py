"""Process 1 of the machine on which a page of the manual is tried: users, names, sessions, orphans.

The session reads commands from standard input, each ended by a zero byte, and answers each by a
line `STATUS FOLDER` on standard output. The output of a command is in the file `/run/manual/N`,
counted from 1. A command that begins with `&` runs on; its line has its process group instead of
the status.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

#: The ordinary user whose terminal the page describes.
USER, UID = "you", 4242

SESSION = r"""
set -m
number=0
while IFS= read -r -d '' _command; do
    number=$((number + 1))
    : >/run/manual/$number
    case $_command in
    '&'*) eval "${_command#&}" </dev/null >/run/manual/$number 2>&1 & echo "$! $PWD" ;;
    *) eval "$_command" </dev/null >/run/manual/$number 2>&1; echo "$? $PWD" ;;
    esac
done
"""


def main() -> None:
    with Path("/etc/passwd").open("a") as file:
        file.write(f"{USER}:x:{UID}:{UID}:A reader:/home/{USER}:/bin/bash\n")
    with Path("/etc/group").open("a") as file:
        file.write(f"{USER}:x:{UID}:\n")
    Path("/etc/hosts").write_text(
        "127.0.0.1 localhost shop.example.org www.example.org example.org blog.example.org\n"
        "::1 localhost\n"
    )
    for folder, mode in ((f"/home/{USER}", 0o755), ("/run/manual", 0o777)):
        Path(folder).mkdir(parents=True)
        os.chmod(folder, mode)
        os.chown(folder, UID, UID)
    # Its meter, which a terminal shows otherwise, is no output.
    for folder in (f"/home/{USER}", "/root"):
        Path(folder, ".curlrc").write_text("no-progress-meter\n")
    # What `sudo` of stand_ins becomes root by.
    shutil.copy("/usr/bin/setpriv", "/run/become")
    os.chmod("/run/become", 0o4755)
    os.umask(0o022)
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-c", SESSION],
        cwd=f"/home/{USER}",
        user=UID,
        group=UID,
        extra_groups=[],
    )
    while True:
        number, _ = os.waitpid(-1, 0)
        if number == shell.pid:
            break


main()
