"""Cleans SVG files of matplotlib for a page: smaller, with unique ids, accessible."""

from __future__ import annotations

import re
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SVG = "http://www.w3.org/2000/svg"
XLINK = "{http://www.w3.org/1999/xlink}href"
FONTS = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"

ElementTree.register_namespace("", SVG)

_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_FAMILY = re.compile(r"font-family:[^;]*;\s*")
_FONT = re.compile(r"font:\s*(?:(bold|\d+)\s+)?([\d.]+)px\s+[^;]*")


def tidy(drawn: str, key: str, title: str, description: str, margin: float = 0.0) -> str:
    """The SVG element alone, with paper around it.

    `key` begins every name in it, so that a page can hold several.
    """
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        for child in [child for child in element if child.tag == f"{{{SVG}}}metadata"]:
            element.remove(child)
    used = {name for element in root.iter() for name in _references(element)}
    for element in root.iter():
        _rename(element, key, used)
        for name in ("d", "transform", "x", "y", "points", "style"):
            if name in element.attrib:
                element.set(name, _NUMBER.sub(_short, element.attrib[name]))
        if "style" in element.attrib:
            element.set("style", _FAMILY.sub("", _FONT.sub(_font, element.attrib["style"])))
        if element.attrib.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
    _frame(root, margin)
    return _told(root, key, title, description)


def _frame(root: Element, margin: float) -> None:
    width, height = (float(root.attrib[name].removesuffix("pt")) for name in ("width", "height"))
    place = {"x": -margin, "y": -margin, "width": width + 2 * margin, "height": height + 2 * margin}
    box = {name: _written(value) for name, value in place.items()}
    root.attrib |= {"width": box["width"], "height": box["height"]}
    root.set("viewBox", " ".join(box.values()))
    root.insert(0, Element(f"{{{SVG}}}rect", {**box, "fill": "#ffffff"}))


def _told(root: Element, key: str, title: str, description: str) -> str:
    root.attrib.pop("version", None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{key}-title {key}-description")
    root.set("font-family", FONTS)
    for place, (name, kind, text) in enumerate(
        (("title", "title", title), ("description", "desc", description))
    ):
        element = Element(f"{{{SVG}}}{kind}", {"id": f"{key}-{name}"})
        element.text = text
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _references(element: Element) -> list[str]:
    names = [name for value in element.attrib.values() for name in _REFERENCE.findall(value)]
    return [*names, *([element.attrib[XLINK][1:]] if XLINK in element.attrib else [])]


def _rename(element: Element, key: str, used: set[str]) -> None:
    if "id" in element.attrib:
        if element.attrib["id"] in used:
            element.set("id", f"{key}-{element.attrib['id']}")
        else:
            del element.attrib["id"]
    for name, value in list(element.attrib.items()):
        element.set(name, _REFERENCE.sub(rf"url(#{key}-\1)", value))
    if XLINK in element.attrib:
        element.set("href", f"#{key}-{element.attrib.pop(XLINK)[1:]}")


def _short(found: re.Match[str]) -> str:
    return _written(float(found[0]))


def _written(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _font(found: re.Match[str]) -> str:
    weight = f"font-weight: {'600' if found[1] == 'bold' else found[1]}; " if found[1] else ""
    return f"{weight}font-size: {found[2]}px"
