"""Draws the Mermaid diagrams of the manual: `python -m docs.manual_site.draw_diagrams`.

Mermaid comes from npm and runs in Chromium. A drawing has no colours of its own: the style sheet of
the site gives them, light and dark.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

from tests.support.browser import chromium, tab

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
sys.path[:0] = [str(DOCS)]

from manual_site import diagrams  # noqa: E402

MERMAID = "mermaid@12.3.0"
SVG = "{http://www.w3.org/2000/svg}"
#: Names measured in a wide font have room in every other.
SETTINGS = {
    "startOnLoad": False,
    "theme": "base",
    "htmlLabels": False,
    "fontFamily": "DejaVu Sans, sans-serif",
    "themeVariables": {"fontSize": "14px"},
    "flowchart": {"htmlLabels": False, "padding": 12, "wrappingWidth": 210},
}
#: Attributes of Mermaid that the style sheet uses; those of the shapes are kept as well.
NEEDED = {"class", "id", "d", "points", "transform", "marker-end", "marker-start", "viewBox"}
SHAPE = {"x", "y", "dy", "width", "height", "rx", "ry", "r", "cx", "cy", "refX", "refY", "orient"}
MARKER = {"markerWidth", "markerHeight", "markerUnits"}
#: Classes that the style sheet knows.
CLASSES = {"node", "cluster", "cluster-label", "edgeLabel", "background", "flowchart-link"}


def main() -> None:
    """Draw all diagrams, and remove drawings of which there is no diagram."""
    diagrams.DRAWINGS.mkdir(exist_ok=True)
    wanted = {}
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS).with_suffix(""))
        found = diagrams.FENCE.findall(page.read_text(encoding="utf-8"))
        for number, source in enumerate(found, 1):
            wanted[diagrams.drawing(name, number)] = source
    script = ROOT / "build" / "mermaid" / "mermaid.min.js"
    fetch(script)
    with chromium() as driver, tab(driver) as browser:
        blank = script.with_name("blank.html")
        blank.write_text('<meta charset="utf-8"><script src="mermaid.min.js"></script><body>')
        browser.open(blank.as_uri())
        browser.run(f"mermaid.initialize({json.dumps(SETTINGS)})")
        for path, source in wanted.items():
            call = f"mermaid.render({json.dumps(path.stem)}, {json.dumps(source)})"
            drawn = browser.run(f"{call}.then(result => result.svg)")
            path.write_text(tidied(drawn, diagrams.checksum(source)) + "\n", encoding="utf-8")
    for path in diagrams.DRAWINGS.glob("*.svg"):
        if path not in wanted:
            path.unlink()


def fetch(script: Path) -> None:
    """Get Mermaid's script from the registry of npm, once."""
    if script.exists():
        return
    script.parent.mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--silent", MERMAID]
    done = subprocess.run(command, cwd=script.parent, check=True, stdout=subprocess.PIPE, text=True)
    with tarfile.open(script.parent / done.stdout.strip()) as archive:
        member = archive.extractfile("package/dist/mermaid.min.js")
        assert member is not None
        script.write_bytes(member.read())


def tidied(drawn: str, checksum: str) -> str:
    """A drawing without styles, unused arrows and invisible parts, with short numbers."""
    ElementTree.register_namespace("", SVG.strip("{}"))
    svg = ElementTree.fromstring(drawn)
    arrows = set(re.findall(r'marker-(?:end|start)="url\(#([^)]*)\)"', drawn))
    for parent in list(svg.iter()):
        for child in list(parent):
            unused = child.tag == f"{SVG}marker" and child.get("id") not in arrows
            nameless = child.tag in (f"{SVG}style", f"{SVG}defs") or is_empty(child)
            if unused or nameless:
                parent.remove(child)
    for element in svg.iter():
        for name in set(element.attrib) - NEEDED - SHAPE - MARKER:
            del element.attrib[name]
        for name, value in element.attrib.items():
            if name not in ("id", "class"):
                element.attrib[name] = re.sub(
                    r"-?\d+\.\d+", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), value
                )
        if element.tag != f"{SVG}marker":
            element.attrib.pop("id", None)
        classes = element.attrib.pop("class", "").split()
        if "row" in classes:
            text = "".join(element.itertext())
            for word in list(element):
                element.remove(word)
            element.text = text
        if known := sorted(CLASSES.intersection(classes)):
            element.set("class", " ".join(known))
    box = svg.attrib.pop("viewBox")
    width, height = box.split()[2:]
    svg.attrib = {
        "width": width,
        "height": height,
        "viewBox": box,
        "data-source": checksum,
    }
    return ElementTree.tostring(svg, encoding="unicode")


def is_empty(element: ElementTree.Element) -> bool:
    """Whether an element shows nothing: a ground without a size, or a group of such."""
    if element.tag == f"{SVG}rect":
        return "width" not in element.attrib
    if element.tag in (f"{SVG}g", f"{SVG}text"):
        return not "".join(element.itertext()).strip() and all(map(is_empty, element))
    return False


if __name__ == "__main__":
    main()
