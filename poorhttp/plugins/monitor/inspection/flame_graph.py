"""A profile as a flame graph: SVG without scripts, that any browser shows.

The width of a box is the time in a function and in those that it calls, which stand above it. The
order from left to right is that of the names.
"""

from __future__ import annotations

from collections.abc import Mapping

from poorhttp._core import escape

#: Pixels: of the picture, of a row, of a letter, of the narrowest box, and around.
WIDTH = 1200
ROW = 18
LETTER = 6.6
NARROWEST = 0.4
EDGE = 10

#: Beginnings of files of libraries, as the sampler shortens them; `<` is that of built-in modules.
LIBRARIES = ("site-packages/", "dist-packages/", "python3.", "<")

#: Most rows. Innermost frames of deeper stacks are left out.
MOST_ROWS = 130

#: Most boxes; a stack that needs more is left out.
MOST_BOXES = 20_000

STYLE = """
svg { background: #fff; color: #222; font: 11px ui-monospace, Menlo, Consolas, monospace }
text { fill: currentColor; pointer-events: none }
.title { font: 15px system-ui, sans-serif }
rect { stroke: #fff; stroke-width: .6 }
rect:hover { stroke: #000; stroke-width: 1.2 }
.a { fill: #f6b26b } .b { fill: #f3a25a } .c { fill: #f9c184 } .d { fill: #f0b04c }
.l { fill: #a9c7e8 } .m { fill: #bcd3ee } .r { fill: #ddd }
@media (prefers-color-scheme: dark) {
svg { background: #16181c; color: #eee }
rect { stroke: #16181c }
rect:hover { stroke: #fff }
.a { fill: #9c5a1c } .b { fill: #8f4f14 } .c { fill: #a9682a } .d { fill: #8a6212 }
.l { fill: #34557a } .m { fill: #3d628c } .r { fill: #44474d }
}
"""


class Node:
    """A function, called in one way.

    Attributes:
        took: milliseconds, with those of the functions that it has called.
        called: these functions.
    """

    def __init__(self) -> None:
        self.took = 0
        self.called: dict[str, Node] = {}

    def add(self, frames: list[str], took: int) -> None:
        """Add a stack."""
        node = self
        node.took += took
        for frame in frames:
            node = node.called.setdefault(frame, Node())
            node.took += took


def svg(found: Mapping[str, int], title: str) -> str:
    """Return stacks, as `OUTER;INNER` with their milliseconds, as SVG."""
    root = Node()
    for stack, took in found.items():
        root.add(stack.split(";")[:MOST_ROWS], took)
    boxes: list[tuple[int, float, float, str, int]] = []
    if root.took:
        _place(root, "all", 0, EDGE, (WIDTH - 2 * EDGE) / root.took, boxes)
    depth = max((box[0] for box in boxes), default=0) + 1
    height = depth * ROW + 60
    summary = f"{title}: {root.took / 1000:.2f} s in requests and computing threads"
    if not root.took:
        summary = f"{title}: no request was in flight, and no thread computed"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">\n'
        f"<title>{_clean(summary)}</title>\n<style>{STYLE}</style>\n"
        f'<text class="title" x="{EDGE}" y="24">{_clean(summary)}</text>\n'
    ]
    for level, left, width, name, took in boxes:
        top = height - 20 - (level + 1) * ROW
        share = 100 * took / root.took
        parts.append(
            f"<g><title>{_clean(name)}: {took} ms, {share:.1f} %</title>"
            f'<rect class="{_kind(name)}" x="{left:.1f}" y="{top}" width="{width:.1f}" '
            f'height="{ROW - 1}" rx="1"/>'
        )
        room = int((width - 6) / LETTER)
        if room >= 3:
            shown = name if len(name) <= room else f"{name[: room - 1]}…"
            parts.append(f'<text x="{left + 3:.1f}" y="{top + 12}">{_clean(shown)}</text>')
        parts.append("</g>\n")
    parts.append("</svg>\n")
    return "".join(parts)


def _place(
    node: Node,
    name: str,
    level: int,
    left: float,
    scale: float,
    boxes: list[tuple[int, float, float, str, int]],
) -> None:
    """Add the boxes of a function and of those that it calls: level, left, width, name, time."""
    width = node.took * scale
    if width < NARROWEST or len(boxes) >= MOST_BOXES:
        return
    boxes.append((level, left, width, name, node.took))
    for inner, called in sorted(node.called.items()):
        _place(called, inner, level + 1, left, scale, boxes)
        left += called.took * scale


def _kind(name: str) -> str:
    """Return the class of a box: libraries are blue, the rest orange, in shades by name."""
    if name == "all" or name.startswith("[thread "):
        return "r"
    shade = sum(name.encode("utf-8", "replace"))
    if name.rpartition("(")[2].startswith(LIBRARIES):
        return "lm"[shade % 2]
    return "abcd"[shade % 4]


def _clean(text: str) -> str:
    """Escape text for XML, which cannot have control characters or surrogates at all."""
    return escape("".join(each if each.isprintable() else "?" for each in text))
