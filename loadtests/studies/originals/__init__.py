"""What the old documents had, where several studies need it."""

from __future__ import annotations
