"""Modules of the standard library that the main process imports too, so that workers share them.

Workers that load the application themselves would each have a copy of all modules that it imports.
So the first worker reports which modules of the standard library it has imported, and the main
process imports these before it forks the next worker. The main process may be root, which the
application is not: it imports modules from the folder of the standard library, and no others.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from mmap import mmap

from poorhttp._core import trim_memory
from poorhttp.config.settings import Settings

_NAMES = """
argparse ast asyncio base64 binascii bisect bz2 calendar collections concurrent configparser
contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis email encodings
enum fcntl fnmatch fractions functools gettext glob gzip hashlib heapq hmac html http importlib
inspect ipaddress json keyword linecache locale logging lzma math mimetypes numbers opcode
operator pathlib pickle pkgutil platform pprint queue quopri random re reprlib secrets select
selectors shlex shutil signal smtplib socket socketserver sqlite3 ssl statistics string stringprep
struct subprocess sysconfig tempfile textwrap threading token tokenize traceback types typing
unicodedata unittest urllib uuid warnings weakref wsgiref xml zipfile zlib zoneinfo
"""

#: Modules and packages that frameworks import, and whose import has no other effect.
SHARED = frozenset(_NAMES.split())

#: Libraries that replace parts of these modules before an application imports them.
PATCHING = {"eventlet", "gevent", "greenlet"}

#: The modes that leave modules of the standard library as they are.
MODES = {"single", "forking", "threading"}

FOLDER = os.path.dirname(os.__file__)

#: Bytes for the names; pages that are not written cost no memory.
SIZE = 1 << 16


class SharedImports:
    """The names of the modules, in memory that the first worker and the main process share."""

    def __init__(self) -> None:
        self._memory = mmap(-1, SIZE)

    @classmethod
    def of(cls, settings: Settings) -> SharedImports | None:
        """Return it in a mode that patches nothing; otherwise return None."""
        return cls() if settings.mode in MODES else None

    def report(self) -> None:
        """Write the names, in the first worker, which has loaded the application."""
        names = [
            name
            for name, module in list(sys.modules.items())
            if is_shared(name) and _is_of_library(getattr(module, "__file__", None))
        ]
        if not PATCHING & sys.modules.keys():
            text = "\n".join(names).encode()[: SIZE - 1]
            self._memory[: len(text)] = text
        self._memory.close()

    def repeat(self) -> bool:
        """Import the modules in the main process; return False if none were reported.

        One that cannot be imported is left out.
        """
        names = self._memory[: self._memory.find(b"\0")].decode("ascii", "replace").split()
        if not names:
            return False
        self._memory.close()
        # A folder in front of the standard library may be the application's.
        path, sys.path = sys.path, [FOLDER, os.path.join(FOLDER, "lib-dynload")]
        try:
            for name in filter(is_shared, names):
                with suppress(Exception):
                    __import__(name)
        finally:
            sys.path = path
        gc.freeze()
        trim_memory()
        return True


def is_shared(name: str) -> bool:
    """Tell whether the main process may import a module."""
    package, *rest = name.split(".")
    # The import of a module `__main__` runs a program.
    return package in SHARED and "__main__" not in rest


def _is_of_library(file: object) -> bool:
    if not isinstance(file, str) or not file.startswith(f"{FOLDER}/"):
        return False
    return not file.startswith((f"{FOLDER}/site-packages/", f"{FOLDER}/dist-packages/"))
