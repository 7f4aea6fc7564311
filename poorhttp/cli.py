"""The command `poorhttp`: parses the command line and runs a subcommand."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from poorhttp.config import loader
from poorhttp.config.command_line import COMMANDS, Arguments
from poorhttp.config.settings import OPTIONS, Settings
from poorhttp.errors import Failure, UsageError, printable
from poorhttp.plugins.dev import options as development
from poorhttp.process.standard_streams import open_standard_streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.ini import Opener
    from poorhttp.plugins.discovery.discover import Discovery
    from poorhttp.plugins.discovery.flask_files import FlaskFiles


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
        kind = "" if expected else f"internal error: {type(error).__name__}: "
        print(f"poorhttp: {kind}{printable(str(error))}", file=sys.stderr)
        if line.debugging():
            sys.excepthook(type(error), error, error.__traceback__)
        elif not expected:
            print("poorhttp: --log-level debug shows where", file=sys.stderr)
        return error.exit_code if isinstance(error, Failure) else 1


def serve(line: CommandLine) -> int:
    """Serve the target until a stop signal."""
    from poorhttp import supervisor

    try:
        return _serve(line)
    except Failure as failure:
        supervisor.report_failure(str(failure))
        raise


def _serve(line: CommandLine) -> int:
    from poorhttp import supervisor

    services = line.settings()
    if not services[0].supervisor:
        from poorhttp.process import orphans

        # Only the command: the threads of a program, and what follows in it, are not to be doubled.
        ended = orphans.serve_in_child()
        if ended is not None:
            return ended
    if line.file is not None:
        # A reload reads it again, when the current directory may be another.
        line.file = os.path.abspath(line.file)
    code = supervisor.run(services, line.settings, file=line.file)
    try:
        sys.stderr.flush()
    except OSError:
        # A full disk, for example: Python would flush again, and exit with 120.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return code


def dev(line: CommandLine) -> int:
    """Run the development server until a stop signal; finds the target if none is named."""
    from poorhttp.plugins.discovery.discover import Discovery
    from poorhttp.plugins.discovery.flask_files import FlaskFiles

    line.discovery = Discovery()
    line.flask_files = FlaskFiles(os.environ)
    return serve(line)


def check(line: CommandLine) -> int:
    """Load the target and open the addresses as `serve` does, then print what would run."""
    from poorhttp.plugins.monitor.admin import endpoint
    from poorhttp.worker import check as checking

    return checking.check(line.settings(), endpoint.check)


def compile_pages(line: CommandLine) -> int:
    """Compile the pages of each folder, and print errors."""
    from functools import partial

    from poorhttp.plugins.apps.pages.compile_all import compile_all
    from poorhttp.plugins.apps.pages.target import open_folder
    from poorhttp.worker import check as checking

    services = line.settings()
    loader.change_folder(services[0])
    run = partial(compile_all, open_folder)
    return max(checking.run_as_user(settings, run) for settings in services)


def ctl(line: CommandLine) -> int:
    """Show or control a running server."""
    from poorhttp.plugins.monitor.ctl import main as run

    return run(line.words if line.command == "ctl" else [line.command, *line.words])


def init(line: CommandLine) -> int:
    """Write the files that a deployment of the application needs."""
    from poorhttp.plugins.discovery.discover import Discovery
    from poorhttp.plugins.setup.deployment import command
    from poorhttp.process.safe_open import make_folders, write_file

    def write(path: str, content: bytes, replace: bool) -> None:
        make_folders(os.path.dirname(path))
        write_file(path, content, replace=replace)

    return command.main(line.words, Discovery().complete, write)


def completion(line: CommandLine) -> int:
    """Print the completion for a shell."""
    from poorhttp.plugins.monitor.ctl.completion import words
    from poorhttp.plugins.setup.shell import command

    print(command.completion(line.words, words()), end="")
    return 0


def man(line: CommandLine) -> int:
    """Print a man page, roff."""
    from poorhttp.plugins.monitor.ctl.completion import words
    from poorhttp.plugins.setup.shell import command

    print(command.manual(line.words, words()), end="")
    return 0


def migrate(line: CommandLine) -> int:
    """Print an ini file from the configuration of another server."""
    from poorhttp.plugins.setup.migrate.command import main as run
    from poorhttp.process.safe_open import parent_folder, safe_open

    return run(line.words, safe_open, parent_folder)


RUN = {
    "serve": serve,
    "dev": dev,
    "check": check,
    "compile": compile_pages,
    "ctl": ctl,
    "top": ctl,
    "init": init,
    "completion": completion,
    "man": man,
    "migrate": migrate,
}


#: Commands that look for a file if none is named: not `dev`, whose configuration is another one
#: than that of a deployment.
FINDING = ("serve", "check", "compile")


class CommandLine(Arguments):
    """The command line, and the settings from it, the environment and the file.

    Attributes:
        discovery: finds the target if none is named, or the project of `--django`; None: a missing
            target is an error.
        flask_files: variables of an application of Flask, for the development server.
    """

    def __init__(self) -> None:
        super().__init__()
        self.discovery: Discovery | None = None
        #: Opens the file, if it was found.
        self._opener: Opener | None = None
        self.flask_files: FlaskFiles | None = None
        self._settings: Settings | None = None

    def run(self) -> int:
        """Run the subcommand and return the exit code."""
        if self.information:
            print(self.information, end="")
            return 0
        if "GUNICORN_CMD_ARGS" in os.environ and self.command in ("serve", "dev", "check"):
            self.notes.append(
                "GUNICORN_CMD_ARGS is not read; write its options after poorhttp serve, which "
                "takes most of them (docs/reference/command.md)"
            )
        if self.command in ("serve", "dev", "check"):
            self._note_prefix()
        for note in self.notes:
            print(f"poorhttp: {note}", file=sys.stderr)
        return RUN[self.command](self)

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
        defaults = development.DEFAULTS if self.command == "dev" else None

        def load() -> list[Settings]:
            return loader.load(
                self.values, os.environ, self.file, defaults, self.flags, self._opener
            )

        services = load()
        if self.file is None and self.command in FINDING:
            found = loader.found()
            if found and not (services[0].serves or services[0].django):
                from poorhttp.process.safe_open import open_found

                self.file, self._opener = found, open_found
                services = load()
                print(f"poorhttp: {found} of this folder is read", file=sys.stderr)
        return services

    def settings(self) -> list[Settings]:
        """Return the settings of each service.

        Raises:
            Failure: an option, a variable or the file is wrong.
        """
        if self.flask_files is None:
            return self._read()
        before = dict(os.environ)
        try:
            return self._read()
        except BaseException:
            # Workers of the version that goes on get the environment of that.
            os.environ.clear()
            os.environ.update(before)
            raise

    def _read(self) -> list[Settings]:
        files = self.flask_files
        if files is not None:
            files.forget(os.environ)
            if files.is_for_command:
                files.read(os.environ, os.getcwd())
        services = self._load()
        self._settings = services[0]
        if self.discovery is None and services[0].django:
            from poorhttp.plugins.discovery.discover import Discovery

            self.discovery = Discovery()
        if self.discovery is not None:
            # It reads some, such as DJANGO_SETTINGS_MODULE.
            loader.set_variables(services[0])
            if files is not None:
                self.discovery.changes = files.changes()
            self.discovery.complete(services)
            if files is not None:
                if self.discovery.found_flask and not files.is_for_command:
                    files.read(os.environ, services[0].chdir)
                services[0].variable_files = files.paths
        for settings in services:
            if not settings.serves:
                of_service = f" for service {settings.service}" if settings.service else ""
                finds = "; poorhttp dev finds it by itself" if self.command == "serve" else ""
                if finds and os.path.isfile(os.path.join(settings.chdir, "manage.py")):
                    finds = f"{finds}, and poorhttp serve --django a project of Django"
                raise UsageError(
                    f"there is nothing to {self.command}{of_service}; name an application, for "
                    f"example: poorhttp {self.command} {COMMANDS[self.command].example} (or put "
                    f"target = ... into a section of {loader.FOUND[0]}, or of a file that -c "
                    f"names){finds}"
                )
        for settings in services:
            if settings.https:
                from poorhttp.plugins.dev import local_certificate

                local_certificate.apply(settings)
        if any(development.is_on(settings) for settings in services):
            from poorhttp.plugins import dev

            dev.install()
        if services[0].debug != "off":
            from poorhttp.plugins import discovery

            discovery.set_debug_defaults(os.environ)
        return services

    def debugging(self) -> bool:
        """Tell whether the log level is `debug`, as far as it is known yet."""
        if self._settings is not None:
            return self._settings.log_level == "debug"
        level = OPTIONS["log_level"]
        return self.values.get(level.name, [os.environ.get(level.variable, "")])[-1] == "debug"
