"""What asks: a client a file. `load` is what all of them answer."""

from __future__ import annotations
