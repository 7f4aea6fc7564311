"""Checks what a metric of a plug-in has returned."""

from __future__ import annotations

from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Of one metric: pairs of labels and a number, labels of each, and letters of their texts.
MOST_SAMPLES, MOST_LABELS, MOST_LETTERS = 1000, 20, 1000


def samples(found: Any) -> list[tuple[dict[str, str], float]]:
    """Return what `Metric.read` has returned as labels with a number each.

    Raises:
        TypeError: it is something else.
        ValueError: it is no finite number, or a label has a name that Prometheus does not know;
            labels are there twice, or there are too many, as of an iterator without an end.
    """
    pairs = [({}, found)] if isinstance(found, (int, float)) else found
    checked: list[tuple[dict[str, str], float]] = []
    seen = set()
    for labels, number in pairs:
        texts = islice(labels.items(), MOST_LABELS + 1)
        checked.append(({str(name): str(text) for name, text in texts}, float(number)))
        seen.add(tuple(sorted(checked[-1][0].items())))
        if len(checked) > MOST_SAMPLES:
            raise ValueError(f"it has more than {MOST_SAMPLES} pairs of labels and a number")
        if len(seen) < len(checked):
            raise ValueError(f"the labels {checked[-1][0]!r} are there twice")
    for labels, number in checked:
        if len(labels) > MOST_LABELS or any(len(text) > MOST_LETTERS for text in labels.values()):
            raise ValueError(
                f"it has more than {MOST_LABELS} labels, or a text of more than {MOST_LETTERS} "
                "letters"
            )
        for name in labels:
            if not (name.isascii() and name.isidentifier()) or name.startswith("__"):
                raise ValueError(f'"{name}" is no name of a label; write letters, digits and _')
        if number - number != 0.0:
            raise ValueError(f"no finite number: {number}")
    return checked
