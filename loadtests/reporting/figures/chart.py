"""An empty figure of a width, with a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, FAINT, PAPER = "#1d2430", "#5c6675", "#ffffff"
MARKS = "os^Dv"
WIDE, NARROW = 860, 360
"""Pixels: the widths of a page, and of a phone."""
SMALL = 11
LETTER = 7.3
"""Pixels of a letter, more or less."""


def chart(
    width: int, height: float, handles: Sequence[Artist] = (), *, above: bool = False
) -> Figure:
    """A figure with a legend below or above, which makes it so much taller. Bold names are ours."""
    one = max((len(str(handle.get_label())) for handle in handles), default=0) * LETTER + 45
    columns = max(1, min(len(handles), int(width // one)))
    tall = height + math.ceil(len(handles) / columns) * 18 + (14 if handles else 0)
    made = Figure(figsize=(width / 72, tall / 72))
    FigureCanvasSVG(made)
    if handles:
        legend = made.legend(
            handles=handles,
            loc="outside upper left" if above else "outside lower left",
            ncols=columns,
        )
        for text, handle in zip(legend.get_texts(), handles, strict=True):
            text.set_fontweight(handle.get_gid() or "normal")
            handle.set_gid(None)
    return made


def nothing(width: int) -> Figure:
    """Says that there is nothing to be seen."""
    made = chart(width, 64)
    made.text(0.5, 0.5, "nothing was measured", color=FAINT, ha="center", va="center")
    return made
