"""The target `pages:FOLDER`: an application of the `.html` templates of a folder."""

from __future__ import annotations

from importlib.util import find_spec

from poorhttp.config.settings import Settings
from poorhttp.errors import ApplicationError, how_to_install
from poorhttp.plugins.apps.folder import check_folder
from poorhttp.plugins.apps.pages.options import TemplatePages
from poorhttp.targets import SECRET
from poorhttp.targets.target import TEMPLATES, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.plugins.apps.pages.application import Pages
    from poorhttp.plugins.apps.pages.folder import Folder


def load(folder: str, settings: Settings | None = None) -> Pages:
    """Return the application of a folder of pages.

    Args:
        folder: its path.
        settings: the `pages_*` and `session_*` options; by default none is set.

    Raises:
        ApplicationError: there is no such folder, a needed module is not installed, or an option
            names a file that cannot be used.
    """
    settings = settings or Settings()
    opened = open_folder(folder, settings)
    options = settings.of(TemplatePages)

    from poorhttp.plugins.apps.pages.application import Pages
    from poorhttp.plugins.apps.pages.session import Sessions
    from poorhttp.plugins.apps.pages.session_key import read_key

    if options.session_key is not None:
        sessions = Sessions(read_key(options.session_key), "", options.session_lifetime)
    else:
        # Without a key file, folders do not share their sessions.
        sessions = Sessions(SECRET, opened.path, options.session_lifetime)
    return Pages(opened, sessions)


def open_folder(folder: str, settings: Settings) -> Folder:
    """Return a folder of pages, and where those are kept when they are compiled.

    Raises:
        ApplicationError: as `load`.
    """
    check_folder("pages", folder, "the templates are")
    for name in ("mako", "itsdangerous"):
        if find_spec(name) is None:
            raise ApplicationError(
                f"pages need {name}, which is not installed: {how_to_install('pages')}"
            )
    from poorhttp.plugins.apps.pages.folder import Folder
    from poorhttp.plugins.apps.pages.module_cache import ModuleCache

    options = settings.of(TemplatePages)
    modules = None
    if options.pages_modules is not None:
        modules = ModuleCache(options.pages_modules, folder)
    return Folder(folder, reload=options.pages_reload, modules=modules)


TARGET = Target(load, TEMPLATES, takes_settings=True)
