"""The command `poorhttp migrate`: its arguments, its output and the exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

from poorhttp.errors import ConfigError, UsageError, printable
from poorhttp.plugins.setup.migrate import sources
from poorhttp.plugins.setup.migrate.source_files import Opener, ParentFolder, SourceFiles

USAGE = """\
Usage: poorhttp migrate [-o FILE] [--force] SOURCE
       poorhttp migrate [-o FILE] [--force] [--] COMMAND LINE OF A SERVER ...

Print an ini file for poorhttp, from the configuration of another server. SOURCE is
gunicorn.conf.py, uwsgi.ini (or .yaml, .xml, .json), a Procfile, a unit of systemd, a Dockerfile or
a shell script; the command line is one of gunicorn, uwsgi, waitress-serve, uvicorn, hypercorn,
daphne or granian.

Each option has a comment with the setting that it comes from. Settings without an equivalent are
explained at the end. A Python file is run in a process without rights.

  -o, --output FILE   Write FILE instead of printing it.
      --force         Replace FILE if it exists.
  -h, --help          Show this help.

Exit codes: 0 the file was written; 2 wrong arguments; 3 SOURCE cannot be read, or FILE not written.
See docs/guides/migrate.md.
"""

_FLAGS = ("-o", "--output", "--force", "-h", "--help", "--")


def main(words: Sequence[str], open_file: Opener, parent_folder: ParentFolder) -> int:
    """Run the command, and return the exit code.

    Args:
        words: its arguments.
        open_file: `poorhttp.process.safe_open.safe_open`.
        parent_folder: of the same module.

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
        given = [f"--output={output}"] if output else []
        given += ["--force"] if force else []
        return main([*rest[1:], *given, rest[0]], open_file, parent_folder)
    if not rest:
        raise UsageError("nothing to migrate; write poorhttp migrate FILE, or see --help")
    plan = sources.read(rest, os.environ, SourceFiles(open_file, parent_folder))
    source = rest[0] if len(rest) == 1 else "a command line"
    text = plan.text(source)
    if output:
        _write(output, text, force, parent_folder)
        read, carried, explained = plan.counts()
        print(
            f"{output} written: {carried} of {read} settings of {plan.server} carried over, "
            f"{explained} explained in it"
        )
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
    for warning in plan.warnings:
        print(f"poorhttp: {printable(warning)}", file=sys.stderr)
    return 0


def _write(path: str, text: str, force: bool, parent_folder: ParentFolder) -> None:
    """Write the file at once or not at all; replace one, or a link, only if it is forced.

    Everything is relative to the descriptor of its folder, whose path others may change meanwhile.
    """
    try:
        with parent_folder(path, follow=False) as (folder, name):
            temporary = f".{name[:100]}.{os.urandom(8).hex()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                with open(fd, "wb") as file:
                    file.write(text.encode("utf-8", "surrogateescape"))
                if force:
                    os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    folders = {"src_dir_fd": folder, "dst_dir_fd": folder}
                    os.link(temporary, name, **folders, follow_symlinks=False)
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
    except FileExistsError:
        raise ConfigError(f"{path}: already exists; --force replaces it") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error
