"""The command `poorhttp`: declares `serve` and `check`, reads the settings, runs a subcommand."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from poorhttp.config import loader
from poorhttp.config.command import Command
from poorhttp.config.command_line import Arguments, command
from poorhttp.config.registry import FINDER, registry
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import Failure, UsageError, printable
from poorhttp.process import safe_open
from poorhttp.process.standard_streams import open_standard_streams
from poorhttp.worker import plugin_hooks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.config.command import Line
    from poorhttp.config.ini import Opener


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: the arguments; by default those of the process.

    Returns:
        The exit code: 0, or that of a failure (see `poorhttp.errors`).
    """
    open_standard_streams()
    line = CommandLine()
    try:
        line.read(sys.argv[1:] if argv is None else argv)
        return line.run()
    except KeyboardInterrupt:
        return 1
    except Exception as error:
        expected = isinstance(error, Failure)
        kind = "" if expected else f"{line.culprit()}: {type(error).__name__}: "
        print(f"poorhttp: {kind}{printable(str(error))}", file=sys.stderr)
        if line.debugging():
            sys.excepthook(type(error), error, error.__traceback__)
        elif not expected:
            print("poorhttp: --log-level debug shows where", file=sys.stderr)
        return error.exit_code if isinstance(error, Failure) else 1


def check(line: Line) -> int:
    """Load the target and open the addresses as `serve` does, then print what would run."""
    from poorhttp.worker import check as checking

    return checking.check(line.settings())


SERVE = Command(lambda line: line.serve(), "Serve TARGET until SIGTERM or Ctrl-C.", finds_file=True)
CHECK = Command(
    check,
    "Check the configuration: load everything as serve would, and print what would run.",
    finds_file=True,
)


loader.other_author, loader.enter = safe_open.other_author, safe_open.enter


class CommandLine(Arguments):
    """The command line, and the settings from it, the environment and the file.

    Attributes:
        finds_target: the target is found if none is named.
    """

    def __init__(self) -> None:
        super().__init__()
        self.finds_target = False
        #: Opens the file, if it was found.
        self._opener: Opener | None = None
        self._settings: Settings | None = None

    def run(self) -> int:
        """Run the subcommand and return the exit code."""
        if self.information:
            print(self.information, end="")
            return 0
        called = command(self.command)
        if "GUNICORN_CMD_ARGS" in os.environ and not called.own_words:
            self.notes.append(
                "GUNICORN_CMD_ARGS is not read; write its options after poorhttp serve, which "
                "takes most of them (docs/reference/command.md)"
            )
        if not called.own_words:
            self._note_prefix()
        for note in self.notes:
            print(f"poorhttp: {note}", file=sys.stderr)
        return called.run(self)

    def serve(self) -> int:
        """Serve until a stop signal, and return the exit code."""
        from poorhttp import supervisor

        # Modules stay in any case: without them, the collection before the first fork takes 3 ms
        # less, of 45 until the first answer.
        gc.freeze()
        try:
            services = self.settings()
            if not services[0].supervisor:
                from poorhttp.process import orphans

                # Only the command: the threads of a program, and what follows in it, are not to be
                # doubled.
                ended = orphans.serve_in_child()
                if ended is not None:
                    return ended
            if self.file is not None:
                # A reload reads it again, when the current directory may be another.
                self.file = os.path.abspath(self.file)
            code = supervisor.run(services, self.settings, file=self.file)
        except Failure as failure:
            supervisor.report_failure(str(failure))
            raise
        try:
            sys.stderr.flush()
        except OSError:
            # A full disk, for example: Python would flush again, and exit with 120.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        if services[0].supervisor:
            _leave_threads(code)
        return code

    def _note_prefix(self) -> None:
        """Note that SCRIPT_NAME, by which gunicorn mounts an application, has no effect here."""
        given = [text for text in self.values.get("env", []) if text.startswith("SCRIPT_NAME=/")]
        prefix = given[-1].partition("=")[2] if given else os.environ.get("SCRIPT_NAME", "")
        if len(prefix) > 1 and "mount" not in self.values:
            target = self.values.get("target", ["TARGET"])[0]
            self.notes.append(
                "gunicorn mounts the application at SCRIPT_NAME, poorhttp does not: write --mount "
                f"{prefix.rstrip('/')}={target} instead of {target} (docs/reference/command.md)"
            )

    def _load(self) -> list[Settings]:
        """Load the settings; from a file of the current folder, if nothing is named to serve."""
        called = command(self.command)
        services = loader.load(
            self.values, os.environ, self.file, called.defaults, self.flags, self._opener
        )
        first = services[0]
        found = loader.found() if self.file is None and called.finds_file else ""
        if found and not (first.serves or registry.uses(FINDER, first.is_enabled)):
            self.file, self._opener = found, safe_open.open_found
            services = self._load()
            print(f"poorhttp: {found} of this folder is read", file=sys.stderr)
        self._settings = services[0]
        return services

    def settings(self) -> list[Settings]:
        """Return the settings of each service; a Failure if something in them is wrong."""
        before = dict(os.environ)
        try:
            return self._read()
        except BaseException:
            # Workers of the version that goes on get the environment of that.
            if dict(os.environ) != before:
                os.environ.clear()
                os.environ.update(before)
            raise

    def _read(self) -> list[Settings]:
        finder = plugin_hooks.finder() if self.finds_target else None
        if finder is not None:
            services = finder.read_settings(self._load, self.command)
        else:
            services = self._load()
        for hooks in plugin_hooks.used(services[0]):
            hooks.complete(services)
        called = command(self.command)
        for settings in services:
            if not settings.serves:
                of_service = f" for service {settings.service}" if settings.service else ""
                finder = plugin_hooks.finder()
                hint = finder.hint(settings, self.command) if finder is not None else ""
                raise UsageError(
                    f"there is nothing to {self.command}{of_service}; name an application, for "
                    f"example: poorhttp {self.command} {called.example} (or put "
                    f"target = ... into a section of {loader.FOUND[0]}, or of a file that -c "
                    f"names){hint}"
                )
        return services

    def culprit(self) -> str:
        """Return what an unexpected exception is a fault of: the server, or a command of others."""
        entry = registry.known("commands", self.command)
        return str(entry) if entry is not None and entry.plugin else "internal error"

    def debugging(self) -> bool:
        """Tell whether the log level is `debug`, as far as it is known yet."""
        if self._settings is not None:
            return self._settings.log_level == "debug"
        level = OPTIONS["log_level"]
        return self.values.get(level.name, [os.environ.get(level.variable, "")])[-1] == "debug"


def _leave_threads(code: int) -> None:
    """End the main process if threads of plug-ins are left, for which Python would wait.

    The process has no others: workers load the application.
    """
    threading: Any = sys.modules.get("threading")
    known = threading.enumerate() if threading else ()
    left = [
        each.name for each in known if not each.daemon and each is not threading.current_thread()
    ]
    if left:
        import atexit

        from poorhttp import logs

        text = f"the server ends without threads of plug-ins, which have not ended: {left}"
        logs.write("warning", text)
        atexit._run_exitfuncs()
        os._exit(code)
