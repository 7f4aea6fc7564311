"""Reads configurations of uWSGI: ini, YAML, XML or JSON, with placeholders and conditions."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping

from poorhttp.config.resources import usable_cpus
from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate.equivalents.plan import MOST_SETTINGS, Setting
from poorhttp.plugins.setup.migrate.source_files import SourceFiles

#: Files that include each other, at most.
DEEPEST = 8

#: Longest value; after its placeholders were replaced, the rest is left out.
LONGEST = 10_000

#: Most repetitions of a `for`.
MOST = 1000

_PLACEHOLDER = re.compile(r"%\(([^)]{0,200})\)|%(.)")
_VARIABLE = re.compile(r"\$\(([^)]{0,200})\)")


class UwsgiFile:
    """Reads files of uWSGI one after the other, as uWSGI does.

    Attributes:
        settings: what was read, in its order.
    """

    def __init__(self, environ: Mapping[str, str], files: SourceFiles) -> None:
        self.settings: list[Setting] = []
        self._files = files
        self._environ = environ
        self._values: dict[str, str] = {}
        self._used: set[str] = set()

    def read(self, file: str, text: str, section: str = "", depth: int = 0) -> None:
        """Read a file; `section` is the one to read, by default `uwsgi`.

        Raises:
            ConfigError: it has no such section, or is not what its name says.
        """
        kind = os.path.splitext(file)[1].lower()
        if kind in (".yaml", ".yml"):
            lines = _yaml(text, section or "uwsgi")
        elif kind == ".xml":
            lines = _xml(text, file)
        elif kind in (".json", ".js"):
            lines = _json(text, file)
        else:
            lines = _ini(text, section or "uwsgi")
        if not lines:
            raise ConfigError(f"{file}: has nothing for uWSGI, no section [{section or 'uwsgi'}]")
        self._follow(lines, file, text, depth)

    def finish(self) -> list[Setting]:
        """Return the settings; those that others use as placeholders have a note about it."""
        for setting in self.settings:
            if setting.name in self._used and not setting.note:
                setting.used_as_placeholder = True
        return self.settings

    def _follow(self, lines: list[tuple[int, str, str]], file: str, text: str, depth: int) -> None:
        """Add the settings of lines, with their conditions, repetitions and included files."""
        inside: list[tuple[bool, str]] = []
        repeated: tuple[list[str], list[tuple[int, str, str]]] | None = None
        for number, name, raw in lines:
            place = f"{file}:{number}"
            if len(self.settings) >= MOST_SETTINGS:
                raise ConfigError(f"{place}: is beyond {MOST_SETTINGS} settings, which is too many")
            if len(raw) > LONGEST:
                raise ConfigError(f"{place}: a value has more than {LONGEST} characters")
            written = f"{name} = {raw}" if raw else name
            if name in ("endfor", "end-for") and repeated is not None:
                words, body = repeated
                repeated = None
                for word in words[:MOST]:
                    self._values["_"] = word
                    self._follow(body, file, text, depth)
                continue
            if repeated is not None:
                repeated[1].append((number, name, raw))
                continue
            if name.startswith("if-"):
                value = self._expand(raw, file)
                holds = self._holds(name, value) if all(on for on, _ in inside) else False
                inside.append((holds, f"{name} = {raw}"))
                continue
            if name in ("endif", "end-if"):
                inside = inside[:-1]
                continue
            if not all(on for on, _ in inside):
                condition = next(text for on, text in inside if not on)
                note = f"The condition {condition} did not hold here."
                self.settings.append(Setting(name, raw, place, written, note=note))
                continue
            value = self._expand(raw, file)
            if name in ("for", "for-glob"):
                repeated = (value.split(), [])
            elif name in ("ini", "include", "inherit", "yaml", "yml", "xml", "json"):
                self._include(Setting(name, value, place, written), file, text, depth)
            elif name in ("set-placeholder", "set-ph", "set"):
                key, _, its_value = value.partition("=")
                self._values[key] = its_value
                note = "It was used when this file was written."
                self.settings.append(Setting(name, value, place, written, note=note))
            else:
                self._values[name] = value
                self.settings.append(Setting(name, value, place, written))

    def _include(self, setting: Setting, file: str, text: str, depth: int) -> None:
        name, colon, section = setting.one.partition(":")
        setting.note = "It was read too."
        self.settings.append(setting)
        if depth >= DEEPEST:
            setting.note = "Too many files include each other: it was not read."
            return
        try:
            if name in ("", os.path.basename(file), os.path.abspath(file)) and colon:
                self.read(file, text, section, depth + 1)
            else:
                path = os.path.join(os.path.dirname(file), name)
                self.read(path, self._files.read(path, file), section, depth + 1)
        except ConfigError as error:
            setting.note = f"It was not read: {error}. Migrate it by itself."

    def _expand(self, text: str, file: str) -> str:
        """Replace `%(name)`, `%d` and the like, and `$(VARIABLE)`."""
        path = os.path.abspath(file)
        folder, name = os.path.split(path)
        stem, extension = os.path.splitext(name)
        letters = {
            "o": file,
            "p": path,
            "P": path,
            "s": name,
            "S": name,
            "n": stem,
            "N": stem,
            "d": f"{folder.rstrip('/')}/",
            "D": f"{folder.rstrip('/')}/",
            "%": "%",
            "e": extension[1:],
            "E": extension[1:],
            "c": os.path.basename(folder),
            **{str(index): part for index, part in enumerate(folder.split("/")[1:11])},
            "k": str(usable_cpus()),
            "h": os.uname().nodename,
        }

        def replace(found: re.Match[str]) -> str:
            if found[1] is None:
                return letters.get(found[2], found[0])
            if found[1] not in self._values:
                return found[0]
            self._used.add(found[1])
            return self._values[found[1]]

        text = _VARIABLE.sub(lambda found: self._environ.get(found[1], found[0]), text)
        return _PLACEHOLDER.sub(replace, text)[:LONGEST]

    def _holds(self, name: str, value: str) -> bool:
        """Tell whether a condition holds here; `%(_)` is then its value."""
        negative = name.startswith("if-not-")
        kind = name.removeprefix("if-not-").removeprefix("if-")
        key, equals, wanted = value.partition("=")
        if kind == "env":
            found = self._environ.get(key)
            holds = found is not None and (not equals or found == wanted)
            self._values["_"] = found or ""
        elif kind in ("exists", "file", "dir"):
            tests = {"exists": os.path.exists, "file": os.path.isfile, "dir": os.path.isdir}
            holds = tests[kind](value)
            self._values["_"] = value
        elif kind in ("opt", "defined-opt"):
            holds = key in self._values and (not equals or self._values[key] == wanted)
            self._values["_"] = self._values.get(key, "")
        elif kind in ("hostname", "host"):
            holds = value == os.uname().nodename
        else:
            holds = False
        return holds != negative


def _ini(text: str, section: str) -> list[tuple[int, str, str]]:
    """Return number, name and value of the lines of a section; comments have their own lines."""
    found: list[tuple[int, str, str]] = []
    current = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if line[0] == "[":
            current = line.strip("[] ")
        elif current == section:
            name, _, value = line.partition("=")
            found.append((number, name.strip(), value.strip()))
    return found


def _yaml(text: str, section: str) -> list[tuple[int, str, str]]:
    """Return the same of YAML as uWSGI's own reader has it: a level of `name: value`, and lists."""
    found: list[tuple[int, str, str]] = []
    current, key = "", ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] == "#" or line in ("---", "..."):
            continue
        if raw[0] not in " \t-" and line.endswith(":"):
            current = line[:-1].strip("'\" ")
            continue
        if current != section:
            continue
        if line.startswith("- ") or line == "-":
            item = line[1:].strip()
            if key == "" and ":" in item:
                name, _, value = item.partition(":")
                found.append((number, name.strip(), _plain(value)))
            else:
                found.append((number, key, _plain(item)))
            continue
        name, colon, value = line.partition(":")
        key = name.strip("'\" ")
        if not colon:
            found.append((number, line, ""))
        elif value.strip():
            found.append((number, key, _plain(value)))
            key = key if value.strip() == "" else ""
    return found


