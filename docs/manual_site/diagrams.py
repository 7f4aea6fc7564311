"""Diagrams: Mermaid in a page, which GitHub draws by itself, is a drawing in the site.

Drawings are stored, as a site needs no script and no network then. After a change of a diagram
`python -m docs.manual_site.draw_diagrams` draws it again; until then the build has a warning.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DRAWINGS = Path(__file__).resolve().parent / "diagrams"
FENCE = re.compile(r"^```mermaid\n(.*?)\n```$", re.MULTILINE | re.DOTALL)

logger = logging.getLogger(__name__)


def drawing(page: str, number: int) -> Path:
    """The file of a drawing, by its page (without ending) and its number there, from 1."""
    return DRAWINGS / f"{page.replace('/', '-')}-{number}.svg"


def checksum(source: str) -> str:
    """What a drawing keeps of the diagram that it was made of."""
    return hashlib.sha256(source.strip().encode()).hexdigest()[:16]


class Drawings(SphinxTransform):
    """Replace Mermaid by drawings."""

    default_priority = 210

    def apply(self, **_: Any) -> None:
        """Replace the diagrams of one page."""
        blocks = [
            block
            for block in self.document.findall(nodes.literal_block)
            if block.get("language") == "mermaid"
        ]
        for number, block in enumerate(blocks, 1):
            path = drawing(self.env.docname, number)
            self.env.note_dependency(str(path))
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            if f'data-source="{checksum(block.astext())}"' not in text:
                logger.warning(
                    "%s does not show this diagram: run python -m docs.manual_site.draw_diagrams",
                    path.name,
                    location=block,
                )
                continue
            block.replace_self(nodes.raw("", f'<div class="diagram">{text}</div>', format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform."""
    app.add_transform(Drawings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
