"""Figures of the old studies that several studies need."""

from __future__ import annotations
