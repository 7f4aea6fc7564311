"""Generates the web sites of two benchmark studies, Uniserve and KLone: pages and images.

The pictures are real ones, drawn with some noise so that they do not get smaller than they should
be. What is missing to the exact size is a comment in the file. Every run makes the same.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

#: Octets of each page (the study says 8.6 ko, and its logs have 8,599 and 8,617).
PAGE = 8_600

#: Octets of each image, and how large it is drawn, so that it comes out a little smaller than that.
IMAGES = {
    "logo.gif": (1_900, 40, 24),
    "2.jpg": (44_000, 304, 216),
    "3.png": (66_100, 256, 192),
    "4.gif": (79_600, 288, 224),
    "5.png": (145_000, 400, 288),
}

#: The page of a number shows the first images, as many as its number.
PAGES = range(1, 6)

#: Of the KLone study.
SMALL_PAGE = 1_536
LARGE_FILE = 10 * 2**20

#: Shades of grey in a picture.
SHADES = 256


# Pictures


def draw(width: int, height: int) -> list[list[int]]:
    """Return rows of shades: rings around a point, in the noise of a cheap camera."""
    random = Random(width * height)
    return [
        [
            int(127 + 90 * math.sin(math.hypot(x - width / 3, y - height / 2) / 7))
            + random.getrandbits(5)
            for x in range(width)
        ]
        for y in range(height)
    ]


class Bits:
    """Codes of different lengths, written one after the other."""

    def __init__(self) -> None:
        self.value = self.length = 0

    def take(self, octets: bytearray, *, lowest_first: bool) -> None:
        """Move what is complete to `octets`."""
        while self.length >= 8:
            self.length -= 8
            if lowest_first:
                octets.append(self.value & 255)
                self.value >>= 8
            else:
                octets.append(self.value >> self.length)
                self.value &= (1 << self.length) - 1


def gif(rows: list[list[int]], octets: int) -> bytes:
    """Return a GIF (GIF89a) of a size."""
    width, height = len(rows[0]), len(rows)
    screen = struct.pack("<HHBBB", width, height, 0b1111_0111, 0, 0)
    palette = bytes(shade for shade in range(SHADES) for _ in range(3))
    image = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0)
    data = lzw(shade for row in rows for shade in row)
    head = b"GIF89a" + screen + palette
    tail = image + b"\x08" + blocks(data) + b"\0;"
    missing = octets - len(head) - len(tail)
    return head + b"!\xfe" + blocks_of_size(missing - 3) + b"\0" + tail


def lzw(shades: Iterable[int]) -> bytes:
    """Compress the shades as a GIF has them: codes of 9 to 12 bits, the lowest bit first."""
    clear, end = SHADES, SHADES + 1
    bits, octets = Bits(), bytearray()

    def put(code: int, length: int) -> None:
        bits.value |= code << bits.length
        bits.length += length
        bits.take(octets, lowest_first=True)

    known: dict[tuple[int, int], int] = {}
    length, prefix = 9, -1
    put(clear, length)
    for shade in shades:
        if prefix < 0:
            prefix = shade
        elif (prefix, shade) in known:
            prefix = known[prefix, shade]
        else:
            put(prefix, length)
            code = end + 1 + len(known)
            if code < 4096:
                known[prefix, shade] = code
                # Whoever reads it learns a code one step later.
                length += code == 1 << length
            else:
                put(clear, length)
                known.clear()
                length = 9
            prefix = shade
    put(prefix, length)
    put(end, length)
    put(0, 7)
    return bytes(octets)


def blocks(data: bytes) -> bytes:
    """Return data in the blocks of a GIF, each with its length before it."""
    parts = [data[start : start + 255] for start in range(0, len(data), 255)]
    return b"".join(bytes([len(part)]) + part for part in parts)


def blocks_of_size(octets: int) -> bytes:
    """Return blocks with spaces that take so many octets, which is not 1."""
    parts = []
    while octets:
        # One octet alone would be a block of nothing, which is the end.
        part = min(octets, 256 if octets != 257 else 255)
        parts.append(bytes([part - 1]) + b" " * (part - 1))
        octets -= part
    return b"".join(parts)


def png(rows: list[list[int]], octets: int) -> bytes:
    """Return a PNG of a size, in colours."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    lines = b"".join(
        b"\0" + bytes(part for shade in row for part in (shade, shade ^ 85, 255 - shade))
        for row in rows
    )
    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size)
    tail = chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    comment = b"Comment\0"
    missing = octets - len(head) - len(tail) - len(chunk(b"tEXt", comment))
    return head + chunk(b"tEXt", comment + b" " * missing) + tail


