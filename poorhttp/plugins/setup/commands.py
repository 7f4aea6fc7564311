"""The commands `poorhttp init`, `completion`, `man`, `migrate` and `plugins`."""

from __future__ import annotations

import os

from poorhttp.config.command import Command
from poorhttp.config.registry import registry
from poorhttp.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Line, Words

HELP = ("-h, --help", "Show help.")


def init(line: Line) -> int:
    """Write the files that a deployment of the application needs."""
    from poorhttp.plugins.setup.deployment import command
    from poorhttp.process.safe_open import make_folders, write_file

    def write(path: str, content: bytes, replace: bool) -> None:
        make_folders(os.path.dirname(path))
        write_file(path, content, replace=replace)

    return command.main(line.words, write)


def init_words() -> Words:
    """Return the options of `init`."""
    from poorhttp.plugins.setup.deployment.arguments import OPTIONS

    options = [
        (f"{', '.join(each.names)} {each.metavar}".strip(), each.summary)
        for each in OPTIONS.values()
    ]
    return {"options": options, "argument": "FOLDER"}


def completion(line: Line) -> int:
    """Print the completion for a shell."""
    from poorhttp.plugins.setup.shell import command

    print(command.completion(line.words), end="")
    return 0


def man(line: Line) -> int:
    """Print a man page, roff."""
    from poorhttp.plugins.setup.shell import command

    print(command.manual(line.words), end="")
    return 0


def plugins(line: Line) -> int:
    """Print what plug-ins add, where they are from, and what cannot be loaded and why."""
    from poorhttp.plugins.setup.plugin_list import USAGE, plugin_list

    if {"-h", "--help"} & {*line.words}:
        print(USAGE, end="")
        return 0
    registry.use([("plugins", name) for name in line.words], UsageError)
    print(plugin_list(), end="")
    return 0


def migrate(line: Line) -> int:
    """Print an ini file from the configuration of another server."""
    from poorhttp.plugins.setup.migrate.command import main as run
    from poorhttp.process.safe_open import parent_folder, safe_open

    return run(line.words, safe_open, parent_folder)


def migrate_words() -> Words:
    """Return the options of `migrate`."""
    return {
        "options": [
            ("-o, --output FILE", "Write FILE instead of printing it."),
            ("--force", "Replace FILE if it exists."),
            HELP,
        ],
        "argument": "FILE",
    }


INIT = Command(
    init,
    "Write poorhttp.ini, and files for systemd, web servers in front and containers.",
    own_words=True,
    words=init_words,
)
COMPLETION = Command(
    completion,
    "Print the completion for a shell: bash, zsh or fish.",
    own_words=True,
    words=lambda: {"options": [HELP], "choices": ["bash", "zsh", "fish"]},
)
MAN = Command(
    man,
    "Print a man page: 1, the command, or 5, the ini file.",
    own_words=True,
    words=lambda: {"options": [HELP], "choices": ["1", "5"]},
)
MIGRATE = Command(
    migrate,
    "Print an ini file from the configuration of gunicorn, uWSGI, waitress and others.",
    own_words=True,
    words=migrate_words,
)
PLUGINS = Command(
    plugins,
    "List plug-ins: what they add, from where, and what failed to load.",
    own_words=True,
    words=lambda: {"options": [HELP]},
)
