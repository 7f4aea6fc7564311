"""Encoders of gzip, Brotli and zstd for the reactor; the sources are in `core/`.

An extension module of its own, which only a server with compression loads.
"""

from typing import Final

encoders: Final[object]
"""A capsule for the reactor."""
