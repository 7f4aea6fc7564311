"""Generates the web sites of two benchmark studies, Uniserve and KLone: pages and images.

The pictures are real ones, drawn with some noise so that they do not get smaller than they should
be. What is missing to the exact size stands behind the end of the picture. Every run makes the
same.
"""

from __future__ import annotations

import functools
import math
from io import BytesIO
from pathlib import Path
from random import Random

#: Octets of each page (the study says 8.6 ko, and its logs have 8,599 and 8,617).
PAGE = 8_600

#: Octets of each image, and how large it is drawn, so that it comes out a little smaller than that.
IMAGES = {
    "logo.gif": (1_900, 40, 24),
    "2.jpg": (44_000, 336, 240),
    "3.png": (66_100, 320, 272),
    "4.gif": (79_600, 288, 224),
    "5.png": (145_000, 496, 392),
}

FORMATS = {"gif": "GIF", "jpg": "JPEG", "png": "PNG"}
"""The names of Pillow."""

#: The page of a number shows the first images, as many as its number.
PAGES = range(1, 6)

#: Of the KLone study.
SMALL_PAGE = 1_536
LARGE_FILE = 10 * 2**20


def draw(width: int, height: int) -> bytes:
    """Shades of grey, row by row: rings around a point, in the noise of a cheap camera."""

    @functools.cache
    def row(away: float) -> bytes:
        """One of two that are as far from the middle, without noise."""
        rings = (math.hypot(x - width / 3, away) / 7 for x in range(width))
        return bytes(int(127 + 90 * math.sin(ring)) for ring in rings)

    rows = b"".join(row(abs(y - height / 2)) for y in range(height))
    # Five bits of each word.
    noise = Random(width * height).randbytes(4 * width * height)[3::4]
    return bytes(shade + (bits >> 3) for shade, bits in zip(rows, noise, strict=True))


@functools.cache
def image(name: str) -> bytes:
    """One of the images."""
    # Only now: servers import this file for its pages.
    from PIL import Image

    octets, *size = IMAGES[name]
    file = BytesIO()
    Image.frombytes("L", (size[0], size[1]), draw(*size)).save(file, FORMATS[name[-3:]], quality=95)
    if len(made := file.getvalue()) > octets:
        raise ValueError(f"{name} has {len(made)} octets, and should have {octets}")
    return made.ljust(octets)


def page(title: str, names: list[str], octets: int) -> bytes:
    """A page of a size that shows images."""
    shown = "".join(f'<p><img src="{name}" alt="{name}">\n' for name in names)
    top = (
        f"<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n<title>{title}</title>\n"
        f"<h1>{title}</h1>\n{shown}<p>\n"
    )
    line = "To serve a page is to read it, to send it, and to say how long it is.\n"
    text = (top + line * (octets // len(line))).encode()
    end = b"\n</html>\n"
    return text[: octets - len(end)] + end


def make(folder: Path, *, klone: bool = False) -> None:
    """Writes everything into a folder, which is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(IMAGES)
    for name in names:
        (folder / name).write_bytes(image(name))
    for number in PAGES:
        title = f"Page {number}"
        (folder / f"index{number}.html").write_bytes(page(title, names[:number], PAGE))
    if klone:
        (folder / "page.html").write_bytes(page("A page of 1.5 KB", [], SMALL_PAGE))
        (folder / "large.bin").write_bytes(Random(1).randbytes(LARGE_FILE))
