"""Searches a folder for an application, reading source without running it.

The first of these that exists is served:

1. `manage.py` of a Django project;
2. what `FLASK_APP` names, in the environment or in `.flaskenv`;
3. `dispatch_table.py`;
4. an application in `wsgi.py`, `app.py`, `application.py` or `main.py`, or in packages of these
   names, here or in `src`;
5. one in any other module or package, here or in `src`; two of them are an error;
6. template pages; files, with an `index.html`; programs, in `cgi-bin` or called `NAME.cgi`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator

from poorhttp.config.ini import read_file
from poorhttp.dev.discovery.candidates import MAYBE, SURE, Candidate, Choice, choose, required
from poorhttp.dev.discovery.found_target import FoundTarget
from poorhttp.errors import UsageError
from poorhttp.targets import SCHEMES
from poorhttp.targets.dispatch import TABLE
from poorhttp.targets.source.django import (
    MANAGE,
    SETTINGS_APPLICATION,
    VARIABLE,
    Project,
    is_project,
)
from poorhttp.targets.source.python import Sources, file_of

#: Usual names of an application's module, the likeliest first; Flask looks at two of them.
USUAL_MODULES = ("wsgi", "app", "application", "main")

#: Names of modules and folders that are never an application.
NEVER_APPLICATIONS = {
    "build", "conftest", "dist", "doc", "docs", "fabfile", "manage", "migrations", "node_modules",
    "noxfile", "setup", "tasks", "test", "tests", "venv",
}  # fmt: skip

#: Entries of a folder that are read.
MAX_ENTRIES = 1000

#: Text that only template pages contain.
TEMPLATE = re.compile(
    r"<%(inherit|namespace|page|def|block|include)\b|^\s*% ?end(for|if|while)\b", re.MULTILINE
)

NAME_FOLDER = "name its folder: poorhttp serve --django FOLDER"
NAME_IT = "name it: poorhttp dev package.module:application"


def search(
    chdir: str, target: str, *, django: bool = False, debug: bool = True
) -> FoundTarget | None:
    """Find the target to be served.

    Args:
        chdir: the folder to search.
        target: a folder, a file, a module, or empty.
        django: find nothing but a Django project.
        debug: whether static files are served by Django.

    Returns:
        `None` if the target is complete already.

    Raises:
        UsageError: nothing was found, or more than one application.
    """
    try:
        os.chdir(chdir)
    except OSError:
        return None  # the server reports the error when it changes to the folder
    if django:
        return _in_folder(_folder_of_manage(target), MANAGE, django=True, debug=debug)
    here, file = os.path.split(target)
    if file in (MANAGE, TABLE) and os.path.isfile(target):
        return _in_folder(here or ".", file, debug=debug)
    if os.path.isfile(target):
        return _in_source(target, target)
    is_module = bool(file_of(target)) if file else os.path.isfile(f"{target}__init__.py")
    if target and os.path.isdir(target) and not is_module:
        return _in_folder(target, debug=debug)
    if not target:
        return _in_folder(".", debug=debug)
    if target.endswith("/") and not os.path.exists(target):
        from poorhttp.targets.folder import similar_folder

        near = similar_folder(target)
        raise UsageError(
            f"there is no folder {target}" + (f'; did you mean "{near}"?' if near else "")
        )
    module = target.rstrip("/").replace("/", ".")
    file, root = Sources().find(module)
    return _in_source(module, file, root) if file else None


# A target that was given


def _folder_of_manage(target: str) -> str:
    """Return the folder of a Django project, which a target names.

    Raises:
        UsageError: it is no such folder.
    """
    folder = target.removesuffix(MANAGE) or "."
    if os.path.isfile(os.path.join(folder, MANAGE)):
        return folder
    if not os.path.isdir(folder):
        raise UsageError(
            f"--django finds what is served by itself: name the folder of the project, not {target}"
        )
    os.chdir(folder)
    near = next((name for name in _visible() if os.path.isfile(os.path.join(name, MANAGE))), "")
    there = os.path.normpath(os.path.join(folder, near))
    hint = f"there is {there}/{MANAGE}: poorhttp serve --django {there}" if near else NAME_FOLDER
    raise UsageError(f"found no {MANAGE} of Django in {os.getcwd()}; {hint}")


def _in_folder(
    folder: str, file: str = "", *, django: bool = False, debug: bool = True
) -> FoundTarget:
    os.chdir(folder)
    search = Search()
    search.debug = debug
    found = search.django() if django else search.found(file)
    if folder != ".":
        found.folder = folder
        found.sentence += f", in {folder}"
    return found


def _in_source(place: str, file: str, root: str = ".") -> FoundTarget | None:
    """Find the target in a file, which `place` names as a file or as a module below `root`."""
    paths = [] if root == "." else [root]
    sources = Sources()
    choice = choose(sources, sources.read(file))
    if not choice.candidates:
        for remark in choice.remarks:
            print(f"poorhttp: {remark}", file=sys.stderr)
        if place == file:
            # The loader reports the error, with a suggestion.
            return None
        return FoundTarget(place, _sentence("a module", file, place), pythonpath=paths)
    only = _only(place, choice)
    target = f"{place}:{only.expression}"
    return FoundTarget(target, _sentence(only.what, file, target), pythonpath=paths)


def _only(place: str, choice: Choice) -> Candidate:
    """Return the only candidate of a file.

    Raises:
        UsageError: there are several.
    """
    if len(choice.candidates) > 1:
        targets = [f"{place}:{candidate.expression}" for candidate in choice.candidates]
        raise _ambiguous(targets)
    return choice.candidates[0]


def _ambiguous(targets: list[str]) -> UsageError:
    return UsageError(
        f"there are several applications: {', '.join(targets)}; say which one, "
        f"for example: poorhttp dev {_quoted(targets[0])}"
    )


def _quoted(target: str) -> str:
    """Return a target quoted for a shell."""
    return f"'{target}'" if "(" in target else target


def _sentence(what: str, where: str, target: str) -> str:
    return f"found {what} ({where}): serving {target}"


# A folder


class Search:
    """The search in the current folder."""

    def __init__(self) -> None:
        self.sources = Sources()
        self.remarks: list[str] = []
        #: Whether static files of a Django project are served by Django.
        self.debug = True
        #: Whether the folder is a package: its modules are imported as parts of it.
        self.is_package = os.path.isfile("__init__.py")

    def found(self, file: str = "") -> FoundTarget:
        """Return the target to be served.

        Args:
            file: `manage.py` or a dispatch table, if the target names that.

        Raises:
            UsageError: there is no application, or there are several.
        """
        searches: list[Callable[[], FoundTarget | None]] = [
            self._django,
            self._flask,
            self._table,
            self._usual_modules,
            self._other_modules,
            self._pages,
            self._files,
        ]
        if file == TABLE:
            searches = [self._table]
        for find in searches:
            found = find()
            if found is not None:
                return found
        remarks = (
            "".join(f"; {remark}" for remark in dict.fromkeys(self.remarks)) + self._hint_below()
        )
        raise UsageError(
            f"found nothing to serve in {os.getcwd()}: no manage.py of Django, no {TABLE}, no "
            "application or create_app() in wsgi.py, app.py, application.py, main.py, another "
            f"module or a package, no index.html, no cgi-bin or .cgi{remarks}; {NAME_IT}"
        )

    def django(self) -> FoundTarget:
        """Return the application of the Django project of this folder.

        Raises:
            UsageError: it is not one of Django, or does not name its settings.
        """
        found = self._django()
        if found is None:
            raise UsageError(f"the {MANAGE} in {os.getcwd()} is not that of a Django project")
        return found

    def _django(self) -> FoundTarget | None:
        if not os.path.isfile(MANAGE):
            return None
        manage = self.sources.read(MANAGE)
        if not is_project(manage):
            return None
        project = Project(self.sources, manage)
        if not project.settings:
            raise UsageError(
                f"{MANAGE} is that of a Django project, and does not say which settings it has: "
                f"set {VARIABLE}"
            )
        what = (
            "Django's own application" if project.target == SETTINGS_APPLICATION else project.target
        )
        files = f", and static files of django.contrib.staticfiles at {project.static}"
        return FoundTarget(
            project.target,
            f"found a Django project ({MANAGE}, settings {project.settings}): serving {what}"
            + (files if project.static and self.debug else ""),
            pythonpath=[] if project.root in ("", ".") else [project.root],
            environment={VARIABLE: project.settings},
        )

    def _flask(self) -> FoundTarget | None:
        path, where = os.environ.get("FLASK_APP", ""), "FLASK_APP"
        if not path:
            path, where = _flaskenv(), ".flaskenv"
        if not path:
            return None
        target, roots = of_flask(self.sources, path)
        return FoundTarget(
            target, _sentence("a Flask application", where, target), pythonpath=roots
        )

    def _table(self) -> FoundTarget | None:
        if not os.path.isfile(TABLE):
            return None
        return FoundTarget("dispatch:.", _sentence("a dispatch table", TABLE, "dispatch:."))

    def _usual_modules(self) -> FoundTarget | None:
        """Find the first of the usual modules; the message names other applications there."""
        candidates: list[tuple[str, str, Candidate]] = []
        for root in self.sources.roots:
            for name in USUAL_MODULES:
                file = file_of(os.path.join(root, name))
                candidates += self._candidates_in(file, root, MAYBE) if file else []
        if not candidates:
            return None
        file, root, first = candidates[0]
        same = [each for each in candidates if each[0] == file]
        if len(same) > 1:
            raise _ambiguous([self._target(*each)[0] for each in same])
        others = {self._target(*each)[0] for each in candidates if each[2].origin != first.origin}
        found = self._found_target(file, root, first)
        if others:
            found.sentence += f" (and not {', '.join(sorted(others))})"
        return found

    def _other_modules(self) -> FoundTarget | None:
        candidates: dict[tuple[str, str], tuple[str, str, Candidate]] = {}
        for root in self.sources.roots:
            for files in self._modules(root):
                for file in files:
                    of_file = self._candidates_in(file, root, SURE)
                    for each in of_file:
                        candidates.setdefault(each[2].origin, each)
                    if of_file:
                        break
        if len(candidates) > 1:
            raise _ambiguous([self._target(*each)[0] for each in candidates.values()])
        for each in candidates.values():
            return self._found_target(*each)
        return None

    def _modules(self, root: str) -> Iterator[list[str]]:
        """Return the files of each module and package; of a package only the likely ones."""
        if root == "." and self.is_package:
            yield ["./__init__.py"]
        for name in sorted(os.listdir(root))[:MAX_ENTRIES]:
            stem = name.removesuffix(".py")
            if (
                stem in (*USUAL_MODULES, *NEVER_APPLICATIONS)
                or not stem.isidentifier()
                or stem.startswith("_")
            ):
                continue
            path = os.path.join(root, name)
            if name.endswith(".py"):
                if not stem.startswith("test_") and not stem.endswith("_test"):
                    yield [path]
            elif os.path.isfile(os.path.join(path, "__init__.py")) or os.path.isfile(
                os.path.join(path, "wsgi.py")
            ):
                likely = [os.path.join(path, f"{file}.py") for file in ("__init__", *USUAL_MODULES)]
                yield [file for file in likely if os.path.isfile(file)]

    def _candidates_in(
        self, file: str, root: str, certainty: int
    ) -> list[tuple[str, str, Candidate]]:
        source = self.sources.read(file)
        if source.error and certainty == MAYBE:
            # Served all the same: the error page shows the error.
            origin = os.path.abspath(file), ""
            return [(file, root, Candidate("", f"a module, {source.error}", certainty, origin))]
        choice = choose(self.sources, source, certainty)
        self.remarks += choice.remarks
        return [(file, root, candidate) for candidate in choice.candidates]

    def _target(self, file: str, root: str, candidate: Candidate) -> tuple[str, list[str]]:
        """Return the target of a candidate, and the folders of its modules."""
        file = os.path.normpath(file)
        stem = os.path.relpath(file, root).removesuffix(".py").removesuffix("/__init__")
        parts = stem.split("/")
        place = ".".join(parts)
        paths = [] if root == "." else [root]
        if self.is_package and root == ".":
            place = file
        elif (
            len(parts) == 1
            and place != "wsgi"
            and (place in SCHEMES or place in sys.stdlib_module_names)
        ):
            # As a module, the name would mean one of the standard library, or a scheme.
            place, paths = file, []
        return f"{place}:{candidate.expression}".removesuffix(":"), paths

    def _found_target(self, file: str, root: str, candidate: Candidate) -> FoundTarget:
        target, paths = self._target(file, root, candidate)
        where = os.path.normpath(file)
        return FoundTarget(target, _sentence(candidate.what, where, target), pythonpath=paths)

    def _pages(self) -> FoundTarget | None:
        if not os.path.isfile("index.html"):
            return None
        if not TEMPLATE.search(read_file("index.html", 1 << 16).decode(errors="replace")):
            return None
        return FoundTarget("pages:.", _sentence("template pages", "index.html", "pages:."))

    def _files(self) -> FoundTarget | None:
        """Find static files and CGI programs."""
        programs = os.path.isdir("cgi-bin")
        if os.path.isfile("index.html"):
            also = ", and the programs of cgi-bin at /cgi-bin" if programs else ""
            return FoundTarget(
                "static:.",
                _sentence("files", "index.html", "static:.") + also,
                mount=["/cgi-bin=cgi:cgi-bin"] if programs else [],
            )
        if programs:
            return FoundTarget(
                "",
                "found programs (cgi-bin): serving cgi:cgi-bin at /cgi-bin",
                mount=["/cgi-bin=cgi:cgi-bin"],
            )
        program = next(
            (
                name
                for name in sorted(os.listdir("."))[:MAX_ENTRIES]
                if name.endswith(".cgi") and os.access(name, os.X_OK)
            ),
            "this is cgi-bin" if os.path.basename(os.getcwd()) == "cgi-bin" else "",
        )
        if program:
            return FoundTarget("cgi:.", _sentence("programs", program, "cgi:."))
        return None

    def _hint_below(self) -> str:
        """Return a hint at a folder below that contains an application."""
        likely = (MANAGE, TABLE, *(f"{name}.py" for name in USUAL_MODULES))
        for name in _visible():
            for file in likely:
                if os.path.isfile(os.path.join(name, file)):
                    return f"; there is {name}/{file}: poorhttp dev {name}"
        return ""


def _visible() -> list[str]:
    """Return the entries of the current folder in which an application may be."""
    return [
        name
        for name in sorted(os.listdir("."))[:MAX_ENTRIES]
        if not name.startswith((".", "_")) and name not in NEVER_APPLICATIONS
    ]


# Targets of Flask


def of_flask(sources: Sources, path: str) -> tuple[str, list[str]]:
    """Convert a value of `flask --app` or `FLASK_APP`; return the target and its modules' folders.

    The value is a module, a package or a file, and after a colon a name or a call with literals. A
    name may be that of a function that makes the application.

    Raises:
        UsageError: there are several applications, or none.
    """
    place, name = (*re.split(r":(?![\\/])", path, maxsplit=1), "")[:2]
    place, name = place.strip(), name.strip()
    paths: list[str] = []
    if os.path.isdir(place) and os.path.isfile(os.path.join(place, "__init__.py")):
        file = os.path.join(place, "__init__.py")
        if "/" in place:
            place = file
    elif place.endswith(".py") or "/" in place:
        file = place if os.path.isfile(place) else f"{place}.py"
        place = file
    else:
        file, root = sources.find(place)
        paths = [] if root in ("", ".") else [root]
    if not os.path.isfile(file):
        # Perhaps installed. If it is not, the loader suggests a similar name.
        return (f"{place}:{name}" if name else place), paths
    source = sources.read(file)
    if name:
        function = source.functions.get(name)
        if function is None:
            defined, original = sources.origin(source, name)
            function = defined.functions.get(original)
        makes = function is not None and not required(function)
        return f"{place}:{name}{'()' if makes else ''}", paths
    choice = choose(sources, source)
    if not choice.candidates:
        if choice.remarks:
            raise UsageError("; ".join(choice.remarks))
        return place, paths
    return f"{place}:{_only(place, choice).expression}", paths


def _flaskenv() -> str:
    """Return FLASK_APP of `.flaskenv`, which Flask reads if python-dotenv is installed."""
    try:
        lines = read_file(".flaskenv", 1 << 16).decode(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, equals, value = line.removeprefix("export ").partition("=")
        if equals and name.strip() == "FLASK_APP":
            return value.strip().strip("\"'")
    return ""
