"""A profile for speedscope.app, which shows it in a browser without sending it anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def text(found: Mapping[str, int], title: str) -> str:
    """Return stacks, as `OUTER;INNER` with their milliseconds, as a file of speedscope."""
    numbers: dict[str, int] = {}
    samples = [
        [numbers.setdefault(frame, len(numbers)) for frame in stack.split(";")]
        for stack in sorted(found)
    ]
    weights = [found[stack] for stack in sorted(found)]
    profile = {
        "type": "sampled",
        "name": title,
        "unit": "milliseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    frames = [{"name": name} for name in numbers]
    return json.dumps(
        {"$schema": SCHEMA, "name": title, "shared": {"frames": frames}, "profiles": [profile]}
    )
