"""Pictures of the status page for the documents, and of the manual for those who change its looks.

`python -m tests.support.page_pictures docs/figures` draws the page of a made-up document, as a real
server would need an hour for its charts. `python -m tests.support.page_pictures --manual FOLDER`
draws pages of build/docs, at the width of a desk and of a phone, light and dark.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.browser import Browser, chromium, tab
from tests.testkit.server import ROOT, Server

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PAGES = "tests/apps/status_pages.py"

#: Name, width and height in pixels, and the preferred colours of each picture.
PICTURES = (
    ("status-page-desk", 1100, 1400, "light"),
    ("status-page-desk-dark", 1100, 1400, "dark"),
    ("status-page-phone", 390, 1400, "light"),
    ("status-page-phone-dark", 390, 1400, "dark"),
)


#: Pages of the manual, by the names of their pictures.
MANUAL = {
    "front": "index.html",
    "guides": "guides/index.html",
    "guide": "guides/static-files.html",
    "options": "reference/options.html#compression",
    "api": "reference/api.html",
    "benchmark": "benchmarks/serial.html",
    "search": "search.html?q=graceful",
}
SCREENS = (("desk", 1280, 900), ("phone", 390, 844))


def main(folder: Path) -> None:
    """Write the pictures of the status page to a folder."""
    with Server(PAGES, "threading") as server, chromium() as driver, tab(driver) as shown:
        browser: Browser = shown
        for name, width, height, scheme in PICTURES:
            set_screen(driver, width, height, scheme)
            browser.open(f"{server.urls}/in-order/")
            browser.wait_text("Live: updated every two seconds.")
            browser.picture(folder / f"{name}.png")


def manual(folder: Path) -> None:
    """Write the pictures of the manual to a folder."""
    target = f"static:{ROOT / 'build' / 'docs'}"
    with Server(target, "single") as server, chromium() as driver, tab(driver) as browser:
        browser.open(f"{server.urls}/")
        browser.wait_for("document.querySelector('.sidebar-brand') !== null")
        start = str(browser.run("location.href")).removesuffix("index.html")
        for screen, width, height in SCREENS:
            for scheme in ("light", "dark"):
                set_screen(driver, width, height, scheme)
                for name, page in MANUAL.items():
                    browser.open(start + page)
                    if name == "search":
                        browser.wait_for("document.querySelectorAll('ul.search li').length > 2")
                    browser.picture(folder / f"manual-{name}-{screen}-{scheme}.png")


def set_screen(driver: Chrome, width: int, height: int, scheme: str) -> None:
    """Set the size of the window in pixels, and the preferred colours."""
    metrics = {"width": width, "height": height, "mobile": width < 500, "deviceScaleFactor": 1}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


if __name__ == "__main__":
    if sys.argv[1] == "--manual":
        manual(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
