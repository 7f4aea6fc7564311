"""The classes that declare an option: its parser, default value and help text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Generic, TypeVar

    T_co = TypeVar("T_co", covariant=True)
else:
    # Importing typing costs every worker 0.7 MiB. At run time a generic class is only a class.
    T_co = object

    class Generic:
        def __class_getitem__(cls, _):
            return cls


#: Placeholders of values in `--help`, by the name of their parser.
METAVARS = {
    **dict.fromkeys(("boolean", "switch"), "SWITCH"),
    **dict.fromkeys(("integer", "auto_or"), "N"),
    "seconds": "SECONDS",
    "size": "SIZE",
}

#: Pairs of quotes, as other languages write texts. None of the places of options has quotes.
QUOTES = ('""', "''", "``", "\u201c\u201d")

#: What surrounds the values of a list elsewhere.
LISTS = "\"'`\u201c\u201d,;"

# Where the options of a class are available, if not everywhere.
#: Not in a `poorhttp.Server`, which runs in threads of a program.
IN_PROCESSES = "in processes"
#: In no program that imports the server.
ON_COMMAND_LINE = "on the command line"

#: One object for all options without `fixed`.
NONE: Mapping[str, str] = {}


class Option(Generic[T_co]):
    """One setting. As an attribute of `Settings` it reads as its value.

    Attributes:
        name: `like_this`, in the ini file; `flag` and `variable` are its other spellings.
        summary: what it does, one sentence.
        reason: why the default is what it is, and what other servers do; Markdown.
        metavar: placeholder of the value in `--help`; by default that of its parser.
        group: heading under which help lists it: `GROUP` of the class that declares it.
        available: `IN_PROCESSES`, `ON_COMMAND_LINE` or empty: everywhere. `AVAILABLE` of the class
            that declares it.
        instead: what a program does in place of an option of the command line; `INSTEAD` of that
            class.
        ini_name: a second name in the ini file.
        short: its letter on the command line, as in `-w`; empty for most.
        aliases: more names on the command line, without hyphens, as other servers have them. Some
            read their value differently (`poorhttp.config.other_servers.translations`).
        translate: reads the value of an alias, where it differs from that of the option.
        settle: completes other options if an alias was written, or raises a ValueError; takes the
            texts of all options, and what was written for each.
        fixed: further ones that take no value, and the text for which each stands.
        shared: the same for all services of a server, so it is set in `[http]` only.
        hosted: may also be set for a virtual host, in `[host:NAME]`.
        quotes: a value may begin and end with a quote.
        local: the server is for this machine only, if it is set.
        common: `--help` shows it, not only `--help-all`.
        secret: values may be passwords, behind a name and an equals sign.
        needs_main: it needs a main process, so that it is at odds with `supervisor = off`.
        words: values that may follow the flag of a switch, which means `on` without any; empty for
            all other options.
        plugin: the plug-in of others that declares it, as messages name it; empty for ours.
    """

    repeatable = False
    name = ""
    group = ""
    available = ""
    instead = ""
    plugin = ""

    def __init__(
        self,
        parse: Callable[[str], T_co],
        default: str | Sequence[str],
        summary: str,
        *,
        metavar: str = "",
        reason: str = "",
        ini_name: str = "",
        short: str = "",
        aliases: Sequence[str] = (),
        translate: Callable[[str], str] | None = None,
        settle: Callable[[dict[str, list[str]], dict[str, list[str]]], None] | None = None,
        fixed: Mapping[str, str] = NONE,
        shared: bool = False,
        hosted: bool = False,
        quotes: bool = False,
        local: bool = False,
        common: bool = False,
        secret: bool = False,
        needs_main: bool = False,
    ) -> None:
        self.parse = parse
        self.default_texts = [default] if isinstance(default, str) else list(default)
        self.summary = summary
        self.metavar = metavar or METAVARS[parse.__qualname__.partition(".")[0]]
        self.reason = reason
        self.ini_name = ini_name
        self.short = short
        self.aliases = tuple(aliases)
        self.translate = translate
        self.settle = settle
        self.fixed = fixed
        self.shared = shared
        self.hosted = hosted
        self.quotes = quotes
        self.local = local
        self.common = common
        self.secret = secret
        self.needs_main = needs_main
        self.words: tuple[str, ...] = getattr(parse, "words", ())
        self.default = self.read([("default", text) for text in self.default_texts])

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name
        self.group = getattr(owner, "GROUP", owner.__name__)
        self.available = getattr(owner, "AVAILABLE", "")
        self.instead = getattr(owner, "INSTEAD", "only for the command")

    def __get__(self, settings: object, owner: type) -> T_co:
        # Not a data descriptor: a value that was set is in the instance and hides this.
        return self.default

    @property
    def flag(self) -> str:
        """Name on the command line; empty for the target, which has no flag."""
        return "" if self.name == "target" else "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """Name of the environment variable."""
        return "POORHTTP_" + self.name.upper()

    def read(self, texts: Sequence[tuple[str, str]]) -> T_co:
        """Return the value of an option from its texts.

        Args:
            texts: pairs of the place, such as `poorhttp.ini:3: threads`, and the text found there.

        Raises:
            ValueError: beginning with the place.
        """
        if len(texts) != 1:
            where, text = texts[1]
            raise ValueError(f'{where}: takes one value, and there is a second, "{text}"')
        return parse_at(self.parse, *texts[0], quotes=self.quotes)


class Repeatable(Option["tuple[T_co, ...]"]):
    """A setting that takes any number of values and reads as a tuple of them.

    An empty text is no value, except where the default is not empty either.
    """

    repeatable = True

    def __init__(
        self, item: Callable[[str], T_co], default: Sequence[str], summary: str, **texts: Any
    ) -> None:
        self.item = item
        super().__init__(lambda text: (item(text),), default, summary, **texts)

    def read(self, texts: Sequence[tuple[str, str]]) -> tuple[T_co, ...]:
        """Return the values in their order."""
        given = [(where, text) for where, text in texts if text or self.default_texts]
        if self.default_texts and not given:
            raise ValueError(f"{self.name}: needs at least one value")
        return tuple(parse_at(self.item, where, text, several=True) for where, text in given)


class WordList(Repeatable[T_co]):
    """A repeatable option of which one text may hold several values, with commas or spaces.

    `off` alone is the empty tuple, also where the default is not empty.
    """

    def read(self, texts: Sequence[tuple[str, str]]) -> tuple[T_co, ...]:
        """Return the values in their order."""
        words = [
            (where, word)
            for where, text in texts
            for word in text.replace(",", " ").split() or [text]
        ]
        if [word for _, word in words] == ["off"]:
            return ()
        for where, word in words:
            if word == "off":
                raise ValueError(f"{where}: off cannot stand beside other values")
        return super().read(words)


def parse_at(
    parse: Callable[[str], T_co],
    where: str,
    text: str,
    *,
    several: bool = False,
    quotes: bool = False,
) -> T_co:
    """Parse `text`; a ValueError begins with `where`, its place.

    Args:
        parse: reads a value.
        where: the place of the text.
        text: the text, with quotes and commas that belong to another syntax if it is wrong.
        several: whether the option takes several values, each in a text of its own.
        quotes: whether the text may stand in quotes.
    """
    if not quotes and len(text) > 1 and text[0] + text[-1] in QUOTES:
        raise ValueError(
            f"{where}: the value stands in quotes, which would be a part of it; write it without"
        )
    try:
        return parse(text)
    except ValueError as error:
        for inside in (text, text.strip("[]()")):
            parts = [part.strip(LISTS) for part in inside.replace(",", " ").split()]
            if several and len(parts) > 1 and all_parse(parse, parts):
                raise ValueError(
                    f'{where}: "{text}" has {len(parts)} values; write each by itself: the option '
                    "once more on the command line, a line of its own in a file or a variable"
                ) from None
        # Not without its commas: 1,5 is not 15.
        unquoted = "".join(letter for letter in text if letter not in "".join(QUOTES))
        # A call, a:b(), has brackets at its end only.
        bare = text.strip(f"{LISTS}[]() ") if text[:1] in f"{LISTS}[(" else text
        for near in (text.strip(LISTS), bare, unquoted):
            if near != text and all_parse(parse, [near]):
                raise ValueError(
                    f'{where}: "{text}" has quotes, commas or brackets that do not belong to it; '
                    f"write {near}"
                ) from None
        raise ValueError(f"{where}: {error}") from None


def all_parse(parse: Callable[[str], object], texts: Sequence[str]) -> bool:
    """Tell whether all texts can be parsed."""
    try:
        for text in texts:
            parse(text)
    except ValueError:
        return False
    return True