def jpeg(rows: list[list[int]], octets: int) -> bytes:
    """Return a JPEG (baseline, shades of grey) of a size."""

    def segment(marker: int, data: bytes) -> bytes:
        return struct.pack(">BBH", 255, marker, len(data) + 2) + data

    # All codes of a table have the same length: that takes more room, and no table of frequencies.
    lengths_of = [bytes([0, 0, 0, 12]) + bytes(12), bytes(7) + bytes([len(RUNS)]) + bytes(8)]
    size = struct.pack(">BHHBBBB", 8, len(rows), len(rows[0]), 1, 1, 0x11, 0)
    head = b"\xff\xd8" + segment(0xE0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")
    tail = (
        segment(0xDB, b"\0" + bytes([STEP]) * 64)
        + segment(0xC0, size)
        + segment(0xC4, b"\x00" + lengths_of[0] + bytes(range(12)))
        + segment(0xC4, b"\x10" + lengths_of[1] + bytes(RUNS))
        + segment(0xDA, bytes([1, 1, 0, 0, 63, 0]))
        + scan(rows)
        + b"\xff\xd9"
    )
    missing = octets - len(head) - len(tail)
    return head + segment(0xFE, b" " * (missing - 4)) + tail


#: By how much every coefficient is divided.
STEP = 12

#: What a code of a coefficient means: zeros before it, and bits of it; the end; sixteen zeros.
RUNS = [run << 4 | bits for run in range(16) for bits in range(1, 11)] + [0x00, 0xF0]

#: Order in which the coefficients of a block are written.
ZIGZAG = sorted(
    ((u, v) for u in range(8) for v in range(8)),
    key=lambda place: (sum(place), place[1 - sum(place) % 2]),
)

#: The cosine transform of eight values.
COSINES = [
    [
        math.cos((2 * x + 1) * u * math.pi / 16) / 2 * (math.sqrt(0.5) if u == 0 else 1)
        for x in range(8)
    ]
    for u in range(8)
]


def scan(rows: list[list[int]]) -> bytes:
    """Compress the shades, in blocks of eight by eight."""
    codes = {run: code for code, run in enumerate(RUNS)}
    bits, octets = Bits(), bytearray()

    def put(code: int, length: int) -> None:
        bits.value = bits.value << length | code
        bits.length += length
        bits.take(octets, lowest_first=False)

    def put_number(number: int) -> None:
        length = abs(number).bit_length()
        put(number if number > 0 else number + (1 << length) - 1, length)

    before = 0
    for block in blocks_of(rows):
        first, *others = coefficients(block)
        put(abs(first - before).bit_length(), 4)
        put_number(first - before)
        before = first
        zeros = 0
        for number in others:
            if number == 0:
                zeros += 1
                continue
            while zeros > 15:
                put(codes[0xF0], 8)
                zeros -= 16
            put(codes[zeros << 4 | abs(number).bit_length()], 8)
            put_number(number)
            zeros = 0
        if zeros:
            put(codes[0x00], 8)
    put(0x7F, 7)
    # What looks like a marker has a zero behind it.
    return bytes(octets).replace(b"\xff", b"\xff\0")


def blocks_of(rows: list[list[int]]) -> Iterator[list[list[int]]]:
    """Return the blocks of a picture whose sides are multiples of eight."""
    for y in range(0, len(rows), 8):
        for x in range(0, len(rows[0]), 8):
            yield [row[x : x + 8] for row in rows[y : y + 8]]


def coefficients(block: list[list[int]]) -> list[int]:
    """Transform a block, and divide what comes out."""
    lines = [
        [
            sum(c * (shade - 128) for c, shade in zip(cosines, row, strict=True))
            for cosines in COSINES
        ]
        for row in block
    ]
    columns = list(zip(*lines, strict=True))
    return [
        round(sum(c * value for c, value in zip(COSINES[u], columns[v], strict=True)) / STEP)
        for u, v in ZIGZAG
    ]


MAKERS = {".gif": gif, ".png": png, ".jpg": jpeg}


def image(name: str) -> bytes:
    """Return one of the images."""
    octets, width, height = IMAGES[name]
    made = MAKERS[name[-4:]](draw(width, height), octets)
    if len(made) != octets:
        raise ValueError(f"{name} has {len(made)} octets, and should have {octets}")
    return made


# Pages


def page(title: str, names: list[str], octets: int) -> bytes:
    """Return a page of a size that shows images."""
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
    """Write everything into a folder, which is made where it is missing."""
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
