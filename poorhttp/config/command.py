"""The class `Command`: a subcommand of `poorhttp`, and whether it takes the options of `serve`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Protocol, TypedDict

    from poorhttp.config.settings import Settings

    class Words(TypedDict, total=False):
        """What a command takes that parses its own words.

        Attributes:
            options: pairs of `-o, --output FILE` and a sentence.
            argument: `FILE`, `FOLDER` or `TARGET`, if its argument is one of these.
            choices: all values that its argument has.
            subcommands: by their names a sentence, and the values that their argument has.
        """

        options: Sequence[tuple[str, str]]
        argument: str
        choices: Sequence[str]
        subcommands: Mapping[str, tuple[str, Sequence[str]]]

    class Line(Protocol):
        """The command line, as a command gets it.

        Attributes:
            command: name of the command.
            words: the words behind a command with `own_words`.
            file: the ini file that is read, if there is one.
            finds_target: a command sets it to have the target found if none is named, before it
                asks for the settings.
        """

        command: str
        words: list[str]
        file: str | None
        finds_target: bool

        def settings(self) -> list[Settings]:
            """Return the settings of each service; raise a Failure if something is wrong."""

        def serve(self) -> int:
            """Serve until a stop signal, and return the exit code."""


class Command:
    """A subcommand: its help, its options, and the function that runs it.

    Attributes:
        run: gets the command line, and returns the exit code.
        summary: what the command does, one sentence.
        example: an example of a target.
        finding: how the target is found if none is named, a paragraph of the help; empty if a
            target is required.
        own_words: it parses the words behind it itself; otherwise it takes a target and options.
        defaults: options whose defaults are others, and their texts.
        common: the options that `--help` shows; by default those that `serve` shows.
        finds_file: it reads `poorhttp.ini` of the current folder if nothing is named to serve.
        words: returns what a command with `own_words` takes, for completion and man pages.
    """

    def __init__(
        self,
        run: Callable[[Line], int],
        summary: str,
        *,
        example: str = "package.module:application",
        finding: str = "",
        own_words: bool = False,
        defaults: Mapping[str, str] | None = None,
        common: Sequence[str] = (),
        finds_file: bool = False,
        words: Callable[[], Words] | None = None,
    ) -> None:
        self.run = run
        self.summary = summary
        self.example = example
        self.finding = finding
        self.own_words = own_words
        self.defaults = defaults or {}
        self.common = common
        self.finds_file = finds_file
        self.words = words
