"""Searches a folder for an application, reading source without running it.

The first of these that exists is served:

1. `manage.py` of a Django project;
2. what `FLASK_APP` names, in the environment or in `.flaskenv`;
3. `dispatch_table.py`;
4. an application in `wsgi.py`, `app.py`, `application.py` or `main.py`, or in packages of these
   names, here or in `src`;
5. what an ini file of PasteDeploy declares, first `development.ini`;
6. one in any other module or package, here or in `src`; two of them are an error;
7. template pages; files, with an `index.html`; programs, in `cgi-bin` or called `NAME.cgi`;
8. an application in a folder without `__init__.py` whose modules import each other by its name;
9. something called `application` or `app` that may be one, as far as its source says.

A value that a factory has made takes precedence over that factory, in whatever file it is: the file
may configure it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

from poorhttp.config.ini import read_file
from poorhttp.config.registry import registry
from poorhttp.errors import UsageError, visible
from poorhttp.plugins.discovery import flask_files
from poorhttp.plugins.discovery.candidates import (
    BOTTLE,
    BOTTLE_DEFAULT,
    FLASK,
    MAKERS,
    MAYBE,
    SURE,
    Candidate,
    Choice,
    choose,
    likely,
    required,
    runs_bottle,
)
from poorhttp.plugins.discovery.found_target import FoundTarget
from poorhttp.plugins.discovery.source.django import (
    MANAGE,
    SETTINGS_APPLICATION,
    VARIABLE,
    DjangoProject,
    is_project,
)
from poorhttp.plugins.discovery.source.python import MAX_SIZE, Source, Sources, file_of
from poorhttp.targets.module import SCRIPT
from poorhttp.targets.wsgi import DEFAULTS, FACTORIES

#: The file of the target `dispatch:FOLDER`.
TABLE = "dispatch_table.py"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    #: A candidate, with its file and the root folder of that.
    Seen: TypeAlias = tuple[str, str, Candidate]

#: Usual names of an application's module, the likeliest first; Flask looks at two of them.
USUAL_MODULES = ("wsgi", "app", "application", "main")

#: Names of modules and folders that are never an application.
NEVER_APPLICATIONS = {
    "build", "conftest", "dist", "doc", "docs", "fabfile", "manage", "migrations", "node_modules",
    "noxfile", "setup", "tasks", "test", "tests", "venv",
}  # fmt: skip

#: Of these, files that are an application if nothing else is: some projects call it so.
LAST_MODULES = ("build", "dist", "docs", "manage", "tasks")

#: Entries of a folder that are read.
MAX_ENTRIES = 1000

#: Files that are read if an application is in no likely place, and folders on the way to one.
MAX_FILES = 1000
MAX_LEVELS = 4

#: What a message names at most.
MOST_NAMED = 5

#: One of these is in each file that makes an application, or that is one.
WORDS = [name.encode() for name in (*MAKERS, *FACTORIES, *DEFAULTS, "environ")]

#: The ini file of PasteDeploy that is for development, by convention.
DEVELOPMENT_INI = "development.ini"

#: Header of a section of PasteDeploy that declares an application, and a key that it has.
PASTE_SECTION = re.compile(
    r"^\[(app|application|composite|composit|pipeline|filter-app)(?::(.*))?\]"
)
PASTE_KEY = re.compile(r"^(use|pipeline|paste\.[a-z_0-9]+_factory)\s*=")

#: Target that serves an application of Bottle, without running Bottle's own server.
BOTTLE_TARGET = "poorhttp.plugins.discovery.bottle_default:application"

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
        declared = paste_targets(target) if target.endswith(".ini") else []
        return _of_paste(declared) if declared else _in_source(target, target)
    is_module = bool(file_of(target)) if file else os.path.isfile(f"{target}__init__.py")
    if target and os.path.isdir(target) and not is_module:
        return _in_folder(target, debug=debug)
    if not target:
        return _in_folder(".", debug=debug)
    if target.endswith("/") and not os.path.exists(target):
        from poorhttp.targets.static import similar_folder

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
            print(f"poorhttp: {visible(remark)}", file=sys.stderr)
        if place == file:
            # The loader reports the error, with a suggestion.
            return None
        return FoundTarget(place, _sentence("a module", file, place), pythonpath=paths)
    only = _only(place, choice)
    shown = f"{place}:{only.expression}".removesuffix(":")
    return FoundTarget(
        _served(shown, only, sources.read(file)),
        _sentence(only.what, file, shown),
        pythonpath=paths,
        is_flask=only.what.endswith(FLASK),
    )


def _served(target: str, candidate: Candidate, source: Source) -> str:
    """Return the target that serves a candidate whose own target, which messages show, is given."""
    runs = candidate.what == BOTTLE and runs_bottle(source)
    return f"{BOTTLE_TARGET}({target!r})" if runs or candidate.what == BOTTLE_DEFAULT else target


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
            self._paste,
            self._other_modules,
            self._unusual_modules,
            self._pages,
            self._files,
            self._namespaces,
            self._likely_values,
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
            "module or a package, no application in an ini file of PasteDeploy, no index.html, no "
            f"cgi-bin or .cgi{remarks}; {NAME_IT}"
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
        project = DjangoProject(self.sources, manage)
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
            path, where = _flask_app()
        if not path:
            return None
        target, roots = of_flask(self.sources, path)
        return FoundTarget(
            target,
            _sentence("a Flask application", where, target),
            pythonpath=roots,
            is_flask=True,
        )

    def _table(self) -> FoundTarget | None:
        if not os.path.isfile(TABLE):
            return None
        return FoundTarget("dispatch:.", _sentence("a dispatch table", TABLE, "dispatch:."))

    def _usual_modules(self) -> FoundTarget | None:
        """Find the first of the usual modules; the message names other applications there."""
        candidates: list[Seen] = []
        for root in self.sources.roots:
            for name in USUAL_MODULES:
                file = file_of(os.path.join(root, name))
                candidates += self._candidates_in(file, root, MAYBE) if file else []
        if not candidates:
            return None
        file = candidates[0][0]
        same = [each for each in candidates if each[0] == file]
        if len(same) > 1:
            raise self._several(same)
        first = self._configured(candidates[0])
        made = first[2].factory
        others = {
            self._target(*each)[0]
            for each in candidates
            if each[2].origin != first[2].origin
            and not (each[2].is_call and each[2].factory == made)
        }
        found = self._found_target(*first)
        if others:
            found.sentence += f" (and not {', '.join(sorted(others))})"
        return found

    def _other_modules(self) -> FoundTarget | None:
        seen: list[Seen] = []
        for root in self.sources.roots:
            for files in self._modules(root):
                of_module: list[Seen] = []
                for file in files:
                    of_module += self._candidates_in(file, root, SURE)
                    if any(not each[2].is_call for each in of_module):
                        break
                seen += of_module
        return self._only_one(seen)

    def _unusual_modules(self) -> FoundTarget | None:
        """Find an application in any module, however deep in a package, and whatever its name."""
        seen = [each for root in self.sources.roots for each in self._in_all_files(root, WORDS)]
        if not seen:
            for name in LAST_MODULES:
                if os.path.isfile(f"{name}.py"):
                    seen += self._candidates_in(f"./{name}.py", ".", SURE)
        return self._only_one(seen)

    def _namespaces(self) -> FoundTarget | None:
        """Find an application in a namespace package: a folder without `__init__.py`.

        Modules of other folders import each other by names that are not known here.
        """
        seen: list[Seen] = []
        for root in self.sources.roots:
            for file in self._all_files(root, WORDS, namespaces=True):
                found = self._candidates_in(file, root, SURE)
                source = self.sources.read(file)
                top = os.path.relpath(file, root).partition("/")[0]
                imported = [(dots, module) for dots, module, _ in source.imports.values()]
                if any(
                    dots or module.partition(".")[0] == top
                    for dots, module in (*imported, *source.stars)
                ):
                    seen += found
                elif found:
                    only = found[0][2]
                    shown = f"{os.path.normpath(file)}:{only.expression}".removesuffix(":")
                    self.remarks.append(f"there is {only.what}: poorhttp dev {_quoted(shown)}")
        del self.remarks[MOST_NAMED:]
        return self._only_one(seen)

    def _likely_values(self) -> FoundTarget | None:
        """Find a value named application or app that may be an application."""
        seen: list[Seen] = []
        for root in self.sources.roots:
            for file in self._all_files(root, WORDS):
                source = self.sources.read(file)
                values = likely(self.sources, source)
                seen += [(file, root, each) for each in values]
                name = next((name for name in DEFAULTS if source.has(name)), "")
                if name and not values and not any(file in each for each in self.remarks):
                    shown = os.path.normpath(file)
                    self.remarks.append(f"{shown}: {name} does not look like a WSGI application")
        del self.remarks[MOST_NAMED:]
        return self._only_one(seen)

    def _only_one(self, seen: Sequence[Seen]) -> FoundTarget | None:
        """Return the only application of a list, in which several candidates may stand for one.

        Raises:
            UsageError: there are several.
        """
        found = [
            self._configured(each) if each[2].is_call else each for each in _without_factories(seen)
        ]
        unique: dict[tuple[str, str], Seen] = {}
        for each in found:
            unique.setdefault(each[2].origin, each)
        left = self._without_imported(list(unique.values()))
        if len(left) > 1:
            raise self._several(left)
        return self._found_target(*left[0]) if left else None

    def _several(self, seen: Sequence[Seen]) -> UsageError:
        return _ambiguous([self._target(*each)[0] for each in seen])

    def _configured(self, seen: Seen) -> Seen:
        """Return the value that the factory of a candidate has made; without one the candidate.

        Raises:
            UsageError: there are several such values.
        """
        origin = seen[2].factory
        if not seen[2].is_call or origin is None:
            return seen
        made: dict[tuple[str, str], Seen] = {}
        for root in self.sources.roots:
            for each in self._in_all_files(root, [origin[1].encode()]):
                if not each[2].is_call and each[2].factory == origin:
                    made.setdefault(each[2].origin, each)
        values = _without_factories(list(made.values()))
        for name in USUAL_MODULES:
            for each in values:
                if os.path.splitext(os.path.basename(each[0]))[0] == name:
                    return each
        if len(values) > 1:
            raise self._several(values)
        return values[0] if values else seen

    def _without_imported(self, seen: Sequence[Seen]) -> Sequence[Seen]:
        """Remove modules with routes of Bottle that another one of them imports."""
        routes = {file for file, _, each in seen if each.what == BOTTLE_DEFAULT}
        imported: set[str] = set()
        for file in routes if len(routes) > 1 else ():
            source = self.sources.read(file)
            for dots, module, name in source.imports.values():
                for whole in (module, ".".join(filter(None, [module, name]))):
                    there = self.sources.imported(source, dots, whole)
                    imported.add(os.path.normpath(there) if there else "")
            for star in source.stars:
                imported.add(os.path.normpath(self.sources.imported(source, *star) or "."))
        left = [
            each for each in seen if os.path.normpath(each[0]) not in imported & _normal(routes)
        ]
        return left or seen

    def _modules(self, root: str) -> Iterator[list[str]]:
        """Return the files of each module and package; of a package only the likely ones."""
        if root == "." and self.is_package:
            yield ["./__init__.py"]
        for name in sorted(os.listdir(root))[:MAX_ENTRIES]:
            stem, ending = os.path.splitext(name)
            if name in ("__init__.py", *USUAL_MODULES) or not _may_be_application(name):
                continue
            path = os.path.join(root, name)
            if ending in (".py", SCRIPT):
                if stem not in USUAL_MODULES or ending == SCRIPT:
                    yield [path]
            elif os.path.isfile(os.path.join(path, "__init__.py")) or os.path.isfile(
                os.path.join(path, "wsgi.py")
            ):
                likely = [os.path.join(path, f"{file}.py") for file in ("__init__", *USUAL_MODULES)]
                yield [file for file in likely if os.path.isfile(file)]

    def _in_all_files(self, root: str, words: Sequence[bytes]) -> Iterator[Seen]:
        """Yield the certain candidates in all files below a root that contain one of the words."""
        for file in self._all_files(root, words):
            yield from self._candidates_in(file, root, SURE)

    def _all_files(
        self, root: str, words: Sequence[bytes], *, namespaces: bool = False
    ) -> Iterator[str]:
        """Yield the files of all modules below a root that contain one of these words.

        With `namespaces`, also those in folders without `__init__.py`.
        """
        folders = [(root, 0)]
        count = 0
        while folders:
            folder, level = folders.pop(0)
            for name in sorted(os.listdir(folder))[:MAX_ENTRIES]:
                if not _may_be_application(name):
                    continue
                path = os.path.join(folder, name)
                if name.endswith((".py", SCRIPT)):
                    count += 1
                    if count <= MAX_FILES and _contains(path, words):
                        yield path
                elif level < MAX_LEVELS and (
                    os.path.isfile(os.path.join(path, "__init__.py"))
                    or (
                        namespaces
                        and _may_be_namespace(path)
                        and os.path.normpath(path) not in self.sources.roots
                    )
                ):
                    folders.append((path, level + 1))

    def _candidates_in(self, file: str, root: str, certainty: int) -> list[Seen]:
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
        if (self.is_package and root == ".") or not all(part.isidentifier() for part in parts):
            place, paths = file, []
        elif (
            len(parts) == 1
            and place != "wsgi"
            and (place in registry.names("targets") or place in sys.stdlib_module_names)
        ):
            # As a module, the name would mean one of the standard library, or a scheme.
            place, paths = file, []
        return f"{place}:{candidate.expression}".removesuffix(":"), paths

    def _found_target(self, file: str, root: str, candidate: Candidate) -> FoundTarget:
        shown, paths = self._target(file, root, candidate)
        where = os.path.normpath(file)
        return FoundTarget(
            _served(shown, candidate, self.sources.read(file)),
            _sentence(candidate.what, where, shown),
            pythonpath=paths,
            is_flask=candidate.what.endswith(FLASK),
        )

    def _paste(self) -> FoundTarget | None:
        """Find an ini file of PasteDeploy; several are an error, unless one is for development."""
        names = [name for name in sorted(os.listdir("."))[:MAX_ENTRIES] if name.endswith(".ini")]
        declared = {name: written for name in names if (written := paste_targets(name))}
        if DEVELOPMENT_INI in declared:
            found = _of_paste(declared.pop(DEVELOPMENT_INI))
            others = [target for targets in declared.values() for target in targets]
            if others:
                found.sentence += f" (and not {', '.join(others)})"
            return found
        for_tests = {name for name in declared if name.startswith("test")}
        kept = declared.keys() - for_tests or declared.keys()
        targets = [target for name in sorted(kept) for target in declared[name]]
        return _of_paste(targets) if targets else None

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


def _may_be_application(name: str) -> bool:
    """Whether a file or folder of a name may be, or contain, an application."""
    stem = os.path.splitext(name)[0]
    is_test = stem.startswith("test_") or stem.endswith("_test")
    return not (name.startswith((".", "__")) or is_test or stem in NEVER_APPLICATIONS) or (
        name == "__init__.py"
    )


def _may_be_namespace(folder: str) -> bool:
    """Whether a folder can be imported, is none of a virtual environment, and no link."""
    return (
        os.path.basename(folder).isidentifier()
        and os.path.isdir(folder)
        and not os.path.islink(folder)
        and not os.path.exists(os.path.join(folder, "pyvenv.cfg"))
    )


def _contains(file: str, words: Sequence[bytes]) -> bool:
    try:
        content = read_file(file, MAX_SIZE)
    except OSError:
        return False
    return any(word in content for word in words)


def _normal(files: set[str]) -> set[str]:
    return {os.path.normpath(file) for file in files}


def _without_factories(seen: Sequence[Seen]) -> list[Seen]:
    """Remove factories that have made another candidate.

    Of the values that one factory has made, those called application or app stay if there are any:
    the others may be for a queue of tasks.
    """
    made = {each.factory for _, _, each in seen if not each.is_call}
    usual = {each.factory for _, _, each in seen if each.expression in DEFAULTS}
    return [
        one
        for one in seen
        if one[2].factory is None
        or not (
            (one[2].is_call and one[2].factory in made)
            or (one[2].factory in usual and one[2].expression not in DEFAULTS)
        )
    ]


# Files of PasteDeploy


def paste_targets(file: str) -> list[str]:
    """Return the targets of the applications in an ini file: the one called main, or all.

    Empty if it is no file of PasteDeploy.
    """
    try:
        lines = read_file(file, MAX_SIZE).decode(errors="replace").splitlines()
    except OSError:
        return []
    names: list[str] = []
    name: str | None = None
    for line in lines:
        if line.startswith("["):
            header = PASTE_SECTION.match(line)
            name = (header[2] or "main").strip() if header else None
        elif name is not None and PASTE_KEY.match(line):
            names.append(name)
            name = None
    if "main" in names:
        return [f"paste:{file}"]
    return [f"paste:{file}#{name}" for name in dict.fromkeys(names)]


def _of_paste(targets: Sequence[str]) -> FoundTarget:
    """Return the only target of these.

    Raises:
        UsageError: there are several.
    """
    if len(targets) > 1:
        raise _ambiguous(list(targets))
    file = targets[0].removeprefix("paste:").partition("#")[0]
    return FoundTarget(targets[0], _sentence("an application of PasteDeploy", file, targets[0]))


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


def _flask_app() -> tuple[str, str]:
    """Return FLASK_APP of the files that Flask reads, and the name of the file; or empty texts.

    Without python-dotenv, Flask reads none. Then it is taken from `.flaskenv`.
    """
    found = flask_files.find_variables()
    path = found["variables"].get("FLASK_APP", "")
    if path:
        for file in reversed(found["paths"]):
            if os.path.isfile(file) and _assigned(file):
                return path, os.path.relpath(file)
        return path, flask_files.NAMES[0]
    unread = flask_files.NAMES[0] if flask_files.NAMES[0] in found["unread"] else ""
    return (_assigned(unread), unread) if unread else ("", "")


def _assigned(file: str) -> str:
    """Return FLASK_APP of a file; empty if it does not set it."""
    try:
        lines = read_file(file, 1 << 16).decode(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and name.strip() == "FLASK_APP":
            return value.partition(" #")[0].strip().strip("\"'")
    return ""
