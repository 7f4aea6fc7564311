"""The site made by apps/site: sizes as in the Uniserve study.

tests/protocol/test_browser.py draws its images.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.testkit.server import ROOT, run

SCRIPT = ROOT / "apps" / "site" / "make_site.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the script makes."""
    folder = tmp_path_factory.mktemp("site")
    run(sys.executable, SCRIPT, folder, "--klone")
    return folder


def test_sizes_of_the_site(site: Path, tmp_path: Path) -> None:
    """As in the studies: 8.6 kB, 1.9 kB and so on; and the same every time."""
    assert {path.name: path.stat().st_size for path in site.iterdir()} == {
        **{f"index{number}.html": 8_600 for number in range(1, 6)},
        "logo.gif": 1_900,
        "2.jpg": 44_000,
        "3.png": 66_100,
        "4.gif": 79_600,
        "5.png": 145_000,
        "page.html": 1_536,
        "large.bin": 10 * 2**20,
    }
    run(sys.executable, SCRIPT, tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made == {name: (site / name).read_bytes() for name in made}
    assert len(made) == 10
