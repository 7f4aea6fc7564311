"""Tables of contents, made of the lists in the pages `index.md`.

A page is in the manual where a list or a table of the index of its folder links to it; headings
above lists are shown in the sidebar. So an index is plain Markdown, which GitHub shows as well, and
no list has to be written twice.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

if TYPE_CHECKING:
    from sphinx.application import Sphinx


#: The beginning or the end of a list or a row: `/` of an end, the name, the classes.
LIST_TAGS = re.compile(r'<(/?)(ul|li)(?: class="([^"]*)")?>')


class Contents(SphinxTransform):
    """Add a hidden table of contents to an index page for each list of links."""

    default_priority = 300

    def apply(self, **_: Any) -> None:
        """Read the lists of one page."""
        page = self.env.docname
        folder, name = posixpath.split(page)
        if name != "index":
            return
        seen: set[str] = set()
        for block in list(self.document.findall(is_list)):
            entries: list[str] = []
            for link in block.findall(addnodes.pending_xref):
                target = str(link["reftarget"])
                below = target.startswith(f"{folder}/") if folder else is_part(target)
                if link["refdomain"] == "doc" and below and target not in {*seen, page}:
                    entries.append(target)
                    seen.add(target)
            if entries:
                block.parent.append(self._tree(block, entries))

    def _tree(self, block: nodes.Node, entries: list[str]) -> nodes.Node:
        """Build what the directive `toctree` builds."""
        section = block.parent
        title = section[0].astext() if isinstance(section[0], nodes.title) else ""
        # A list below "When something is wrong:" is a group of its own.
        label = section[section.index(block) - 1]
        if isinstance(label, nodes.paragraph) and (text := label.astext()).endswith(":"):
            title += f": {text[0].lower()}{text[1:-1]}"
        is_group = isinstance(section.parent, nodes.section)
        tree = addnodes.toctree(
            parent=self.env.docname,
            entries=[(None, entry) for entry in entries],
            includefiles=entries,
            maxdepth=-1,
            caption=None,
            glob=False,
            hidden=True,
            includehidden=False,
            numbered=0,
            titlesonly=True,
            rawentries=[],
            group=title if is_group else "",
        )
        return nodes.compound("", tree, classes=["toctree-wrapper"])


def is_list(node: nodes.Node) -> bool:
    """Say whether a node is a list or a table that is not within another list."""
    if not isinstance(node, (nodes.bullet_list, nodes.table)):
        return False
    return isinstance(node.parent, (nodes.section, nodes.document))


def is_part(page: str) -> bool:
    """Say whether a page is the index of a part of the manual."""
    return posixpath.basename(page) == "index" and page.count("/") == 1


class Navigation:
    """The tree of pages in the sidebar, made once for each folder, whose pages have the same links.

    Made for each page, as Sphinx and the theme do it, it takes a third of the time of a build.
    """

    def __init__(self) -> None:
        self._trees: dict[str, str] = {}
        self._with_groups: dict[str, str] = {}

    def share(
        self, app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
    ) -> None:
        """Give the theme the tree of a page that does not exist, in the same folder."""
        if "toctree" not in context:
            return
        folder = posixpath.dirname(page)
        if folder not in self._trees:
            builder: Any = app.builder
            self._trees[folder] = builder._get_local_toctree(
                posixpath.join(folder, "none"),
                collapse=False,
                titles_only=True,
                maxdepth=-1,
                includehidden=True,
            )
        tree = self._trees[folder]
        context["toctree"] = lambda **_: tree

    def finish(
        self, app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
    ) -> None:
        """Add the headings of index pages, and show where the page is."""
        if "furo_navigation_tree" not in context:
            return
        folder = posixpath.dirname(page)
        if folder not in self._with_groups:
            self._with_groups[folder] = show_groups(
                app, folder, context["furo_navigation_tree"], context["pathto"]
            )
        address = posixpath.basename(page) + ".html"
        context["furo_navigation_tree"] = mark_page(self._with_groups[folder], address)


def show_groups(app: Sphinx, folder: str, tree: str, path_to: Callable[[str], str]) -> str:
    """Add the headings of index pages to the sidebar, each above the first page of its list."""
    soup = BeautifulSoup(tree, "html.parser")
    pages = {link.get("href"): link for link in soup.select("li.toctree-l2 > a")}
    for first, heading in groups(app).items():
        # The path of the page itself is "#".
        inside = posixpath.dirname(first) == folder
        link = pages.get(f"{posixpath.basename(first)}.html" if inside else path_to(first))
        if link is not None and link.parent is not None:
            row = soup.new_tag("li", attrs={"class": "sidebar-group"})
            row.string = heading
            link.parent.insert_before(row)
    return str(soup)


def mark_page(tree: str, address: str) -> str:
    """Mark a page and what it is in as the theme does, and open these lists."""
    link = f'<a class="reference internal" href="{address}">'
    end = tree.find(link)
    if end < 0:
        return tree
    around: list[re.Match[str]] = []
    for tag in LIST_TAGS.finditer(tree, 0, end):
        if tag[1]:
            around.pop()
        else:
            around.append(tag)
    edits = [(end, end + len(link), '<a class="current reference internal" href="#">')]
    for tag in around:
        if tag[2] == "ul":
            edits.append((*tag.span(), '<ul class="current">'))
            continue
        level, _, more = tag[3].partition(" ")
        names = [level, "current", *more.split(), *(["current-page"] if tag is around[-1] else [])]
        edits.append((*tag.span(), f'<li class="{" ".join(names)}">'))
        if "has-children" in names:
            box = tree.index("/>", tree.index("<input ", tag.end()))
            edits.append((box, box, ' checked=""'))
    for start, stop, text in sorted(edits, reverse=True):
        tree = tree[:start] + text + tree[stop:]
    return tree


def groups(app: Sphinx) -> dict[str, str]:
    """The headings of lists in index pages, by the first page of each list."""
    found: dict[str, str] | None = getattr(app, "_manual_groups", None)
    if found is None:
        found = {}
        for index in filter(is_part, app.env.found_docs):
            for tree in app.env.get_doctree(index).findall(addnodes.toctree):
                if tree.get("group"):
                    found[tree["includefiles"][0]] = tree["group"]
        app._manual_groups = found  # type: ignore[attr-defined]
    return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform, and the headings of the sidebar after the theme has made it."""
    app.add_transform(Contents)
    navigation = Navigation()
    app.connect("html-page-context", navigation.share, priority=400)
    app.connect("html-page-context", navigation.finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
