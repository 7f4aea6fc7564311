"""Parses command lines of gunicorn, uWSGI, waitress, uvicorn, hypercorn, daphne and granian."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poorhttp.errors import ConfigError
from poorhttp.plugins.setup.migrate import server_flags
from poorhttp.plugins.setup.migrate.equivalents.plan import Setting
from poorhttp.plugins.setup.migrate.server_flags import Flag

#: Programs, and the servers that they are; also names of modules behind `python -m`.
PROGRAMS = {
    **dict.fromkeys(("gunicorn", "gunicorn3"), "gunicorn"),
    **dict.fromkeys(("uwsgi", "pyuwsgi", "uwsgi-core", "uwsgi_python3"), "uwsgi"),
    **dict.fromkeys(("waitress-serve", "waitress"), "waitress"),
    **{name: name for name in ("uvicorn", "granian", "hypercorn", "daphne")},
}

SHELLS = ("sh", "bash", "dash")

#: gunicorn reads flags from this variable, too.
GUNICORN_VARIABLE = "GUNICORN_CMD_ARGS"

#: gunicorn takes this variable for the prefix at which the application is.
MOUNTED = "SCRIPT_NAME"

#: Longest line of a shell, of which `shlex` copies a word for each of its letters.
LONGEST_LINE = 16_384

_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?[-=]([^}]{0,200}))?\}|(\w+))")
_SUBSTITUTION = re.compile(r"\$\([^()]{0,200}\)|`[^`]{0,200}`")
_SEPARATORS = frozenset(("&&", "||", ";", "|", "&"))


@dataclass
class ServerCommand:
    """The command line of a server.

    Attributes:
        server: one of the values of `PROGRAMS`.
        settings: its flags and arguments.
        files: configuration files that it names.
        environment: variables that stand in front of the program.
        at_port: the variable PORT will name the port, as on the platforms that read a Procfile.
    """

    server: str
    settings: list[Setting] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    at_port: bool = False


def expand(text: str, environ: Mapping[str, str]) -> str:
    """Replace variables of a shell that are known, or have a default."""

    def replace(found: re.Match[str]) -> str:
        value = environ.get(found[1] or found[3], found[2])
        return found[0] if value is None else value

    return _VARIABLE.sub(replace, text)


def commands_of(line: str) -> list[list[str]]:
    """Return the words of each command in a line of a shell, without `&&`, `;` and the like.

    Raises:
        ValueError: a quotation mark is not closed.
    """
    line = _SUBSTITUTION.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    for word in lexer:
        if word in _SEPARATORS:
            commands.append([])
        else:
            commands[-1].append(word)
    return [words for words in commands if words]


def find_server(words: Sequence[str]) -> tuple[str, int] | None:
    """Return the server that a command starts, and the index of the first argument, or None."""
    for index, word in enumerate(words):
        name = os.path.basename(word)
        if name in PROGRAMS and (name != "waitress" or words[index - 1] == "-m"):
            return PROGRAMS[name], index + 1
        if word.startswith("-") and word not in ("-m", "--", "-g", "-c", "-u"):
            continue
    return None


def read_shell(line: str, place: str, environ: Mapping[str, str]) -> ServerCommand | None:
    """Read a line of a shell; None if it starts no server.

    Commands beside that of the server become settings with an explanation.
    """
    if len(line) > LONGEST_LINE:
        raise ConfigError(f"{place}: is longer than {LONGEST_LINE} characters")
    try:
        commands = commands_of(line)
    except ValueError as error:
        raise ConfigError(f"{place}: {clean_error(error)}: {line.strip()[:200]}") from None
    for words in commands:
        # `sh -c "..."` has a line of its own.
        if len(words) >= 3 and os.path.basename(words[0]) in SHELLS:
            flag = next(
                (index for index, word in enumerate(words) if re.fullmatch("-[a-z]*c", word)), 0
            )
            if flag and flag + 1 < len(words):
                return read_shell(words[flag + 1], place, environ)
    found = next((words for words in commands if find_server(words)), None)
    if found is None:
        return None
    command = read_words(found, place, environ)
    for words in commands:
        if words[0] == "cd" and len(words) == 2:
            text = shlex.join(words)
            command.settings.append(Setting("chdir", expand(words[1], environ), place, text))
        elif words is not found:
            text = shlex.join(words)
            why = "Another command than the server: keep it where it is."
            command.settings.append(Setting("", text, place, text, note=why))
    return command


def read_words(
    words: Sequence[str], place: str, environ: Mapping[str, str] | None = None
) -> ServerCommand:
    """Read the words of a command line.

    Raises:
        ConfigError: they start none of the servers that are known.
    """
    known = find_server(words)
    if known is None:
        raise ConfigError(
            f"{place}: starts no known server (gunicorn, uwsgi, waitress-serve, uvicorn, granian, "
            "hypercorn, daphne)"
        )
    server, first = known
    command = ServerCommand(server)
    _read_program(command, words[: first - 1], words[first - 1], place)
    variables = {**(environ or {}), **command.environment}
    rest = [(word, expand(word, variables)) for word in words[first:]]
    if server == "uwsgi":
        _read_uwsgi(command, rest, place)
    else:
        _read_flags(command, rest, place)
    _read_variables(command, variables)
    return command


def _read_variables(command: ServerCommand, variables: Mapping[str, str]) -> None:
    """Read variables that are flags too; the command line takes precedence."""
    found = ServerCommand(command.server)
    if command.server == "gunicorn":
        try:
            words = shlex.split(variables.get(GUNICORN_VARIABLE, ""))
        except ValueError as error:
            raise ConfigError(f"{GUNICORN_VARIABLE}: {error}") from None
        _read_flags(found, [(word, word) for word in words], GUNICORN_VARIABLE)
        is_set = any(
            word.startswith(f"{MOUNTED}=")
            for setting in (*command.settings, *found.settings)
            for word in (setting.words if setting.name == "raw_env" else ())
        )
        if MOUNTED in variables and not is_set:
            text = f"{MOUNTED}={variables[MOUNTED]}"
            # It is a variable of a unit, an image or a shell, and has been read there.
            found.settings.append(Setting("raw_env", text, MOUNTED, text, is_written=False))
    prefix = f"{command.server.upper()}_"
    for name, value in variables.items():
        if command.server in ("uwsgi", "uvicorn", "granian") and name.startswith(prefix):
            plain = name.removeprefix(prefix).lower().replace("_", "-")
            found.settings.append(Setting(plain, value, name, value))
    given = {setting.name: setting for setting in command.settings if setting.name}
    for setting in found.settings:
        # Variables do not replace each other.
        if setting.name in given and setting.name not in ("raw_env", "env"):
            setting.note = f"{given[setting.name].place} sets it too, which takes precedence."
    command.settings = found.settings + command.settings
    command.files = found.files + command.files


def _read_program(command: ServerCommand, before: Sequence[str], program: str, place: str) -> None:
    """Read what stands in front of the arguments: variables, wrappers and the program."""
    wrappers: list[str] = []
    for word in before:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier() and not wrappers:
            command.environment[name] = value
            variable = "raw_env" if command.server == "gunicorn" else "env"
            command.settings.append(Setting(variable, word, place, word))
        elif word not in ("exec", "env", "-m") and not os.path.basename(word).startswith("python"):
            wrappers.append(word)
    if wrappers:
        text = " ".join(wrappers)
        why = "It starts the server: have it start poorhttp in the same way."
        command.settings.append(Setting("", text, place, text, note=why))
    if os.path.dirname(program) and not os.path.dirname(program).startswith("/usr"):
        why = f"Install poorhttp there, and start {os.path.dirname(program)}/poorhttp."
        command.settings.append(Setting("", program, place, program, note=why))


def _read_flags(command: ServerCommand, rest: list[tuple[str, str]], place: str) -> None:
    """Read flags as argparse and click do."""
    tables = {
        "gunicorn": server_flags.GUNICORN,
        "waitress": server_flags.WAITRESS,
        "uvicorn": server_flags.UVICORN,
        "granian": server_flags.GRANIAN,
        "hypercorn": server_flags.HYPERCORN,
        "daphne": server_flags.DAPHNE,
    }
    known = server_flags.flags(tables[command.server])
    arguments = 0
    while rest:
        text, word = rest.pop(0)
        if word == "--":
            continue
        if not word.startswith("-") or word == "-":
            name = ("wsgi_app" if command.server == "gunicorn" else "app") if not arguments else ""
            note = "" if name else "One application is served."
            command.settings.append(Setting(name, word, place, text, note=note))
            arguments += 1
            continue
        name, equals, value = word.partition("=")
        flag, negative = _flag(known, name)
        if flag is None and not word.startswith("--") and len(word) > 2:
            flag, equals, value = known.get(word[:2]), "=", word[2:]
        if flag is None:
            flag = Flag(name.lstrip("-"), bool(equals))
        if flag.takes_value and not equals:
            if not rest:
                raise ConfigError(f"{place}: {name} has no value")
            also, value = rest.pop(0)
            text += f" {also}"
        setting = Setting(flag.setting, value if flag.takes_value else not negative, place, text)
        if setting.name == "sendfile":
            setting.value = False
        if setting.name == "config":
            command.files.append(value)
        command.settings.append(setting)


def _flag(known: Mapping[str, Flag], name: str) -> tuple[Flag | None, bool]:
    """Return a flag, and whether its name says that the switch is off: `--no-access-log`."""
    if name in known:
        return known[name], False
    positive = "--" + name.removeprefix("--no-")
    if name.startswith("--no-") and positive in known:
        return Flag(known[positive].setting, False), True
    # argparse allows what is unique of a name.
    near = [other for other in known if name.startswith("--") and other.startswith(name)]
    return (known[near[0]] if len({known[other].setting for other in near}) == 1 else None), False


def _read_uwsgi(command: ServerCommand, rest: list[tuple[str, str]], place: str) -> None:
    while rest:
        text, word = rest.pop(0)
        if not word.strip("-"):
            command.settings.append(Setting("", word, place, text, note="It names no option."))
            continue
        if not word.startswith("-"):
            if word.endswith((".ini", ".yaml", ".yml", ".xml", ".json")) or ":" in word[1:]:
                command.files.append(word)
                command.settings.append(Setting("ini", word, place, text, note="It was read too."))
            else:
                command.settings.append(Setting("wsgi-file", word, place, text))
            continue
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("--"):
            name, value = word[1], word[2:]
            equals = "=" if value or name not in server_flags.UWSGI_WITH_VALUE else ""
            if name not in server_flags.UWSGI_WITH_VALUE:
                value = "true"
        if not equals:
            takes = name not in server_flags.UWSGI_SWITCHES and bool(rest)
            if takes and not rest[0][1].startswith("-"):
                also, value = rest.pop(0)
                text += f" {also}"
            else:
                value = "true"
        name = server_flags.UWSGI_SHORT.get(name, name)
        setting = Setting(name, value, place, text)
        if name in ("ini", "yaml", "yml", "xml", "json"):
            command.files.append(value)
            setting.note = "It was read too."
        command.settings.append(setting)


def clean_error(error: Exception) -> str:
    """Return the text of an exception on one line."""
    return " ".join(str(error).split())
