"""`poorhttp migrate`: tells which server a configuration is for, and has it translated."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate import containers, gunicorn_file
from poorhttp.plugins.setup.migrate.command_lines import (
    PROGRAMS,
    SHELLS,
    ServerCommand,
    read_shell,
    read_words,
)
from poorhttp.plugins.setup.migrate.environment import public
from poorhttp.plugins.setup.migrate.equivalents import gunicorn, more_servers, uwsgi
from poorhttp.plugins.setup.migrate.equivalents.plan import Plan, Setting
from poorhttp.plugins.setup.migrate.source_files import SourceFiles
from poorhttp.plugins.setup.migrate.uwsgi_application import note_module
from poorhttp.plugins.setup.migrate.uwsgi_file import UwsgiFile

PLANS: dict[str, Callable[[list[Setting]], Plan]] = {
    "gunicorn": gunicorn.plan_for,
    "uwsgi": uwsgi.plan_for,
    "waitress": more_servers.waitress,
    "uvicorn": more_servers.uvicorn,
    "granian": more_servers.granian,
    "hypercorn": more_servers.hypercorn,
    "daphne": more_servers.daphne,
}

#: Where gunicorn looks for a configuration that is not named.
GUNICORN_DEFAULT = "gunicorn.conf.py"


def read(
    words: Sequence[str], environ: Mapping[str, str], files: SourceFiles | None = None
) -> Plan:
    """Return the plan for a file, or for the words of a command line.

    Args:
        words: the file, or the words.
        environ: variables; those that may be secret are not used.
        files: reads files; as root, it has to be one that follows no links of others.

    Raises:
        ConfigError: it cannot be read, or is nothing that is known.
    """
    files = files or SourceFiles()
    environ = public(environ)
    # One word is a file, unless it is the name of a server alone.
    if len(words) == 1 and (os.path.exists(words[0]) or words[0] not in PROGRAMS):
        return _read_file(words[0], environ, files)
    place = "command line"
    if os.path.basename(words[0]) in SHELLS:
        line = read_shell(shlex.join(words), place, environ)
        if line is not None:
            return _follow(line, ".", environ, files)
    return _follow(read_words(words, place, environ), ".", environ, files)


def _read_file(file: str, environ: Mapping[str, str], files: SourceFiles) -> Plan:
    text = files.read(file)
    name = os.path.basename(file)
    folder = os.path.dirname(file) or "."
    if name.endswith(".py"):
        found = gunicorn_file.read(text, file, environ, files)
        plan = gunicorn.plan_for(found.settings)
        plan.warnings += found.warnings
        return plan
    if containers.is_unit(file, text):
        command = containers.read_unit(text, file)
        started = [setting.one for setting in command.settings if setting.name == "chdir"]
        return _follow(command, started[-1] if started else "/", environ, files, file)
    if name.endswith((".yaml", ".yml", ".xml", ".json")) or re.search(r"^\[uwsgi\]", text, re.M):
        source = UwsgiFile(environ, files)
        source.read(file, text)
        settings = source.finish()
        note_module(settings, folder, files, file)
        return uwsgi.plan_for(settings)
    if re.search(r"^\[server:", text, re.M):
        raise ConfigError(
            f"{file}: is a PasteDeploy file, which needs no other: poorhttp serve paste:{file}, or "
            "use = egg:poorhttpd#main in its section [server:main] (docs/guides/pyramid.md)"
        )
    if re.search(r"^\[http\]", text, re.M):
        raise ConfigError(f"{file}: is a file of poorhttp already; poorhttp check -c {file}")
    if name.startswith("Procfile"):
        return _follow(containers.read_procfile(text, file), folder, environ, files, file)
    if containers.is_dockerfile(file, text):
        return _follow(containers.read_dockerfile(text, file), folder, environ, files, file)
    if name.endswith(".sh") or text.startswith("#!"):
        return _follow(containers.read_script(text, file), folder, environ, files, file)
    if re.search(r"^\w+:\s", text, re.M):
        return _follow(containers.read_procfile(text, file), folder, environ, files, file)
    raise ConfigError(
        f"{file}: is not a known kind of file: gunicorn.conf.py, uwsgi.ini (or .yaml, .xml, "
        ".json), a Procfile, a systemd unit, a Dockerfile or a shell script"
    )


def _follow(
    command: ServerCommand,
    folder: str,
    environ: Mapping[str, str],
    files: SourceFiles,
    file: str = "",
) -> Plan:
    """Read the configuration files that a command line names, and return the plan for both.

    Args:
        command: the command line.
        folder: where it is started.
        environ: variables there.
        files: reads them.
        file: the file with the command line, if it is in one.
    """
    settings: list[Setting] = []
    warnings: list[str] = []
    environ = {**environ, **command.environment}
    if command.server == "uwsgi":
        source = UwsgiFile(environ, files)
        for each in command.files:
            name, _, section = each.partition(":")
            try:
                path = _beside(name, folder)
                source.read(path, files.read(path, file), section)
            except ConfigError as error:
                _unread(command, each, error)
        settings = [*source.finish(), *settings]
    elif command.server == "gunicorn":
        default = os.path.join(folder, GUNICORN_DEFAULT)
        named = command.files[-1:] or ([default] if os.path.isfile(default) else [])
        for each in named:
            name = each.removeprefix("file:")
            try:
                path = name if name == default else _beside(name, folder)
                text = files.read(path, file)
                found = gunicorn_file.read(text, path, environ, files)
                settings += found.settings
                warnings += found.warnings
            except ConfigError as error:
                if isinstance(error, gunicorn_file.NotRunByRoot):
                    warnings.append(str(error))
                if not _unread(command, each, error):
                    settings.append(Setting("", each, each, each, note=f"Not read: {error}."))
        given = {setting.name: setting for setting in command.settings if setting.name}
        for setting in settings:
            if setting.name in given and not setting.note:
                setting.note = f"{given[setting.name].place} sets it too, which takes precedence."
        if command.at_port and not any(
            each.name == "bind" for each in [*settings, *given.values()]
        ):
            text = "gunicorn listens there where PORT is set"
            port = Setting("bind", "0.0.0.0:$PORT", "PORT", text, is_written=False)
            settings.append(port)
    if command.server == "uwsgi":
        note_module([*settings, *command.settings], folder, files, file)
    plan = PLANS[command.server]([*settings, *command.settings])
    plan.warnings += warnings
    return plan


def _beside(name: str, folder: str) -> str:
    """Return the path of a file that a command names: from here, or beside its own file."""
    for path in (name, os.path.join(folder, name), os.path.join(folder, os.path.basename(name))):
        if os.path.isfile(path):
            return path
    return name


def _unread(command: ServerCommand, name: str, error: ConfigError) -> bool:
    """Explain that a file could not be read, at the setting that names it; tell if there is one."""
    explained = False
    for setting in command.settings:
        if setting.one == name:
            setting.note = f"Not read: {error}. Migrate it by itself, and join the two."
            explained = True
    return explained
