"""The site made by apps/site: sizes as in the Uniserve study, valid images."""

from __future__ import annotations

import re
import struct
import sys
import zlib
from pathlib import Path

import pytest

from tests.testkit.server import ROOT, run

SCRIPT = ROOT / "apps" / "site" / "make_site.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the script makes."""
    folder = tmp_path_factory.mktemp("site")
    run(sys.executable, SCRIPT, folder, "--klone")
    return folder


def test_sizes_of_the_site(site: Path, tmp_path: Path) -> None:
    """As in the studies: 8.6 kB, 1.9 kB and so on; and the same every time."""
    assert {path.name: path.stat().st_size for path in site.iterdir()} == {
        **{f"index{number}.html": 8_600 for number in range(1, 6)},
        "logo.gif": 1_900,
        "2.jpg": 44_000,
        "3.png": 66_100,
        "4.gif": 79_600,
        "5.png": 145_000,
        "page.html": 1_536,
        "large.bin": 10 * 2**20,
    }
    run(sys.executable, SCRIPT, tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {name: (site / name).read_bytes() for name in made}
    assert len(made) == 10


def test_pages_of_the_site(site: Path) -> None:
    images = ["logo.gif", "2.jpg", "3.png", "4.gif", "5.png"]
    for number in range(1, 6):
        page = (site / f"index{number}.html").read_text()
        assert re.findall('<img src="(.*?)"', page) == images[:number]
        assert page.endswith("\n</html>\n")


def test_images_of_the_site(site: Path) -> None:
    """They are what their names say, from their first octet to their last."""
    for name in ("3.png", "5.png"):
        rows = inflated_png((site / name).read_bytes())
        assert {row[0] for row in rows} == {0}
        assert len(set(rows)) == len(rows)
    for name in ("logo.gif", "4.gif"):
        assert len(set(shades_of_gif((site / name).read_bytes()))) > 100
    jpeg = (site / "2.jpg").read_bytes()
    assert segments_of_jpeg(jpeg) == [0xD8, 0xE0, 0xFE, 0xDB, 0xC0, 0xC4, 0xC4, 0xDA, 0xD9]


def inflated_png(data: bytes) -> list[bytes]:
    """The rows of a picture, each with its filter, once every checksum is looked at."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        end = at + 12 + length
        assert int.from_bytes(data[end - 4 : end], "big") == zlib.crc32(kind + body)
        chunks[kind] = body
        at = end
    assert list(chunks) == [b"IHDR", b"tEXt", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 2, 0, 0, 0]
    pixels = zlib.decompress(chunks[b"IDAT"])
    row = 1 + 3 * width
    assert len(pixels) == row * height
    return [pixels[start : start + row] for start in range(0, len(pixels), row)]


def shades_of_gif(data: bytes) -> bytes:
    """The shades of a picture, as many as there are places for."""
    assert data.startswith(b"GIF89a")
    assert data.endswith(b"\0;")
    width, height = struct.unpack("<HH", data[6:10])
    at = 13 + 3 * 256
    assert data[at : at + 2] == b"!\xfe"
    _, at = joined_blocks(data, at + 2)
    assert data[at : at + 1] == b","
    assert data[at + 10] == 8
    packed, at = joined_blocks(data, at + 11)
    assert at == len(data) - 1
    shades = unpacked_lzw(packed)
    assert len(shades) == width * height
    return shades


def joined_blocks(data: bytes, at: int) -> tuple[bytes, int]:
    """The content of blocks, and where what is behind them begins."""
    content = b""
    while length := data[at]:
        content += data[at + 1 : at + 1 + length]
        at += 1 + length
    return content, at + 1


def unpacked_lzw(packed: bytes) -> bytes:
    """What was compressed, by codes of 9 to 12 bits."""
    bits, position, size = int.from_bytes(packed, "little"), 0, 9
    shades: list[bytes] = []
    table: list[bytes] = []
    before = b""
    while True:
        code = bits >> position & (1 << size) - 1
        bits, position = bits >> (position + size), 0
        if code == 257:
            return b"".join(shades)
        if code == 256:
            table = [bytes([shade]) for shade in range(256)] + [b"", b""]
            before, size = b"", 9
            continue
        shade = table[code] if code < len(table) else before + before[:1]
        shades.append(shade)
        if before and len(table) < 4096:
            table.append(before + shade[:1])
            size = min(12, len(table).bit_length())
        before = shade


def segments_of_jpeg(data: bytes) -> list[int]:
    """The markers of a picture, in their order."""
    markers = [data[1]]
    at = 2
    while markers[-1] != 0xDA:
        assert data[at] == 0xFF
        markers.append(data[at + 1])
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    end = data.index(b"\xff\xd9", at)
    # In between no octet may look like a marker.
    assert b"\xff" not in data[at:end].replace(b"\xff\0", b"")
    assert end == len(data) - 2
    return [*markers, data[end + 1]]
