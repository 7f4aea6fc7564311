"""Comparison of our HPACK with `hpack`, a library in Python: `make hpack`.

Each side decodes what the other encodes (`tests/support/http2_agreement.py`): lists of made-up
fields on connections whose tables change their sizes, and a tenth as many blocks that were changed
in some bytes. A difference ends the run, and its connection can be repeated with the same seed.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.support.http2_agreement import LISTS, Ours, compare_lists, compare_mutants

#: Connections that a process compares before it says so.
PART = 20


def compare(seed: int, first: int, count: int) -> tuple[int, int]:
    """Compare `count` lists, and malformed blocks; how many of both."""
    with Ours() as ours:
        compare_lists(ours, count, seed, first)
        compare_mutants(ours, count // 10, f"{seed} {first}")
    return count, count // 10


def main() -> None:
    parser = argparse.ArgumentParser(prog="make hpack", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="lists of fields")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_args()
    count, step = arguments.count, PART * LISTS
    # Built once, before several want it.
    with Ours():
        pass
    start, lists, blocks = time.monotonic(), 0, 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        parts = [
            pool.submit(compare, arguments.seed, at // LISTS, min(step, count - at))
            for at in range(0, count, step)
        ]
        try:
            for part in as_completed(parts):
                lists, blocks = lists + part.result()[0], blocks + part.result()[1]
                print(f"{lists:,} lists both ways, {blocks:,} changed blocks", flush=True)
        finally:
            pool.shutdown(cancel_futures=True)
    print(f"0 differences in {lists:,} lists; {time.monotonic() - start:.0f} seconds")


if __name__ == "__main__":
    main()
