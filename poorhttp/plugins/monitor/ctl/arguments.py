"""The command line of `poorhttp ctl`, and its `--help`."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.config.help import entry
from poorhttp.config.suggestions import suggestion
from poorhttp.errors import UsageError


class Subcommand:
    """A subcommand: a sentence, the names of its arguments, and its own options.

    The last `optional` arguments may be missing.
    """

    def __init__(
        self,
        summary: str,
        arguments: Sequence[str] = (),
        *,
        optional: int = 0,
        options: Sequence[str] = (),
    ) -> None:
        self.summary = summary
        self.arguments = arguments
        self.optional = optional
        self.options = options

    @property
    def synopsis(self) -> str:
        """The arguments and options, for help."""
        needed = len(self.arguments) - self.optional
        words = [
            name if place < needed else f"[{name}]" for place, name in enumerate(self.arguments)
        ]
        words += [f"[{OPTIONS[option].synopsis}]" for option in self.options]
        return " ".join(words)


class Flag:
    """An option: a sentence, and the placeholder of its value, empty for a switch."""

    def __init__(self, name: str, metavar: str, summary: str) -> None:
        self.name = name
        self.metavar = metavar
        self.summary = summary

    @property
    def synopsis(self) -> str:
        """The option with its value, for help."""
        return f"{self.name} {self.metavar}".strip()


OPTIONS = {
    flag.name: flag
    for flag in (
        Flag("--admin", "ADDRESS", "Address of the server, as in its option `admin`."),
        Flag("--config", "FILE", "Ini file of the server, in which `admin` is set."),
        Flag("--pidfile", "FILE", "File with the process ID of the server."),
        Flag("--token-file", "FILE", "File with the token: the server's `admin_token_file`."),
        Flag("--json", "", "Print JSON."),
        Flag("--quick", "", "Close idle connections at once."),
        Flag("--off", "", "End a drain."),
        Flag("--format", "FORMAT", "svg (a flame graph), collapsed or speedscope."),
        Flag("--output", "FILE", "Write a profile to this file instead of standard output."),
    )
}

#: Options that go with every subcommand.
COMMON = ("--admin", "--config", "--pidfile", "--token-file", "--json")

SHORT = {"-c": "--config", "-o": "--output"}

SUBCOMMANDS = {
    "status": Subcommand("Show services, figures, reloads, errors and slow requests."),
    "workers": Subcommand("Show each worker."),
    "requests": Subcommand("Show requests in flight and upgraded connections."),
    "advise": Subcommand(
        "Say which workers and threads it needs, by its figures of the last hour."
    ),
    "top": Subcommand("Show all this live, in the terminal, as poorhttp top does."),
    "stacks": Subcommand(
        "Show what each thread does, in one worker or in all.", ["PID"], optional=1
    ),
    "reload": Subcommand("Reload configuration and application, and say whether that worked."),
    "stop": Subcommand("Stop the server, and wait until it has ended.", options=["--quick"]),
    "restart": Subcommand(
        "Start a new main process that takes over; with PID, replace that worker.",
        ["PID"],
        optional=1,
    ),
    "add": Subcommand("Add a worker to one service or to each.", ["SERVICE"], optional=1),
    "remove": Subcommand("Remove a worker.", ["SERVICE"], optional=1),
    "threads": Subcommand(
        "Set the threads of each worker, with threads = auto, until the next reload.",
        ["THREADS", "SERVICE"],
        optional=1,
    ),
    "log-level": Subcommand(
        "Set the log level of all processes, until the next reload.", ["LEVEL"]
    ),
    "drain": Subcommand("Report that it is not ready, and keep serving.", options=["--off"]),
    "profile": Subcommand(
        "Sample the stacks of one worker or of all.",
        ["SECONDS", "PID"],
        optional=1,
        options=["--format", "--output"],
    ),
    "heap": Subcommand("Show what uses memory, in one worker or in all.", ["PID"], optional=1),
}

SEE_HELP = "see poorhttp ctl --help"


class Arguments:
    """The parsed command line.

    Attributes:
        command: name of the subcommand; empty for help.
        arguments: its arguments, by their names.
        options: the values of options that were given; of a switch it is empty.
    """

    def __init__(self, words: Sequence[str]) -> None:
        """Parse the words behind `ctl`.

        Raises:
            UsageError: with a suggestion if a name is misspelt.
        """
        self.command = ""
        self.arguments: dict[str, str] = {}
        self.options: dict[str, str] = {}
        rest, values, wants_help = list(words), [], not words
        while rest:
            word = rest.pop(0)
            if word in ("-h", "--help"):
                wants_help = True
            elif word.startswith("-"):
                self._read_option(word, rest)
            elif not self.command:
                if word not in SUBCOMMANDS:
                    raise UsageError(f'unknown command "ctl {word}"{suggestion(word, SUBCOMMANDS)}')
                self.command = word
            else:
                values.append(word)
        if wants_help:
            self.command = ""
            return
        if not self.command:
            raise UsageError(f"no command; write poorhttp ctl status, or {SEE_HELP}")
        self._check(values)

    def _read_option(self, word: str, rest: list[str]) -> None:
        name, equals, value = word.partition("=")
        name = SHORT.get(name, name)
        if name not in OPTIONS:
            raise UsageError(f'unknown option "{name}"{suggestion(name, OPTIONS)}')
        if not OPTIONS[name].metavar:
            if equals:
                raise UsageError(f"{name} takes no value")
        elif not equals:
            if not rest:
                raise UsageError(f"{name}: needs a value: {OPTIONS[name].synopsis}")
            value = rest.pop(0)
        if name in self.options:
            raise UsageError(f"{name} is given twice")
        self.options[name] = value

    def _check(self, values: Sequence[str]) -> None:
        known = SUBCOMMANDS[self.command]
        usage = f"write poorhttp ctl {self.command} {known.synopsis}".rstrip()
        for name in self.options:
            if name not in (*COMMON, *known.options):
                raise UsageError(f"{self.command} has no option {name}; {usage}")
        needed = len(known.arguments) - known.optional
        if not needed <= len(values) <= len(known.arguments):
            what = "is missing" if len(values) < needed else "is one argument too many"
            name = known.arguments[len(values)] if len(values) < needed else values[-1]
            raise UsageError(f"{self.command}: {name} {what}; {usage}")
        self.arguments = dict(zip(known.arguments, values, strict=False))
        ways = [name for name in ("--admin", "--config", "--pidfile") if name in self.options]
        if len(ways) > 1:
            raise UsageError(f"{ways[0]} and {ways[1]} both name a server; choose one")


def usage() -> str:
    """Return the text of `--help`."""
    commands = "".join(
        entry(f"{name} {known.synopsis}".rstrip(), known.summary)
        for name, known in SUBCOMMANDS.items()
    )
    options = "".join(
        entry(", ".join(filter(None, [_short(flag.name), flag.synopsis])), flag.summary)
        for flag in OPTIONS.values()
    )
    return (
        "Usage: poorhttp ctl [OPTION ...] COMMAND [ARGUMENT ...]\n\n"
        "Show or control a running server through its address `admin`. If no option names the\n"
        "server, poorhttp.ini of the current folder does, or it is the only one of this user.\n\n"
        f"Commands:\n{commands}\nOptions:\n{options}\n"
        "Exit codes: 0 done, 1 not done, 2 wrong command line, 3 wrong configuration or token,\n"
        "5 no server answers.\n"
    )


def _short(name: str) -> str:
    return next((short for short, long in SHORT.items() if long == name), "")
