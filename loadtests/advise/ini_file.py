"""Reader of the server's ini file (docs/guides): sections, values, and the lines they stand on.

A comment is on a line of its own, `name = value` begins a line, and what is indented below belongs
to the value. Whether a file is right is for the server to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Section:
    """`lines` are the numbers, from 1, of the lines of each name, `values` its values, joined."""

    name: str
    line: int
    lines: dict[str, list[int]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)


def sections(text: str) -> list[Section]:
    found: list[Section] = []
    name = ""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if raw[0] in " \t" and name:
            found[-1].lines[name].append(number)
            found[-1].values[name] = f"{found[-1].values[name]}\n{line}".strip()
        elif line[0] == "[":
            found.append(Section(line.strip("[] \t"), number))
            name = ""
        elif found:
            name, _, value = (part.strip() for part in line.partition("="))
            found[-1].lines[name] = [number]
            found[-1].values[name] = value
    return found
