"""Makes the man pages poorhttp(1) and poorhttp.ini(5); tables of targets and signals are here."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from poorhttp.config.options.option import Option
from poorhttp.config.settings import OPTIONS
from poorhttp.config.version import VERSION
from poorhttp.errors import visible
from poorhttp.plugins.setup.shell.vocabulary import Switch, Word, alike

#: A code span of Markdown, or a link to a page.
MARKUP = re.compile(r"`([^`]*)`|\[([^]]*)\]\([^)]*\)")

#: Of the latest change of what the pages say.
DATE = "November 29, 2026"

#: Of a line of the source, in bytes.
WIDTH = 78

DESCRIPTION = """\
An HTTP server for Python applications: WSGI, dispatch tables, template pages, CGI programs and
static files. Without COMMAND, `poorhttp TARGET` is `poorhttp serve TARGET`.

`poorhttp dev` finds the application in the current folder by itself. Other commands take it from
TARGET, the environment or an ini file:
"""

TARGETS = (
    ("package.module:callable", "a WSGI application, or a function that returns one"),
    ("path/to/file.py:callable", "the same, in a file"),
    ("dispatch:FOLDER", "a dispatch table"),
    ("pages:FOLDER", "template pages"),
    ("static:FOLDER", "files"),
    ("cgi:FOLDER", "CGI programs"),
    ("paste:FILE", "an application that a PasteDeploy file configures"),
    ("tcp:module:handler", "a handler of TCP connections"),
)

SIGNALS = (
    ("TERM", "Stop when the requests in flight are finished."),
    ("INT, QUIT", "Stop at once."),
    ("HUP", "Read the configuration and load the application again; no request is lost."),
    ("USR1", "Open the logs again."),
    ("USR2", "Start a new main process, and stop this one when the new one serves."),
    ("TTIN, TTOU", "Add or remove one worker."),
)

EXIT_CODES = (
    ("0", "stopped as asked"),
    ("1", "any other failure"),
    ("2", "the command line is wrong"),
    ("3", "the file or the environment is wrong"),
    ("4", "the application cannot be loaded"),
    ("5", "an address cannot be opened"),
)

FILE_FORMAT = """\
The file that `poorhttp serve -c FILE` reads. Its section `[http]` has a line `name = value` for
each option. Lines that begin with # or ; are comments. An option that may be given several times
has one value on each of several indented lines.

Sections `[service:NAME]` describe several services of one server, and sections `[host:NAME]` the
differences for requests to a host. The command line and the environment, POORHTTP_NAME, take
precedence over the file. Relative paths are relative to the current directory, or to `chdir`.
"""

EXAMPLE = """\
[http]
target = package.module:application
bind =
    127.0.0.1:8080
    unix:/run/poorhttp.sock
mode = threading
threads = 16"""


def command_page(commands: Sequence[Word]) -> str:
    """Return poorhttp(1)."""
    lines = [
        *_head("poorhttp", "1", "an HTTP server for Python applications"),
        ".SH SYNOPSIS",
        ".B poorhttp",
        r"[\fICOMMAND\fR] [\fITARGET\fR] [\fIOPTION\fR ...]",
        ".SH DESCRIPTION",
        *_paragraphs(DESCRIPTION),
        *_table(TARGETS),
        ".SH COMMANDS",
        *_table([(command.name, command.summary) for command in commands]),
    ]
    for words in alike(commands):
        names = ", ".join(word.name for word in words)
        if any(word.words or len(word.switches) > 1 for word in words):
            lines.append(f".SH OPTIONS OF {_text(names.upper())}")
            for subcommand in words[0].words:
                lines += _item(rf"\fB{_text(subcommand.name)}\fR", subcommand.summary)
            for switch in words[0].switches:
                also = f" Also {', '.join(switch.aliases)}." if switch.aliases else ""
                lines += _item(_names(switch), switch.summary + also)
    lines += [
        ".SH SIGNALS",
        "The main process acts on these:",
        *_table(SIGNALS),
        ".SH EXIT STATUS",
        *_table(EXIT_CODES),
        ".SH SEE ALSO",
        ".BR poorhttp.ini (5)",
    ]
    return "\n".join(lines) + "\n"


def file_page(commands: Sequence[Word]) -> str:
    """Return poorhttp.ini(5)."""
    lines = [
        *_head("poorhttp.ini", "5", "configuration of the server poorhttp"),
        ".SH DESCRIPTION",
        *_paragraphs(FILE_FORMAT),
    ]
    group = ""
    for option in OPTIONS.values():
        if option.group != group:
            group = option.group
            lines.append(f".SH {_text(group.upper())}")
        lines += _option(option)
    lines += [
        ".SH EXAMPLES",
        ".EX",
        *map(_text, EXAMPLE.splitlines()),
        ".EE",
        ".SH SEE ALSO",
        ".BR poorhttp (1)",
    ]
    return "\n".join(lines) + "\n"


def _head(name: str, section: str, summary: str) -> list[str]:
    return [
        rf".\" Made by poorhttp man {section}.",
        f'.TH "{name.upper()}" "{section}" "{DATE}" "poorhttp {VERSION}"',
        ".SH NAME",
        rf"{name} \- {_text(summary)}",
    ]


def _option(option: Option[object]) -> Iterator[str]:
    names = [option.name, *([option.ini_name] if option.ini_name else [])]
    spelled = " or ".join(rf"\fB{_text(name)}\fR" for name in names)
    yield from _item(f"{spelled} = {_value(option.metavar)}", option.summary)
    default = ", ".join(text for text in option.default_texts if text) or "none"
    notes = f"Default: `{default}`" + "; repeatable" * option.repeatable
    notes += "; also in `[host:NAME]`" * option.hosted
    yield ".IP"
    yield _text(notes)
    if option.reason:
        yield ".IP"
        yield _text(option.reason)


def _names(switch: Switch) -> str:
    spelled = ", ".join(rf"\fB{_text(name)}\fR" for name in switch.names)
    if not switch.metavar:
        return spelled
    value = _value(switch.metavar)
    if switch.off:
        return rf"{spelled}[={value}], \fB{_text(switch.off)}\fR"
    return f"{spelled}[={value}]" if switch.optional else f"{spelled} {value}"


def _value(metavar: str) -> str:
    return rf"\fI{_text(metavar)}\fR"


def _table(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for left, right in rows:
        yield from _item(rf"\fB{_text(left)}\fR", right)


def _item(left: str, right: str) -> Iterator[str]:
    yield ".TP"
    yield left
    yield _text(right)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _text(paragraph)


def _text(text: str) -> str:
    """Return a text with its code spans in bold, and nothing that roff would act on."""
    text = visible(text.replace("\n", " ")).replace("\\", r"\e").replace("-", r"\-")
    text = text.replace("'", r"\(aq").replace("^", r"\(ha").replace("~", r"\(ti")
    text = MARKUP.sub(lambda found: rf"\fB{found[1]}\fR" if found[1] else found[2] or "", text)
    text = text.replace("`", r"\(ga").replace("…", "...")
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(rf"\&{line}" if line.startswith(".") else line for line in lines)
