"""Every server of the studies, in the order of their tables.

`WSGI` serve an application by themselves, `PROXIED` are ours behind a proxy, `STATIC` serve files.
Whoever is missing is left out and named.
"""

from __future__ import annotations

from loadtests.studies.contestants.colours import colour_of
from loadtests.studies.contestants.pages import application_of, with_pages
from loadtests.studies.contestants.proxied import PROXIED
from loadtests.studies.contestants.static import NOT_PACKAGED, STATIC
from loadtests.studies.contestants.wsgi import WSGI

__all__ = [
    "NOT_PACKAGED",
    "PROXIED",
    "STATIC",
    "WSGI",
    "application_of",
    "colour_of",
    "with_pages",
]
