"""Load generators, one client per file. All return a `load.Load`."""

from __future__ import annotations
