"""Declares the command `poorhttp compile`: its help, its options, and what runs it."""

from __future__ import annotations

from poorhttp.config.command import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.command import Line


def compile_pages(line: Line) -> int:
    """Compile the pages of each folder, and print errors."""
    from functools import partial

    from poorhttp.config import loader
    from poorhttp.plugins.apps.pages.compile_all import compile_all
    from poorhttp.plugins.apps.pages.target import open_folder
    from poorhttp.worker import check as checking

    services = line.settings()
    loader.change_folder(services[0])
    run = partial(compile_all, open_folder)
    return max(checking.run_as_user(settings, run) for settings in services)


COMPILE = Command(
    compile_pages,
    "Compile the template pages of TARGET, a folder, and report errors.",
    example="pages:FOLDER --pages-modules MODULES",
    finds_file=True,
)
