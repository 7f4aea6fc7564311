"""Which file of a Rust crate depends on which: paths, child paths, methods of a type elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

#: Comments, strings and characters, in which no path is looked for.
NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|r#"(?:.*?)"#|b?"(?:\\.|[^"\\])*"|b?\'(?:\\.[^\']*|[^\'\\])\'', re.DOTALL
)
TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod \w+ \{.*?^\}", re.MULTILINE | re.DOTALL)
USE = re.compile(r"^[ \t]*(pub(?:\([\w ]+\))? )?use ([^;]+);", re.MULTILINE)
CHILD = re.compile(r"^(?:pub(?:\([\w ]+\))? )?mod (\w+);", re.MULTILINE)
PATH = re.compile(r"(?<![\w:])(\w+)((?:::\w+)+)")
TYPE = re.compile(r"^[ \t]*(?:pub(?:\([\w ]+\))? )?(?:struct|enum|union) (\w+)", re.MULTILINE)
ITEM = re.compile(r"\b(?:fn|struct|enum|union|trait|type|const|static|mod|macro_rules!) (\w+)")
IMPL = re.compile(r"^[ \t]*(?:unsafe )?impl\b([^{;]*)\{", re.MULTILINE)


class Source:
    """One file: its code, its place among the modules, and the names that it imports.

    Attributes:
        module: the path of the module from the root of the crate.
        code: the text without comments, strings and tests.
        items: the names of what it defines.
        body: the same without `use` and `mod`.
        names: paths from the root of the crate by the name that they have in this file.
        public: the names that other files may take from here although they stand elsewhere.
    """

    def __init__(self, module: list[str], text: str) -> None:
        self.module = module
        self.code = NO_CODE.sub('""', TESTS.sub("", text))
        self.items = set(ITEM.findall(self.code))
        self.body = CHILD.sub("", USE.sub("", self.code))
        self.names = {child: [*module, child] for child in CHILD.findall(self.code)}
        self.public: dict[str, list[str]] = {}
        self.globs: list[list[str]] = []
        for public, tree in USE.findall(self.code):
            for parts, name in branches(tree):
                path = self.absolute(parts)
                if path is None:
                    continue
                if name == "*":
                    self.globs.append(path)
                    continue
                self.names[name] = path
                if public:
                    self.public[name] = path

    def absolute(self, parts: list[str]) -> list[str] | None:
        """A path from the root of the crate; `None`: it leads to another crate or a local item."""
        head, *rest = parts
        if head == "crate":
            return rest
        if head == "self":
            return [*self.module, *rest]
        if head == "super":
            above = self.module[:-1]
            while rest[:1] == ["super"]:
                above, rest = above[:-1], rest[1:]
            return [*above, *rest]
        return [*self.names[head], *rest] if head in self.names else None

    def paths(self) -> Iterator[list[str]]:
        """The paths to items of the crate that the file uses.

        What it only passes on by `pub use` is not used.
        """
        for name, path in self.names.items():
            imported = path != [*self.module, name]
            if imported and (name not in self.public or re.search(rf"\b{name}\b", self.body)):
                yield path
        yield from self.globs
        for head, rest in PATH.findall(self.body):
            used = self.absolute([head, *rest.split("::")[1:]])
            if used is not None:
                yield used

    def types(self) -> set[str]:
        return set(TYPE.findall(self.code))

    def extended(self) -> set[str]:
        """The types to which the file gives methods, as it names them: `impl Connection`."""
        found = set()
        for head in IMPL.findall(self.code):
            bare = without_brackets(head).partition(" where")[0].strip()
            if re.fullmatch(r"[\w:]+", bare):
                found.add(bare)
        return found


class Crate:
    """The files of a crate, by their paths without suffix; `mod.rs` by its folder."""

    def __init__(self, src: Path) -> None:
        self.sources: dict[str, Source] = {}
        self._paths: dict[str, set[str]] = {}
        for path in sorted(src.rglob("*.rs")):
            if "tests" in path.parts or "bin" in path.relative_to(src).parts:
                continue
            name = path.relative_to(src).with_suffix("").as_posix().removesuffix("/mod")
            name = "" if name == "lib" else name
            module = name.split("/") if name else []
            self.sources[name] = Source(module, path.read_text(encoding="utf-8"))

    def file_of(self, path: list[str], depth: int = 0) -> str:
        """The file that defines the item of a path, also if others pass it on by `pub use`."""
        end = len(path)
        while "/".join(path[:end]) not in self.sources:
            end -= 1
            if end < 0:
                return ""
        name = "/".join(path[:end])
        source = self.sources[name]
        if end == len(path) or depth > 8:
            return name
        item = path[end]
        if item in source.public:
            return self.file_of([*source.public[item], *path[end + 1 :]], depth + 1)
        if item not in source.items:
            for glob in source.globs:
                found = self.file_of([*glob, *path[end:]], depth + 1)
                if item in self.sources[found].items:
                    return found
        return name

    def paths(self) -> dict[str, set[str]]:
        """Which file names items of which. The root of the crate passes all on, and is left out."""
        if not self._paths:
            self._paths = {
                name: {self.file_of(path) for path in source.paths()} - {"", name}
                for name, source in self.sources.items()
                if name
            }
        return {name: set(files) for name, files in self._paths.items()}

    def graph(self) -> dict[str, set[str]]:
        """Which file depends on which, by paths and by methods.

        A type whose methods are in several files is one thing: the file that defines it depends on
        those with its methods, as they do on it.
        """
        graph = self.paths()
        for (home, _), files in self.spread_types().items():
            for name in files:
                graph[home].add(name)
                graph[name].add(home)
        return graph

    def spread_types(self) -> dict[tuple[str, str], set[str]]:
        """Types with methods in other files than their own, by file and name, and these files."""
        found: dict[tuple[str, str], set[str]] = {}
        for name, source in self.sources.items():
            for written in source.extended():
                path = source.absolute(written.split("::"))
                home = self.file_of(path) if path is not None else name
                kind = (path or [written])[-1]
                if home != name and kind in self.sources[home].types():
                    found.setdefault((home, kind), set()).add(name)
        return found


def branches(tree: str, above: tuple[str, ...] = ()) -> Iterator[tuple[list[str], str]]:
    """The paths of a `use`, each with the name that it gets: `a::{b, c::d as e}` has two."""
    for part in split(tree):
        head, brace, inner = part.partition("{")
        path, _, name = head.partition(" as ")
        parts = [*above, *(each for each in re.findall(r"\w+|\*", path))]
        if brace:
            yield from branches(inner.rpartition("}")[0], tuple(parts))
        elif parts[-1] == "*":
            yield parts[:-1], "*"
        else:
            if parts[-1] == "self" and len(parts) > 1:
                parts.pop()
            yield parts, name.strip() or parts[-1]


def split(text: str) -> Iterator[str]:
    """The parts of a list between commas that are in no braces."""
    depth = start = 0
    for place, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and not depth:
            yield text[start:place]
            start = place + 1
    if text[start:].strip():
        yield text[start:]


def without_brackets(text: str) -> str:
    """A type without its parameters, `<T: Into<U>> Name<T>`: `Name`."""
    depth, found = 0, ""
    for place, letter in enumerate(text):
        if letter == ">" and text[place - 1] != "-":
            depth -= 1
        elif letter == "<":
            depth += 1
        elif not depth:
            found += letter
    return found
