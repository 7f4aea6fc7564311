"""What was read of another server's configuration, and what becomes of it.

Each setting that was read becomes options, or an explanation; none is dropped.
"""

from __future__ import annotations

import os
import re
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from poorhttp.config import loader
from poorhttp.config.settings import OPTIONS
from poorhttp.errors import ConfigError

#: Name of the setting that stands for sockets which systemd passes.
SOCKETS = "sockets"

#: Longest comment, and the width of its lines.
LONGEST, WIDTH = 400, 100

#: Most settings that are read; each is compared with the others.
MOST_SETTINGS = 2000

#: A variable of a shell whose value is not known. Lengths have limits in these patterns, because a
#: search would otherwise look through all of a text at each of its letters.
UNKNOWN_VARIABLE = re.compile(r"\$(\{[^}]{0,200}\}|\w+|\([^)]{0,200}\))")


@dataclass
class Setting:
    """One setting of another server.

    Attributes:
        name: its name there, without dashes in front.
        value: its value: a text, or what a Python file has set.
        place: file and line, or the part of a command line.
        text: the setting as it is written there.
        note: an explanation that its reader has for it; then it becomes no option.
        used_as_placeholder: another setting of uWSGI has used its value.
        is_written: it stands in the configuration; otherwise it follows from others, or from where
            the server is started, and is not counted.
    """

    name: str
    value: object
    place: str
    text: str
    note: str = ""
    used_as_placeholder: bool = False
    is_written: bool = True

    @property
    def words(self) -> list[str]:
        """The value as texts: one for each item of a list."""
        items = self.value if isinstance(self.value, (list, tuple)) else [self.value]
        return [str(item) for item in items]

    @property
    def one(self) -> str:
        """The value as one text."""
        return ", ".join(self.words)

    @property
    def is_on(self) -> bool:
        """Whether the value of a switch is on."""
        if isinstance(self.value, str):
            return self.value.strip().lower() not in ("false", "no", "off", "0", "none")
        return bool(self.value)


@dataclass
class Planned:
    """The values of an option, and why it has them: a comment for each setting or default.

    Attributes:
        settings: those that are carried over by it.
    """

    values: list[str]
    comments: list[str] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)


@dataclass
class Rule:
    """What becomes of a setting: an option and the translation of its value, or an explanation.

    Attributes:
        option: name of our option; empty if there is none.
        translate: makes a text of a setting; by default the text itself. Raises a ValueError if a
            value has no equivalent.
        why: if there is no option, the reason and what to do; otherwise a difference to know.
        page: the page of the manual about it.
        apply: does something else with the plan.
    """

    option: str = ""
    translate: Callable[[str], str] = str
    why: str = ""
    page: str = ""
    apply: Callable[[Plan, Setting], None] | None = None


