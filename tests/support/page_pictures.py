"""Pictures of the status page for the documents.

`python -m tests.support.page_pictures docs/figures` draws the page of a made-up document, as a real
server would need an hour for its charts.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.browser import chromium, tab
from tests.testkit.server import Server

PAGES = "tests/apps/status_pages.py"

#: Name, width and height in pixels, and the preferred colours of each picture.
PICTURES = (
    ("status-page-desk", 1100, 1400, "light"),
    ("status-page-desk-dark", 1100, 1400, "dark"),
    ("status-page-phone", 390, 1400, "light"),
    ("status-page-phone-dark", 390, 1400, "dark"),
)


def main(folder: Path) -> None:
    """Write the pictures of the status page to a folder."""
    with Server(PAGES, "threading") as server, chromium() as driver, tab(driver) as browser:
        for name, width, height, scheme in PICTURES:
            metrics = {"width": width, "height": height, "mobile": width < 500}
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride", {**metrics, "deviceScaleFactor": 1}
            )
            feature = {"name": "prefers-color-scheme", "value": scheme}
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
            browser.open(f"{server.urls}/in-order/")
            browser.wait_text("Live: updated every two seconds.")
            browser.picture(folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
