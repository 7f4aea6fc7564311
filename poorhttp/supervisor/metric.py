"""The class `Metric`: a number that a plug-in adds to those of the server (`poorhttp.metrics`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from poorhttp.supervisor.component import Main

    #: A number; or labels with a number each, where a metric has labels.
    Found: TypeAlias = float | Iterable[tuple[Mapping[str, str], float]]

KINDS = ("counter", "gauge")


class Metric:
    """A metric; its name is that of the entry point, behind `poorhttp_plugin_`.

    Attributes:
        kind: `counter`, which only grows while the main process runs, or `gauge`.
        description: a sentence for those who read a dashboard.
        read: called in the main process each time that metrics are asked for, with the `Main` that
            components have; returns at once.
    """

    def __init__(self, kind: str, description: str, read: Callable[[Main], Found]) -> None:
        if kind not in KINDS:
            raise ValueError(f'"{kind}" is no kind of a metric; write one of {", ".join(KINDS)}')
        self.kind = kind
        self.description = description
        self.read = read
