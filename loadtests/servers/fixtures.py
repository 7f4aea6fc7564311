"""Files that measured servers publish: made in a temporary folder, removed at the end."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from loadtests.apps import study_sites
from loadtests.clients.connection import Answer
from loadtests.servers.application import Application

PUBLISHED = Path(__file__).with_name("published")
TABLE = "?name=Uniserve+%26+KLone"


@dataclass(frozen=True)
class Published(Application):
    """Files of a folder, answered as they are, all of one media type."""

    type: str = "text/html; charset=utf-8"

    def answer(self, target: str, body: bytes) -> Answer:
        return Answer(200, self.type, (self.path / target.lstrip("/")).read_bytes())


@dataclass(frozen=True)
class Reporting(Application):
    """Programs that report what they were told, of which every server tells something else."""

    def answer(self, target: str, body: bytes) -> Answer:
        """The beginning of the report, and the line of the query."""
        query = target.partition("?")[2]
        return Answer(200, "text/plain", f"What this program was told:\n{query}".encode("ascii"))

    def accepts(self, answer: Answer, right: Answer) -> bool:
        """Whether the query has arrived and come back."""
        begins, _, query = right.body.partition(b"\n")
        return (
            answer.status == right.status
            and answer.body.startswith(begins)
            and b"\nQUERY_STRING = " + query + b"\n" in answer.body
        )


class Fixtures:
    """The folders, as a context manager: `static`, `cgi`, `pages`, `php` and `view`."""

    def __init__(self) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="loadtests-content-")
        folder = Path(self._temporary.name)
        # Apache gives up root's rights before it reads anything.
        folder.chmod(0o755)
        shutil.copytree(PUBLISHED, folder, dirs_exist_ok=True)
        self.static = Published(str(folder / "static"))
        self.cgi = Reporting(str(folder / "cgi"))
        self.view = Application(str(folder / "view"), "table", dated=True)
        # The page with the table, as that view makes it to the same query; the time differs.
        rendered = Application("", dated=True, view=self.view, at="/table" + TABLE)
        self.pages = replace(rendered, folder=str(folder / "pages"))
        self.php = replace(rendered, folder=str(folder / "php"))
        study_sites.make(self.static.path, klone=True)

    def __enter__(self) -> Fixtures:
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.cleanup()


def visits() -> list[list[str]]:
    """Targets that a browser requests to show each of the five pages."""
    names = [f"/{name}" for name in study_sites.IMAGES]
    return [[f"/index{number}.html", *names[:number]] for number in study_sites.PAGES]
