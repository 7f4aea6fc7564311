"""A folder of pages: finds, compiles and caches them."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from threading import RLock
from types import ModuleType

from mako.exceptions import TopLevelLookupException
from mako.template import ModuleTemplate

from .compiler import ALONE, compile_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mako.runtime import Context

    from poorhttp.plugins.apps.pages.module_cache import ModuleCache

#: Times, size, device and inode of a file: if these are the same, so is the file. The time of
#: modification alone may be a constant, as in archives.
FileId = tuple[int, int, int, int, int]

SUFFIX = ".html"


class Folder:
    """The pages of a folder, each compiled at first use.

    It is also the lookup by which Mako finds layouts and parts: `get_template` is called at each
    use, so a changed part is noticed in all pages.

    Attributes:
        path: absolute; symbolic links in it are not resolved, because they may change.
    """

    def __init__(self, path: str, *, reload: bool, modules: ModuleCache | None = None) -> None:
        """Take a folder.

        Args:
            path: of the folder.
            reload: check at each use whether a file has changed.
            modules: cache of compiled pages on disk.
        """
        self.path = os.path.abspath(path).rstrip("/")
        self._reload = reload
        self._modules = modules
        self._templates: dict[str, tuple[ModuleTemplate, FileId]] = {}
        self._uris: dict[str, str] = {}
        # Held while a page is compiled: no page is compiled twice. A page may load others.
        self._lock = RLock()

    def page(self, path: str) -> ModuleTemplate | None:
        """Return the page at a decoded path of an address, if there is one.

        Raises:
            PageError: it cannot be compiled.
        """
        uri = self._uris.get(path)
        try:
            if uri is not None:
                return self.get_template(uri)
            for candidate in _candidates(path):
                if os.path.isfile(self.path + candidate):
                    template = self.get_template(candidate)
                    # At most two for each page: `/x` and `/x.html`.
                    self._uris[path] = candidate
                    return template
        except TopLevelLookupException:
            self._uris.pop(path, None)
        return None

    def is_folder(self, path: str) -> bool:
        """Whether a path without a slash at its end is that of a folder with an index page."""
        return any(os.path.isfile(self.path + uri) for uri in _candidates(path + "/"))

    def all(self) -> Iterator[str]:
        """Yield the name of every page, layout and part, in alphabetical order."""
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for file in sorted(files):
                uri = os.path.join(folder, file).removeprefix(self.path)
                if file.endswith(SUFFIX) and not file.startswith(".") and self._has(uri):
                    yield uri

    def compile(self, uri: str) -> None:
        """Compile a page without running it, and store it in the cache on disk, if there is one.

        Raises:
            PageError: it cannot be compiled.
            OSError: it cannot be read, or not be stored.
        """
        file = self.path + uri
        with open(file, "rb") as stream:
            source = stream.read()
        code = compile_page(source, uri, file)
        if self._modules is not None:
            self._modules.store(uri, file, source, code)

    # Mako's interface of a lookup

    def adjust_uri(self, uri: str, relative_to: str | None) -> str:
        """Return the absolute name of a part, which may be relative to the page that uses it."""
        if not uri.startswith("/"):
            page = relative_to or "/"
            uri = page[: page.rindex("/") + 1] + uri
        # `normpath` keeps two slashes at the beginning.
        return posixpath.normpath("/" + uri.lstrip("/")) if "/." in uri or "//" in uri else uri

    def get_template(self, uri: str) -> ModuleTemplate:
        """Return the compiled page of a file of the folder.

        Args:
            uri: name of the file, with a slash at its beginning, normalised.

        Raises:
            TopLevelLookupException: there is no such file.
            PageError: it cannot be compiled.
        """
        known = self._templates.get(uri)
        if known is not None and (not self._reload or known[1] == self._file_id(uri)):
            return known[0]
        with self._lock:
            # Another thread may have compiled it meanwhile.
            known = self._templates.get(uri)
            file_id = self._file_id(uri)
            if known is None or known[1] != file_id:
                self._templates.pop(uri, None)
                # Taken before the file is read: a change in between is noticed next time.
                known = self._templates[uri] = (self._load(uri), file_id)
            return known[0]

    def _file_id(self, uri: str) -> FileId:
        try:
            found = os.stat(self.path + uri)
        except (OSError, ValueError):
            self._templates.pop(uri, None)
            raise TopLevelLookupException(f"there is no page {uri} in {self.path}") from None
        return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_dev, found.st_ino

    def _has(self, uri: str) -> bool:
        """Whether it is a file inside of the folder, also when links are resolved."""
        file = self.path + uri
        inside = os.path.join(os.path.realpath(self.path), "")
        return os.path.isfile(file) and os.path.realpath(file).startswith(inside)

    def _load(self, uri: str) -> ModuleTemplate:
        file = self.path + uri
        if not self._has(uri):
            raise TopLevelLookupException(f"there is no page {uri} in {self.path}")
        with open(file, "rb") as stream:
            source = stream.read()
        code = None if self._modules is None else self._modules.load(uri, file, source)
        if code is None:
            code = compile_page(source, uri, file)
            if self._modules is not None:
                self._modules.try_to_store(uri, file, source, code)
        module = ModuleType(uri)
        exec(code, module.__dict__)
        return Page(module, file, self)


class Page(ModuleTemplate):  # type: ignore[misc]  # no types
    """A page, a layout or a part.

    Attributes:
        alone: whether it stands alone: it uses none of Mako's namespaces (see `optimize`).
        plain: whether it also takes no arguments.
    """

    def __init__(self, module: ModuleType, file: str, folder: Folder) -> None:
        super().__init__(module, template_filename=file, lookup=folder)
        self.alone: bool = vars(module)[ALONE]
        code = self.callable_.__code__
        arguments = code.co_varnames[:2], code.co_argcount, code.co_kwonlyargcount
        self.plain = self.alone and arguments == (("context", "pageargs"), 1, 0)

    def render_context(self, context: Context, *args: Any, **names: Any) -> None:
        """Render the page in a scope, as Mako does."""
        if self.alone and not (args or names):
            context._with_template = self
            self.callable_(context)
        else:
            super().render_context(context, *args, **names)


def _candidates(path: str) -> tuple[str, ...]:
    """Return the names of files that could be the page at a path."""
    if not path.startswith("/") or "\0" in path:
        return ()
    *folders, name = path[1:].split("/")
    # Parts (`_`) and hidden files are not pages. `..` and empty segments are not found.
    if any(not folder or folder[0] in "._" for folder in folders) or name[:1] in ("_", "."):
        return ()
    if not name:
        return (f"{path}index{SUFFIX}",)
    if name.endswith(SUFFIX):
        return (path,)
    return (f"{path}{SUFFIX}",)
