"""Lists of the lab in INI files: a section for each entry, with texts over one line or several."""

from __future__ import annotations

from configparser import ConfigParser, ExtendedInterpolation, SectionProxy
from pathlib import Path


def sections(python: str, name: str) -> list[SectionProxy]:
    """The sections of a file beside that of the code; `${section:name}` stands for another text."""
    read = ConfigParser(delimiters="=", comment_prefixes="#", interpolation=ExtendedInterpolation())
    read.read(Path(python).with_name(name), encoding="utf-8")
    return [read[section] for section in read.sections()]


def texts(section: SectionProxy) -> dict[str, str]:
    """The texts of a section by their names, each on one line."""
    return {name: " ".join(text.split()) for name, text in section.items()}
