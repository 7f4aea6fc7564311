"""The HTTP client of the tests, which is the strict one of the lab, and the limit of a wait."""

from __future__ import annotations

from loadtests.clients.strict import BadResponse, Closed, Connection, Response
from loadtests.measure.waiting import HANG

__all__ = ["HANG", "BadResponse", "Closed", "Connection", "Response"]
