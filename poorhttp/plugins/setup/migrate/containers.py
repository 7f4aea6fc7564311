"""Finds the command line of a server in a Procfile, a systemd unit, a Dockerfile or a script."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator

from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate.command_lines import ServerCommand, expand, read_shell
from poorhttp.plugins.setup.migrate.equivalents.plan import SOCKETS, Setting

_UNIT = "It stays in the unit, which then starts poorhttp serve -c FILE."
#: Specifiers of systemd.unit(5) that do not depend on the machine; those of the unit's name are
#: added. Others stay as they are.
_SPECIFIERS = {
    "t": "/run",
    "S": "/var/lib",
    "C": "/var/cache",
    "L": "/var/log",
    "E": "/etc",
    "%": "%",
}

_NOT_SERVED = "Another process than the server: it stays as it is."


def read_procfile(text: str, file: str) -> ServerCommand:
    """Read a Procfile: the process `web`, or the first that is a server."""
    found: list[tuple[str, ServerCommand]] = []
    others: list[Setting] = []
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, command_line = line.partition(":")
        place = f"{file}:{number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not colon or not re.fullmatch(r"[\w-]+", name.strip()):
            others.append(Setting("", line, place, line, note="It names no process."))
            continue
        command = read_shell(command_line, place, {})
        if command is None:
            others.append(Setting("", line, place, line, note=_NOT_SERVED))
        else:
            found.append((name.strip(), command))
    if not found:
        raise ConfigError(f"{file}: none of its processes is a known server")
    _, chosen = next((each for each in found if each[0] == "web"), found[0])
    for name, command in found:
        if command is not chosen:
            place = command.settings[0].place if command.settings else file
            why = "Another server: migrate its command line by itself."
            others.append(Setting("", name, place, f"{name}: {command.server}", note=why))
    chosen.settings += others
    chosen.at_port = True
    return chosen


def read_unit(text: str, file: str) -> ServerCommand:
    """Read a unit of systemd: its first `ExecStart` that is a server, and its surroundings."""
    environ: dict[str, str] = {}
    settings: list[Setting] = []
    starts: list[tuple[str, str]] = []
    sockets = False
    section = ""
    for number, line in _logical_lines(text):
        place = f"{file}:{number}"
        if line.startswith("["):
            section = line.strip("[] ")
            continue
        name, equals, value = (part.strip() for part in line.partition("="))
        value = _specified(value, file)
        if not equals:
            settings.append(Setting("", line, place, line, note="systemd does not read it either."))
        elif name == "ExecStart" and value:
            starts.append((value, place))
        elif name == "Environment":
            for word in _words(value):
                variable, _, its_value = word.partition("=")
                environ[variable] = its_value
            settings.append(Setting("", value, place, line, note=_of_unit(name, value)))
        elif name == "WorkingDirectory":
            settings.append(Setting("chdir", value.lstrip("-"), place, line))
        else:
            if section == "Service" or ".socket" in value:
                settings.append(Setting("", value, place, line, note=_of_unit(name, value)))
            sockets = sockets or (name in ("Requires", "Wants", "Sockets") and ".socket" in value)
    command = next(
        filter(
            None, (read_shell(value.lstrip("@-:+!"), place, environ) for value, place in starts)
        ),
        None,
    )
    if command is None:
        raise ConfigError(f"{file}: its ExecStart starts no known server")
    for setting in command.settings:
        unknown = re.search(r"%[a-zA-Z]", setting.one)
        if unknown and setting.name not in ("", "access_log_format", "log-format"):
            setting.note = f"systemd replaces {unknown[0]}: write what it stands for."
    for setting in command.settings if sockets else ():
        if setting.name in ("bind", "socket", "http-socket", "listen", "host", "port"):
            setting.note = "The socket unit says where it listens: poorhttp uses its sockets too."
    if sockets:
        why = "poorhttp uses the sockets that systemd passes, unless bind is set."
        passed = Setting(SOCKETS, "", file, "LISTEN_FDS", note=why, is_written=False)
        command.settings.append(passed)
    command.settings += settings
    return command


def _specified(text: str, file: str) -> str:
    """Replace specifiers of systemd, such as `%t`."""
    name = os.path.basename(file)
    stem = name.removesuffix(".service")
    prefix, _, _ = stem.partition("@")
    known = _SPECIFIERS | ({} if "@" in stem else {"n": name, "N": stem, "p": prefix})
    return re.sub(r"%(.)", lambda found: known.get(found[1], found[0]), text)


def _of_unit(name: str, value: str) -> str:
    if name in ("User", "Group"):
        return "It stays in the unit: the server then starts with these rights already."
    if name == "ExecReload":
        return "It stays: HUP reloads poorhttp too."
    if name == "KillSignal" and "QUIT" in value:
        return "Remove it: QUIT stops at once here, TERM stops gracefully."
    if name == "Type" and value in ("notify", "simple", "exec", ""):
        return "Type=notify fits: poorhttp tells systemd when it is ready."
    if name == "Type":
        return "Write Type=notify: poorhttp stays in the foreground, and tells when it is ready."
    if name == "Environment" and "SCRIPT_NAME=" in value:
        return "Take SCRIPT_NAME out of it: mount says where the application is."
    if name == "EnvironmentFile":
        return f"{_UNIT} If it sets SCRIPT_NAME for gunicorn, write mount = /PREFIX=TARGET here."
    if name == "PIDFile":
        return "Remove it: systemd knows the process that it has started."
    return _UNIT


def read_dockerfile(text: str, file: str) -> ServerCommand:
    """Read a Dockerfile: its last ENTRYPOINT and CMD, and its variables."""
    environ: dict[str, str] = {}
    parts: dict[str, tuple[list[str] | str, str]] = {}
    for number, line in _logical_lines(text, comments="#"):
        name, _, value = line.partition(" ")
        place = f"{file}:{number}"
        if name.upper() == "ENV":
            for word in _words(value) if "=" in value else [value.strip().replace(" ", "=", 1)]:
                variable, _, its_value = word.partition("=")
                environ[variable] = its_value
        elif name.upper() in ("CMD", "ENTRYPOINT"):
            parts[name.upper()] = (_docker_words(value.strip()), place)
    parts = {name: parts[name] for name in ("ENTRYPOINT", "CMD") if name in parts}
    if not parts:
        raise ConfigError(f"{file}: has neither CMD nor ENTRYPOINT")
    place = next(reversed(parts.values()))[1]
    line = " ".join(
        words if isinstance(words, str) else _joined(words) for words, _ in parts.values()
    )
    command = read_shell(line, place, environ)
    if command is None:
        raise ConfigError(f"{place}: starts no known server")
    return command


def _joined(words: list[str]) -> str:
    """Return words as a line; variables stay what they are."""
    return " ".join(
        word if re.fullmatch(r"[\w$={}:./*,@+-]+", word) else shlex.quote(word) for word in words
    )


def _docker_words(value: str) -> list[str] | str:
    if value.startswith("["):
        try:
            words = json.loads(value)
        except ValueError:
            return value
        if isinstance(words, list):
            return [str(word) for word in words]
    return value


def read_script(text: str, file: str) -> ServerCommand:
    """Read a shell script: its first line that starts a server."""
    environ: dict[str, str] = {}
    for number, line in _logical_lines(text, comments="#"):
        assignment = re.fullmatch(r"(?:export\s+)?(\w+)=(\S*)", line.strip())
        if assignment:
            environ[assignment[1]] = expand(assignment[2].strip("'\""), environ)
            continue
        try:
            command = read_shell(line, f"{file}:{number}", environ)
        except ConfigError:
            continue
        if command is not None:
            return command
    raise ConfigError(f"{file}: no line of it starts a server that is known")


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def _logical_lines(text: str, comments: str = "#;") -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, where a backslash at the end continues one."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line[:1] in comments and line:
            continue
        if not pending:
            first = number
        if line.endswith("\\"):
            pending += line[:-1].rstrip() + " "
            continue
        whole, pending = pending + line, ""
        if whole.strip():
            yield first, whole.strip()
    if pending.strip():
        yield first, pending.strip()


def is_unit(file: str, text: str) -> bool:
    """Tell whether a file is a unit of systemd."""
    return (
        file.endswith(".service") or re.search(r"^[ \t]*ExecStart[ \t]*=", text, re.M) is not None
    )


def is_dockerfile(file: str, text: str) -> bool:
    """Tell whether a file is a Dockerfile."""
    name = os.path.basename(file).lower()
    named = name.startswith(("dockerfile", "containerfile")) or name.endswith(".dockerfile")
    return named or re.search(r"^[ \t]*FROM[ \t]+\S", text, re.M) is not None