class Plan:
    """The options that a configuration becomes, with comments, and the explanations of the rest.

    Attributes:
        server: the server whose configuration was read.
        settings: what was read.
        options: the options, by name.
        explanations: pairs of a setting, or None, and the explanation.
        warnings: what must be known before the new server is started.
        carried: settings that became options, or that poorhttp follows without one.
    """

    def __init__(self, server: str, settings: Sequence[Setting]) -> None:
        if len(settings) > MOST_SETTINGS:
            place = settings[MOST_SETTINGS].place
            raise ConfigError(f"{place}: is beyond {MOST_SETTINGS} settings, which is too many")
        self.server = server
        self.settings = list(settings)
        self.options: dict[str, Planned] = {}
        self.explanations: list[tuple[Setting | None, str]] = []
        self.warnings: list[str] = []
        self._seen: set[int] = set()
        self._carried: set[int] = set()

    def find(self, *names: str) -> Setting | None:
        """Return the last setting with one of these names."""
        found = self.all(*names)
        return found[-1] if found else None

    def all(self, *names: str) -> list[Setting]:
        """Return the settings with one of these names."""
        return [each for each in self.settings if each.name in names and not each.note]

    @property
    def has_sockets(self) -> bool:
        """Whether systemd passes the sockets."""
        return any(setting.name == SOCKETS for setting in self.settings)

    def set(
        self, option: str, values: str | Sequence[str], because: Setting | str, note: str = ""
    ) -> bool:
        """Plan an option, because of a setting or of a reason; tell whether its values are right.

        Values that the option refuses are explained. A repeatable option collects the values.
        """
        texts = [values] if isinstance(values, str) else list(values)
        before = self.options.get(option)
        collects = OPTIONS[option].repeatable
        checked = texts
        if collects and before is not None:
            added = [text for text in texts if text not in before.values]
            texts = [*before.values, *added]
            # Of those before only the first: it may be `off`, which stands alone.
            checked = [*before.values[:1], *added]
        try:
            if not texts or any(not _fits_in_a_line(text) for text in checked):
                raise ValueError("it has no text for a line of an ini file")
            OPTIONS[option].read([(option, text) for text in checked])
        except ValueError as error:
            self.explain(because if isinstance(because, Setting) else None, f"{error}.")
            return False
        comment = because if isinstance(because, str) else f"{because.place}: {because.text}"
        comments = [comment + (f"; {note}" if note else "")]
        if before is not None:
            comments = [*before.comments, *comments]
        planned = Planned(texts, list(dict.fromkeys(comments)))
        if before is not None and collects:
            planned.settings += (each for each in before.settings if each is not because)
        self.options[option] = planned
        if isinstance(because, Setting):
            planned.settings.append(because)
            self.done(because)
        if before is not None and not collects and before.values != texts:
            self._replace(before, planned, comment)
        return True

    def _replace(self, before: Planned, planned: Planned, comment: str) -> None:
        """Explain the settings that have set an option before."""
        kept = {id(each) for other in self.options.values() for each in other.settings}
        for setting in before.settings:
            if id(setting) not in kept:
                self._carried.discard(id(setting))
                self.explain(setting, f"Not in use, but: {comment}.")

    def done(self, setting: Setting) -> None:
        """Count a setting as carried over."""
        self._seen.add(id(setting))
        self._carried.add(id(setting))

    def explain(self, setting: Setting | None, why: str, page: str = "") -> None:
        """Explain what has no equivalent, or needs none."""
        text = f"{why} See {page}." if page else why
        # The same object: a command line may have two settings that are alike.
        if not any(one is setting and other == text for one, other in self.explanations):
            self.explanations.append((setting, text))
        if setting is not None:
            self._seen.add(id(setting))

    def apply(self, rules: Mapping[str, Rule], unknown: Callable[[Setting], Rule]) -> None:
        """Apply the rules to all settings that were not looked at yet."""
        for setting in self.settings:
            if setting.note:
                self.explain(setting, setting.note)
                continue
            if id(setting) in self._seen:
                continue
            later = self.all(setting.name)[-1]
            rule = rules.get(setting.name) or unknown(setting)
            if rule.apply is not None:
                try:
                    rule.apply(self, setting)
                except ValueError as error:
                    self.explain(setting, str(error), rule.page)
            elif not rule.option:
                self.explain(setting, rule.why, rule.page)
            elif later is not setting and not OPTIONS[rule.option].repeatable:
                self.explain(setting, f"{later.place} sets it again, and that is the one in use.")
            else:
                self._carry(rule, setting)
            if id(setting) not in self._seen:
                self.explain(setting, "It is what poorhttp does in any case.")

    def follow(self, setting: Setting, why: str) -> None:
        """Note that poorhttp follows a setting without an option."""
        self.explain(setting, why)
        self.done(setting)

    def from_environment(self, setting: Setting, option: str) -> bool:
        """Explain a value that a shell takes from the environment; tell whether it does."""
        if not UNKNOWN_VARIABLE.search(setting.one):
            return False
        name = OPTIONS[option].variable
        self.explain(
            setting,
            "Its value comes from the environment, which was not known here: where the server is "
            f"started, set {name} to it, or write {option} into this file.",
        )
        return True

    def _carry(self, rule: Rule, setting: Setting) -> None:
        if self.from_environment(setting, rule.option):
            return
        try:
            values = [rule.translate(word) for word in setting.words]
        except ValueError as error:
            self.explain(setting, str(error), rule.page)
            return
        # A setting without a value is not set.
        if values and values[0] != "":
            self.set(rule.option, values, setting, rule.why)
        else:
            self.explain(setting, "It is empty.")

    def counts(self) -> tuple[int, int, int]:
        """Return how many settings were read, became options, and were explained."""
        written = [each for each in self.settings if each.is_written]
        carried = sum(id(each) in self._carried for each in written)
        return len(written), carried, len(written) - carried

    def text(self, source: str) -> str:
        """Return the ini file.

        Raises:
            ConfigError: our own loader refuses it, which is a mistake of this command.
        """
        read, carried, explained = self.counts()
        lines = [
            f"# From {clean(source)}, a configuration of {self.server}: of {read} settings,",
            f"# {carried} have become the options below, and {explained} are explained at the end.",
            "# To check it:   poorhttp check -c FILE",
            "# To serve:      poorhttp serve -c FILE",
            *(
                line
                for warning in self.warnings
                for line in ("#", *comment_lines(f"ATTENTION: {warning}", "# "))
            ),
            "",
            f"[{loader.SECTION}]",
        ]
        if not {"target", "mount"} & self.options.keys():
            lines += ["# Not known; it may also be an argument: poorhttp serve TARGET -c FILE"]
            lines += ["# target = package.module:application", ""]
        for name in OPTIONS:
            if planned := self.options.get(name):
                for comment in planned.comments:
                    lines += comment_lines(comment, "# ")
                several = len(planned.values) > 1
                lines += [f"{name} =" if several else f"{name} = {planned.values[0]}"]
                lines += [f"    {value}" for value in planned.values if several]
                lines.append("")
        if self.explanations:
            lines.append("# What has no equivalent, or needs none:")
        for setting, why in self.explanations:
            if setting is not None:
                lines += ["#", *comment_lines(f"{setting.place}: {setting.text}", "# ")]
            lines += comment_lines(why, "#     ")
        text = "\n".join(lines).rstrip("\n") + "\n"
        self._check(text)
        return text

    def _check(self, text: str) -> None:
        """Have our loader read the file, and compare."""
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "poorhttp.ini")
            with open(file, "wb") as written:
                written.write(text.encode("utf-8", "surrogateescape"))
            (settings,) = loader.load({}, {}, file)
        for name, planned in self.options.items():
            if settings.written(name) != planned.values:
                raise ConfigError(
                    f"{name}: {planned.values!r} would be read as {settings.written(name)!r}; "
                    "please report it"
                )


