"""The command `poorhttp compile`: compiles all pages of a folder in advance."""

from __future__ import annotations

import sys
from collections.abc import Callable

from poorhttp.config.settings import Settings
from poorhttp.errors import ApplicationError, printable
from poorhttp.plugins.apps.pages.options import TemplatePages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.apps.pages.folder import Folder

SCHEME = "pages:"


def compile_all(open_folder: Callable[[str, Settings], Folder], settings: Settings) -> None:
    """Compile the pages of a service, of its mounts and of its hosts.

    Stores them in `pages_modules`, without running them. Prints a line on standard error for each
    page that cannot be compiled.

    Args:
        open_folder: opens a folder of pages, by its path and the settings of its host.
        settings: of the service.

    Raises:
        ApplicationError: a page cannot be compiled, or its code cannot be written.
    """
    mistakes = sum(
        _compile(open_folder(path, hosted), hosted) for path, hosted in _folders(settings).items()
    )
    if mistakes:
        pages = "page" if mistakes == 1 else "pages"
        raise ApplicationError(f"{mistakes} {pages} cannot be compiled")


def _folders(settings: Settings) -> dict[str, Settings]:
    """Return the folders of pages that are served, with the settings of their hosts."""
    found: dict[str, Settings] = {}
    for hosted in (settings, *settings.hosts.values()):
        for target in (hosted.target, *(target for _, target in hosted.mount)):
            if target.startswith(SCHEME):
                found.setdefault(target.removeprefix(SCHEME), hosted)
    # `poorhttp compile FOLDER` needs no scheme.
    return found or {settings.target: settings}


def _compile(folder: Folder, settings: Settings) -> int:
    """Compile the pages of a folder; return how many cannot be."""
    # After `open_folder` has checked that Mako is installed.
    from poorhttp.plugins.apps.pages.compiler import PageError

    count = mistakes = 0
    for uri in folder.all():
        try:
            folder.compile(uri)
            count += 1
        except PageError as mistake:
            mistakes += 1
            print(printable(str(mistake)), file=sys.stderr)
        except OSError as error:
            raise ApplicationError(f"{folder.path}{uri} cannot be compiled: {error}") from error
    modules = settings.of(TemplatePages).pages_modules
    where = f"kept in {modules}" if modules else "kept nowhere"
    print(f"{folder.path}: {count} {'page' if count == 1 else 'pages'} compiled, {where}")
    return mistakes
