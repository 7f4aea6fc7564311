"""Errors of the lab, with messages for the person who runs it."""

from __future__ import annotations


class LabError(Exception):
    """The lab cannot go on: a tool is missing, a name unknown, the build not a release build."""


class ServerFailure(Exception):
    """One server did not start, answered wrongly or died; the others can still be measured."""
