"""Combines settings from the command line, the environment and a file, in this precedence."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from poorhttp.config.address import is_raw_tcp
from poorhttp.config.options.hooks import PREFIX as HOOK_PREFIX
from poorhttp.config.registry import STARTED_BY_ROOT
from poorhttp.config.settings import (
    OPTIONS,
    PLATFORM_PORT,
    Settings,
    in_file,
    is_option,
    option_suggestion,
)
from poorhttp.config.suggestions import nearest
from poorhttp.errors import ConfigError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config import ini

#: The sections of an ini file: common options, hooks, and the prefixes of sections for a service or
#: hosts.
SECTION = "http"
HOOKS = "hooks"
SERVICE = "service:"
HOST = "host:"

_SECTIONS = (
    f"options belong in [{SECTION}], those of one service in [{SERVICE}NAME], those of a host in "
    f"[{HOST}NAME], hooks in [{HOOKS}]"
)

#: Files that a command without a file and a target looks for in the current folder: those that
#: `poorhttp init` writes.
FOUND = ("poorhttp.ini", ".deploy/poorhttp.ini")

#: Options of content: a host that sets one of them inherits none of them.
CONTENT = ("target", "mount", "static")

PREFIX = "POORHTTP_"

#: Variables by which platforms name the number of workers, as gunicorn and uvicorn read it.
PLATFORM_WORKERS = "WEB_CONCURRENCY"


#: Changes to a folder; the command replaces it by a function that checks links.
enter: Callable[[str], None] = os.chdir


def other_author(path: str) -> str:
    """Return why somebody else than root may decide what a file says; empty if nobody may.

    The command replaces it: `process`, which looks, is above this room, and a program knows its
    files.
    """
    return ""


def load(
    command_line: Mapping[str, Sequence[str]],
    environ: Mapping[str, str] | None = None,
    file: str | None = None,
    defaults: Mapping[str, str] | None = None,
    flags: Mapping[str, Sequence[str]] | None = None,
    opener: ini.Opener | None = None,
) -> list[Settings]:
    """Return the settings of each service in the file; without service sections, of one service.

    A source that sets a repeatable option replaces all values of the sources below. Sections
    `[service:NAME]` inherit from `[http]` and `[hooks]`.

    Sections `[host:NAME]` are for all services but those of raw TCP, and inherit their options. But
    a section that sets an option of `CONTENT` inherits none of these, not even from the command
    line and the environment.

    Args:
        command_line: the texts of each option, by its name.
        environ: variables, of which those with the prefix `POORHTTP_` are used, and those of
            `_apply_platform`; by default those of the process.
        file: path of an ini file.
        defaults: defaults of the command that differ from those of the options, by their names.
        flags: what was written on the command line for each of its texts, if it was another name
            of the option.
        opener: opens the file; by default as `open` does.

    Raises:
        UsageError: a value on the command line is wrong.
        ConfigError: the file or a variable is wrong, even if another source overrides the value.
    """
    sections = [] if file is None else _sections(file, opener)
    if file is not None and STARTED_BY_ROOT:
        _check_author(file, sections)
    common = [section for name in (SECTION, HOOKS) for section in sections if section.name == name]
    named = [section for section in sections if section.name.startswith(SERVICE)]
    hosts = [section for section in sections if section.name.startswith(HOST)]

    def read_sources(sources: Sequence[ini.Section]) -> Settings:
        settings = Settings(**(defaults or {}))
        for source in sources:
            _section(settings, source, str(file))
            if source.name.startswith(SERVICE):
                settings.service = source.name.removeprefix(SERVICE)
        variables = os.environ if environ is None else environ
        _environ(settings, variables)
        for name, texts in command_line.items():
            own = OPTIONS[name].flag or OPTIONS[name].metavar
            places = (flags or {}).get(name, [own] * len(texts))
            settings.set(name, list(zip(places, texts, strict=True)), UsageError)
        _apply_platform(settings, variables)
        return settings

    services = []
    for section in named or (None,):
        sources = [*common, section] if section else common
        settings = read_sources(sources)
        for host in hosts:
            hosted = read_sources([*sources, host])
            _drop_inherited_content(hosted, host, str(file))
            if not is_raw_tcp(settings.target):
                for name in _host_names(host, str(file)):
                    settings.hosts[name] = hosted
        services.append(settings)
    _refuse_shared_addresses(services)
    return services


def found() -> str:
    """Return the file of `FOUND` that is in the current folder; empty: there is none.

    Also a link without a target, so that its mistake is named.
    """
    return next(filter(os.path.lexists, FOUND), "")


def folder() -> str:
    """Return the current directory, with symbolic links as in $PWD: they may change later.

    Raises:
        ConfigError: the folder was removed.
    """
    name = os.environ.get("PWD", "")
    try:
        if os.path.isabs(name) and os.path.isdir(name) and os.path.samefile(name, "."):
            return name
        return os.getcwd()
    except OSError as error:
        raise ConfigError(
            f"the current folder was removed: {error.strerror}; start the server in another one"
        ) from error


def return_to(folder: str) -> None:
    """Change to the folder in which the server was started; a ConfigError if it was removed."""
    try:
        enter(folder)
    except OSError as error:
        raise ConfigError(
            f"{folder}, the folder in which the server was started: {error.strerror}"
        ) from error


def change_folder(settings: Settings) -> None:
    """Apply `chdir` to this process; a ConfigError if the folder cannot be entered."""
    try:
        enter(settings.chdir)
    except OSError as error:
        raise ConfigError(
            f'{settings.origin("chdir")}: "{settings.chdir}": {error.strerror}'
        ) from error


def extend_path(settings: Settings) -> None:
    """Apply `pythonpath` before the target is loaded; a ConfigError if a folder does not exist."""
    for folder in reversed(settings.pythonpath):
        if not os.path.isdir(folder):
            raise ConfigError(
                f'{settings.origin("pythonpath")}: "{folder}" is not a folder; relative paths '
                f"count from {os.getcwd()}"
            )
        sys.path.insert(0, os.path.abspath(folder))


def set_variables(settings: Settings) -> None:
    """Apply `env` to this process, before the target is loaded."""
    for name, value in settings.env:
        os.environ[name] = value
    if any(name == "TZ" for name, _ in settings.env):
        import time

        time.tzset()


def _apply_platform(settings: Settings, environ: Mapping[str, str]) -> None:
    """Apply the variables by which platforms, such as Heroku, set options that nothing else sets.

    With some options the server stays on this machine: it can have a debugger.
    """
    has_workers = settings.supervisor and not settings.is_set("workers")
    if has_workers and environ.get(PLATFORM_WORKERS):
        settings.set("workers", [(PLATFORM_WORKERS, environ[PLATFORM_WORKERS])])
    if not settings.is_set("bind") and environ.get(PLATFORM_PORT):
        is_local = any(each.local and settings.is_enabled(each.name) for each in OPTIONS.values())
        host = "127.0.0.1" if is_local else "0.0.0.0"
        settings.set("bind", [(PLATFORM_PORT, f"{host}:{environ[PLATFORM_PORT]}")])


def _environ(settings: Settings, environ: Mapping[str, str]) -> None:
    # First: others may be options of these plug-ins.
    for variable in sorted(environ, key=lambda name: name != "POORHTTP_PLUGINS"):
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or (name not in OPTIONS and _is_service_link(variable)):
            continue
        if not is_option(name):
            spellings = {each: option.variable for each, option in OPTIONS.items()}
            meant = option_suggestion(name, spellings)
            raise ConfigError(f'unknown environment variable "{variable}"{meant}')
        texts = environ[variable].strip().split("\n")
        settings.set(name, [(variable, text.strip()) for text in texts])


def _is_service_link(variable: str) -> bool:
    """Tell whether a variable has a name that Kubernetes sets for a service.

    It does so in every pod of a namespace; a service may be named `poorhttp` or `poorhttp-admin`.
    """
    if (
        variable.endswith(("_SERVICE_HOST", "_SERVICE_PORT", "_PORT"))
        or "_SERVICE_PORT_" in variable
    ):
        return True
    # NAME_PORT_8080_TCP, and the same with _ADDR, _PORT and _PROTO.
    words = variable.removesuffix("_ADDR").removesuffix("_PROTO").split("_")
    return words[-3:-2] == ["PORT"] and words[-2].isdigit() and words[-1] in ("TCP", "UDP", "SCTP")


def _sections(file: str, opener: ini.Opener | None) -> list[ini.Section]:
    from poorhttp.config import ini  # takes memory, which a server without a file need not

    sections = ini.read(file, opener)
    hosts: dict[str, int] = {}
    for section in sections:
        where = f"{file}:{section.line}"
        if section.name.startswith(HOST):
            for host in _host_names(section, file):
                first = hosts.setdefault(host, section.line)
                if first != section.line:
                    raise ConfigError(
                        f"{where}: host {host} has a section already, on line {first}"
                    )
        elif section.name.startswith(SERVICE):
            name = section.name.removeprefix(SERVICE)
            if not (name and all(letter.isalnum() or letter in "-_." for letter in name)):
                raise ConfigError(
                    f'{where}: "{name}" is not a valid service name; write letters, digits and any '
                    "of -_."
                )
        elif section.name not in (SECTION, HOOKS):
            kind, colon, rest = section.name.partition(":")
            near = nearest(kind + colon, [SERVICE, HOST] if colon else [SECTION, HOOKS])
            meant = f"did you mean [{near}{rest}]?" if near else _SECTIONS
            raise ConfigError(f"{where}: unknown section [{section.name}]; {meant}")
    if not sections:
        raise ConfigError(f"{file}: has no section [{SECTION}]; write it above the options")
    return sections


def _section(settings: Settings, section: ini.Section, file: str) -> None:
    options = in_file()
    if section.name == HOOKS:
        hooks = [name for name in OPTIONS if name.startswith(HOOK_PREFIX)]
        options = {name.removeprefix(HOOK_PREFIX): OPTIONS[name] for name in hooks}
    seen: dict[str, ini.Entry] = {}
    for entry in sorted(section.entries, key=lambda entry: entry.name != "plugins"):
        named = f'{file}:{entry.line}: "{entry.name}"'
        # Of a plug-in that was named above, or that nobody has named.
        if section.name != HOOKS and entry.name not in options and is_option(entry.name):
            options[entry.name] = OPTIONS[entry.name]
        if entry.name not in options:
            meant = option_suggestion(entry.name, {name: name for name in options})
            raise ConfigError(f'{file}:{entry.line}: unknown option "{entry.name}"{meant}')
        option = options[entry.name]
        first = seen.setdefault(option.name, entry)
        if first.name != entry.name:
            raise ConfigError(
                f'{named} is another name for "{first.name}", which line {first.line} has set'
            )
        if first is not entry:
            hint = "; write its values below each other, indented" if option.repeatable else ""
            raise ConfigError(
                f"{named} is set a second time; the first time is on line {first.line}{hint}"
            )
        if section.name == HOOKS and settings.is_set(option.name):
            raise ConfigError(
                f"{named} is set already, at {settings.origin(option.name)}; write all functions "
                "in one place"
            )
        if section.name not in (SECTION, HOOKS) and option.shared:
            raise ConfigError(f"{named} is for all services; write it in [{SECTION}]")
        if section.name.startswith(HOST) and not option.hosted:
            raise ConfigError(
                f"{named} is for all hosts of a service; write it in [{SECTION}] or [{SERVICE}NAME]"
            )
        if not option.repeatable and len(entry.values) > 1:
            raise ConfigError(
                f'{file}:{entry.values[1][0]}: an indented line continues "{entry.name}" of line '
                f"{entry.line}, which takes one value; an option of its own begins at the left "
                "margin"
            )
        texts = [(f"{file}:{line}: {entry.name}", text) for line, text in entry.values]
        try:
            settings.set(option.name, texts)
        except ConfigError as error:
            commented = any(" #" in text or " ;" in text for _, text in texts)
            hint = "; a comment needs a line of its own" if commented else ""
            raise ConfigError(f"{error}{hint}") from None


def _check_author(file: str, sections: Sequence[ini.Section]) -> None:
    """Raise a ConfigError if others may name plug-ins in a file, whose code root would run."""
    for entry in [entry for section in sections for entry in section.entries]:
        if entry.name == "plugins" and (why := other_author(file)):
            raise ConfigError(
                f"{file}:{entry.line}: plugins: root runs the code of plug-ins, and does not take "
                f"their names from this file, because {why}: write --plugins on the command line, "
                "or POORHTTP_PLUGINS, and here none"
            )


def _host_names(section: ini.Section, file: str) -> list[str]:
    from poorhttp.config import host_names  # needed only here

    try:
        return host_names.names(section.name.removeprefix(HOST))
    except ValueError as error:
        raise ConfigError(f"{file}:{section.line}: {error}") from None


def _drop_inherited_content(settings: Settings, section: ini.Section, file: str) -> None:
    """Drop the inherited options of `CONTENT` if the section of a host sets one of them."""
    alone = Settings()
    _section(alone, section, file)
    if any(alone.is_set(name) for name in CONTENT):
        for name in CONTENT:
            settings.copy_option(name, alone)


def _refuse_shared_addresses(services: Sequence[Settings]) -> None:
    """Raise a ConfigError if two services would listen on the same address."""
    taken: dict[str, Settings] = {}
    for settings in services:
        for address in settings.bind:
            text = str(address)
            other = taken.setdefault(text, settings)
            if other is not settings and not text.endswith(":0"):
                raise ConfigError(
                    f"{settings.origin('bind')}: service {settings.service} would listen on "
                    f"{text}, where service {other.service} does; give each a bind of its own"
                )
