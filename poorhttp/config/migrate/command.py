"""The command `poorhttp migrate`: its arguments, its output and the exit code."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Sequence

from poorhttp.config.migrate import sources
from poorhttp.errors import ConfigError, UsageError

USAGE = """\
Usage: poorhttp migrate [-o FILE] [--force] SOURCE
       poorhttp migrate [-o FILE] [--force] [--] COMMAND LINE OF A SERVER ...

Print an ini file for poorhttp, from the configuration of another server. SOURCE is
gunicorn.conf.py, uwsgi.ini (or .yaml, .xml, .json), a Procfile, a unit of systemd, a Dockerfile or
a shell script; the command line is one of gunicorn, uwsgi, waitress-serve, uvicorn or granian.

Each option has a comment with the setting that it comes from. Settings without an equivalent are
explained at the end. A Python file is run in a process that can change nothing.

  -o, --output FILE   Write FILE instead of printing it.
      --force         Replace FILE if it exists.
  -h, --help          Show this help.

Exit codes: 0 the file was written; 2 wrong arguments; 3 SOURCE cannot be read, or FILE not written.
See docs/guides/migrate.md.
"""

_FLAGS = ("-o", "--output", "--force", "-h", "--help", "--")


def main(words: Sequence[str]) -> int:
    """Run the command, and return the exit code.

    Raises:
        UsageError: an argument is wrong.
        ConfigError: a file cannot be read or written.
    """
    rest = list(words)
    output, force = "", False
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name in ("-h", "--help"):
            print(USAGE, end="")
            return 0
        if word == "--":
            break
        if word == "--force":
            force = True
        elif name in ("-o", "--output"):
            if not equals and not rest:
                raise UsageError(f"{name}: needs a value: {name} FILE")
            output = value if equals else rest.pop(0)
        else:
            raise UsageError(
                f'unknown option "{word}"; write {", ".join(_FLAGS[:3])} before the source, or -- '
                "before a command line"
            )
    # Flags behind a file; behind the name of a server they are its own.
    if len(rest) > 1 and os.path.isfile(rest[0]) and rest[1] in _FLAGS:
        return main([*rest[1:], *([f"--output={output}"] if output else []), rest[0]])
    if not rest:
        raise UsageError("nothing to migrate; write poorhttp migrate FILE, or see --help")
    plan = sources.read(rest, os.environ)
    source = rest[0] if len(rest) == 1 else "a command line"
    text = plan.text(source)
    if output:
        _write(output, text, force)
        read, carried, explained = plan.counts()
        print(
            f"{output} written: {carried} of {read} settings of {plan.server} carried over, "
            f"{explained} explained in it"
        )
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
    for warning in plan.warnings:
        print(f"poorhttp: {warning}", file=sys.stderr)
    return 0


def _write(path: str, text: str, force: bool) -> None:
    """Write the file at once or not at all; replace one only if it is forced."""
    folder, name = os.path.split(path)
    temporary = ""
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder or ".")
        with open(fd, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        if force:
            os.replace(temporary, path)
            temporary = ""
        else:
            os.link(temporary, path)
    except FileExistsError:
        raise ConfigError(f"{path}: already exists; --force replaces it") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
