"""A folder of pages: from the path of an address, or the name of a part, to what is compiled."""

from __future__ import annotations

import os
import posixpath
from threading import RLock
from types import ModuleType

from mako.exceptions import TopLevelLookupException
from mako.template import ModuleTemplate

from .compiler import ALONE, compile_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    from mako.runtime import Context

    from poorhttp.pages.module_cache import Modules

    #: What tells one state of a file from another.
    Stamp: TypeAlias = tuple[int, int, int]

SUFFIX = ".html"


class Folder:
    """The pages of a folder, each compiled when it is asked for first.

    For Mako it is the lookup by which pages find layouts and parts: they go through `get_template`
    each time they are used, so that what has changed is noticed for everybody who uses it.

    Attributes:
        path: absolute; symbolic links on the way to it may lead elsewhere another time.
    """

    def __init__(self, path: str, *, reload: bool, modules: Modules | None = None) -> None:
        """Take a folder.

        Args:
            path: of the folder.
            reload: look whether a file has changed whenever it is used.
            modules: where compiled pages are kept.
        """
        self.path = os.path.abspath(path).rstrip("/")
        self._reload = reload
        self._modules = modules
        self._templates: dict[str, tuple[ModuleTemplate, Stamp]] = {}
        self._uris: dict[str, str] = {}
        # Held while a page is compiled, so that it is once; a page may use others when it begins.
        self._lock = RLock()

    def page(self, path: str) -> ModuleTemplate | None:
        """The page at a path of an address, decoded; nothing if there is none.

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
                    # As many as there are pages, twice: `/x` and `/x.html`.
                    self._uris[path] = candidate
                    return template
        except TopLevelLookupException:
            self._uris.pop(path, None)
        return None

    def is_folder(self, path: str) -> bool:
        """Whether there is an index page behind a path that lacks a slash at its end."""
        return any(os.path.isfile(self.path + uri) for uri in _candidates(path + "/"))

    def all(self) -> Iterator[str]:
        """The name of every page, layouts and parts among them, in alphabetical order."""
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for file in sorted(files):
                uri = os.path.join(folder, file).removeprefix(self.path)
                if file.endswith(SUFFIX) and not file.startswith(".") and self._has(uri):
                    yield uri

    def compile(self, uri: str) -> None:
        """Compile a page without running any of it, and keep it if there is a place for that.

        Raises:
            PageError: it cannot be compiled.
            OSError: it cannot be read, or not be kept.
        """
        file = self.path + uri
        with open(file, "rb") as stream:
            source = stream.read()
        code = compile_page(source, uri, file)
        if self._modules is not None:
            self._modules.keep(uri, file, source, code)

    # What Mako asks

    def adjust_uri(self, uri: str, relative_to: str | None) -> str:
        """The name of a part, which counts from the page that uses it."""
        if not uri.startswith("/"):
            page = relative_to or "/"
            uri = page[: page.rindex("/") + 1] + uri
        # Two slashes at the beginning would stay.
        return posixpath.normpath("/" + uri.lstrip("/")) if "/." in uri or "//" in uri else uri

    def get_template(self, uri: str) -> ModuleTemplate:
        """What is compiled from a file of the folder.

        Args:
            uri: its name, beginning with a slash; without dots and doubled slashes.

        Raises:
            TopLevelLookupException: there is no such file.
            PageError: it cannot be compiled.
        """
        known = self._templates.get(uri)
        if known is not None and (not self._reload or known[1] == self._stamp(uri)):
            return known[0]
        with self._lock:
            # Somebody else may have been here first.
            known = self._templates.get(uri)
            stamp = self._stamp(uri)
            if known is None or known[1] != stamp:
                self._templates.pop(uri, None)
                # The stamp is older than what is read: a change in between is noticed next time.
                known = self._templates[uri] = (self._load(uri), stamp)
            return known[0]

    def _stamp(self, uri: str) -> Stamp:
        try:
            found = os.stat(self.path + uri)
        except (OSError, ValueError):
            self._templates.pop(uri, None)
            raise TopLevelLookupException(f"there is no page {uri} in {self.path}") from None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _has(self, uri: str) -> bool:
        """Whether it is a file, and inside of the folder, wherever links lead."""
        file = self.path + uri
        inside = os.path.join(os.path.realpath(self.path), "")
        return os.path.isfile(file) and os.path.realpath(file).startswith(inside)

    def _load(self, uri: str) -> ModuleTemplate:
        file = self.path + uri
        if not self._has(uri):
            raise TopLevelLookupException(f"there is no page {uri} in {self.path}")
        with open(file, "rb") as stream:
            source = stream.read()
        code = None if self._modules is None else self._modules.find(uri, file, source)
        if code is None:
            code = compile_page(source, uri, file)
            if self._modules is not None:
                self._modules.try_to_keep(uri, file, source, code)
        module = ModuleType(uri)
        exec(code, module.__dict__)
        return Page(module, file, self)


class Page(ModuleTemplate):  # type: ignore[misc]  # no types
    """A page, a layout or a part.

    Attributes:
        alone: whether it is rendered without what Mako tells a page of itself and its layouts.
        plain: whether it also takes no arguments, so that nothing has to be found for them.
    """

    def __init__(self, module: ModuleType, file: str, folder: Folder) -> None:
        super().__init__(module, template_filename=file, lookup=folder)
        self.alone: bool = vars(module)[ALONE]
        code = self.callable_.__code__
        arguments = code.co_varnames[:2], code.co_argcount, code.co_kwonlyargcount
        self.plain = self.alone and arguments == (("context", "pageargs"), 1, 0)

    def render_context(self, context: Context, *args: Any, **names: Any) -> None:
        """Render it into a scope, as Mako does."""
        if self.alone and not (args or names):
            context._with_template = self
            self.callable_(context)
        else:
            super().render_context(context, *args, **names)


def _candidates(path: str) -> tuple[str, ...]:
    """The names of the files that could be the page at a path."""
    if not path.startswith("/") or "\0" in path:
        return ()
    *folders, name = path[1:].split("/")
    # Parts and hidden files are not pages; nor are dots a way out, or an empty name another way in.
    if any(not folder or folder[0] in "._" for folder in folders) or name[:1] in ("_", "."):
        return ()
    if not name:
        return (f"{path}index{SUFFIX}",)
    if name.endswith(SUFFIX):
        return (path,)
    return (f"{path}{SUFFIX}",)
