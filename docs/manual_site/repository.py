"""Links from the manual to files of the repository that are no pages of it.

They lead to the repository on the web if its address is known: from POORHTTP_REPOSITORY, or in
GitHub's actions. Otherwise their text is shown with the path of the file. POORHTTP_REVISION names
the tag or branch. A file that is missing is a warning, which fails the build, in both cases.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent.parent

logger = logging.getLogger(__name__)


def address() -> str:
    """The web address of the repository, without a slash at its end; empty if it is unknown."""
    given = os.environ.get("POORHTTP_REPOSITORY", "")
    server, name = (os.environ.get(f"GITHUB_{part}", "") for part in ("SERVER_URL", "REPOSITORY"))
    if not given and server and name:
        given = f"{server}/{name}"
    return given.rstrip("/")


def revision() -> str:
    """The tag or branch that the manual is made of."""
    return os.environ.get("POORHTTP_REVISION", "") or os.environ.get("GITHUB_SHA", "") or "main"


def theme_options() -> dict[str, str]:
    """Options of the theme: the pages' source."""
    if not address():
        return {"top_of_page_buttons": ""}
    # The theme knows the addresses of some hosts only; these are GitHub's, and Gitea has them too.
    return {
        "source_view_link": f"{address()}/blob/{revision()}/docs/{{filename}}",
        "source_edit_link": f"{address()}/edit/main/docs/{{filename}}",
    }


class RepositoryLinks(SphinxTransform):
    """Resolve links to files outside of docs/."""

    # Before references are collected from the document.
    default_priority = 200

    def apply(self, **_: Any) -> None:
        """Replace the links of one page."""
        found = self.document.findall(
            lambda node: isinstance(node, (addnodes.pending_xref, addnodes.download_reference))
        )
        for node in [node for node in found if isinstance(node, nodes.Element)]:
            if node.get("reftype") == "myst":
                self._resolve(node)

    def _resolve(self, node: nodes.Element) -> None:
        docs = Path(self.env.srcdir).resolve()
        target, _, anchor = str(node["reftarget"]).partition("#")
        if not target:
            return
        if node["refdomain"] == "doc":
            # A page by its path in docs/, without the ending.
            path = Path(os.path.normpath(docs / f"{target}.md"))
            anchor = node.get("reftargetid") or ""
        else:
            path = Path(os.path.normpath(docs / Path(self.env.docname).parent / target))
        if path.is_relative_to(docs) or not path.is_relative_to(ROOT):
            return
        name = str(path.relative_to(ROOT))
        if not path.exists():
            logger.warning(
                "the link to %s leads nowhere: there is no such file", name, location=node
            )
        if address():
            kind = "tree" if path.is_dir() else "blob"
            uri = f"{address()}/{kind}/{revision()}/{name}" + (f"#{anchor}" if anchor else "")
            link = nodes.reference("", "", *node.children, refuri=uri, internal=False)
            node.replace_self(link)
        elif node.astext().strip("/") == name:
            node.replace_self(nodes.literal(name, name))
        else:
            shown = [*node.children, nodes.Text(" ("), nodes.literal(name, name), nodes.Text(")")]
            node.replace_self(nodes.inline("", "", *shown))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform."""
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
