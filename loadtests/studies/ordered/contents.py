"""Requests of the study `ordered`: content, number, concurrency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from loadtests.servers.fixtures import TABLE, Fixtures
from loadtests.servers.registry import Server
from loadtests.servers.registry.studies import CGI, FILES, FLOOR, TEMPLATES
from loadtests.studies.study import Scale

LEAST = 10
"""Requests of the smallest sample, as far as the study made so many."""


@dataclass(frozen=True)
class Content:
    """`requests` by `at_once` clients in `rounds`, each on a connection of its own, in FULL.

    A smaller scale makes its share of them, and `ease` times as many of what is quickly made.
    After `longest` seconds a sample is over, whatever is still unanswered.
    """

    name: str
    title: str
    target: str
    at_once: Sequence[int]
    requests: int
    rounds: int
    longest: float
    ease: float = 1.0

    def number(self, scale: Scale) -> int:
        share = min(scale.share * self.ease, 1.0)
        return max(min(LEAST, self.requests), round(self.requests * share))

    def levels(self, scale: Scale) -> list[int]:
        """Clients at once: no more than requests, and for all of these if the study had that."""
        most = self.number(scale)
        levels = [level for level in self.at_once if level <= most]
        return levels or [most]

    def servers(self, fixtures: Fixtures) -> Mapping[str, Server]:
        """Those that serve it, each with its application and target, by name, in order."""
        target = self.target
        if self.name == "template":
            php = target.replace(".html", ".php")
            found = [
                replace(one, application=fixtures.pages, target=target)
                if one.ours
                else replace(one, application=fixtures.php, target=php)
                for one in TEMPLATES
            ]
        elif self.name in ("page", "file"):
            # The floor has but one answer, and that from its memory.
            files = [FLOOR, *FILES] if self.name == "page" else FILES
            found = [replace(one, application=fixtures.static, target=target) for one in files]
        else:
            found = [
                replace(one, application=fixtures.cgi, target=one.target + target, forks=True)
                for one in CGI
            ]
        return {one.name: one for one in found}


_UP_TO_ALL = (1, 10, 100, 1_000)
PAGE = Content("page", "1.5 KB page", "/page.html", _UP_TO_ALL, 1_000, 2, 8, ease=10)
FILE = Content("file", "10 MB file", "/large.bin", (100,), 100, 2, 40)
SHELL = Content("cgi-shell", "CGI program in shell", "/report.sh?a=1", _UP_TO_ALL, 1_000, 1, 30)
PERL = Content("cgi-perl", "CGI program in Perl", "/report.pl?a=1", (200,), 200, 1, 30)
_BY_EITHER = "page with a table, by a template of ours or by PHP"
TEMPLATE = Content("template", _BY_EITHER, f"/table.html{TABLE}", (1, 100, 1_000), 1_000, 2, 20)
CONTENTS = (PAGE, FILE, SHELL, PERL, TEMPLATE)