def clean(text: str) -> str:
    """Return a text for a comment: one line, without control characters, not too long."""
    line = " ".join(text.split())
    line = "".join(letter if letter.isprintable() else "?" for letter in line)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} …"


def comment_lines(text: str, begin: str) -> list[str]:
    """Return a comment of an ini file, broken into lines."""
    return textwrap.wrap(
        clean(text),
        WIDTH,
        initial_indent=begin,
        subsequent_indent=begin,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [begin.rstrip()]


def _fits_in_a_line(text: str) -> bool:
    """Tell whether an ini file gives back a value as it is."""
    return text == text.strip() and text != "" and text[0] not in "#;" and text.isprintable()


def option(name: str, translate: Callable[[str], str] = str, why: str = "") -> Rule:
    """Return the rule of a setting that has an equivalent; `why` is a difference to know."""
    return Rule(option=name, translate=translate, why=why)


def explained(why: str, page: str = "") -> Rule:
    """Return the rule of a setting that has no equivalent, or needs none."""
    return Rule(why=why, page=page)


def number(text: str) -> str:
    """Translate a whole number."""
    try:
        return str(int(float(text)))
    except (ValueError, OverflowError):
        raise ValueError(f'"{text}" is not a number.') from None


def above_zero(option: str, unlimited: str) -> Callable[[str], str]:
    """Return a translation of numbers for which 0 means no limit, which `option` does not have."""

    def translate(text: str) -> str:
        if int(number(text)) <= 0:
            raise ValueError(f"poorhttp always has this limit, {option}: {unlimited}")
        return number(text)

    return translate


def octal(text: str) -> str:
    """Translate permissions: octal digits, or the number that they are in Python."""
    if text.startswith(("0o", "0O")):
        text = text[2:]
    if not text.isdigit():
        raise ValueError(f'"{text}" is not an octal number.')
    return f"{int(text, 8) if text.startswith('0') else int(text):04o}"


def switch(text: str) -> str:
    """Translate a switch."""
    return "off" if text.strip().lower() in ("false", "no", "off", "0", "none", "") else "on"
