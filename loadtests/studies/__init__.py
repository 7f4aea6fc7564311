"""The tests of the old studies, on us and on our peers: a command a file.

`study` is what they have in common, `command` their command line.
"""

from __future__ import annotations
