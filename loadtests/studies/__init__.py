"""The tests of the old studies, on our server and others: one command per file.

`study` is what they have in common, `command` their command line.
"""

from __future__ import annotations