def _plain(text: str) -> str:
    """Return a scalar of YAML without quotation marks and comment."""
    text = text.strip()
    if text[:1] in ("'", '"') and text.find(text[0], 1) > 0:
        return text[1 : text.find(text[0], 1)]
    return re.split(r"\s#", text, maxsplit=1)[0].strip()


def _xml(text: str, file: str) -> list[tuple[int, str, str]]:
    """Return the same of XML: an element for each setting below the root."""
    from xml.parsers import expat

    found: list[tuple[int, str, str]] = []
    open_names: list[str] = []
    parts: list[str] = []

    def start(name: str, _: object) -> None:
        open_names.append(name)
        parts.clear()

    def end(name: str) -> None:
        open_names.pop()
        if open_names:
            found.append((parser.CurrentLineNumber, name, "".join(parts).strip()))
        parts.clear()

    def refuse(*_: object) -> None:
        raise ConfigError(f"{file}: declares entities, which are not read")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = parts.append
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise ConfigError(f"{file}:{error.lineno}: is not XML: {error}") from None
    return found


def _json(text: str, file: str) -> list[tuple[int, str, str]]:
    """Return the same of JSON: {"uwsgi": {...}}."""
    try:
        loaded = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: is not JSON: {error}") from None
    options = loaded.get("uwsgi", {}) if isinstance(loaded, dict) else {}
    found: list[tuple[int, str, str]] = []
    for name, value in options.items() if isinstance(options, dict) else ():
        if len(found) > MOST_SETTINGS:
            raise ConfigError(f"{file}: has more than {MOST_SETTINGS} settings")
        line = text.count("\n", 0, max(0, text.find(f'"{name}"'))) + 1
        for item in value if isinstance(value, list) else [value]:
            word = str(item).lower() if isinstance(item, bool) else str(item)
            found.append((line, name, word))
    return found
