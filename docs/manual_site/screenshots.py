"""Takes pictures of the site that `make docs` has built: `python -m docs.manual_site.screenshots`.

Arguments are pages, such as `guides/flask`. Each is shown at the widths of a desk and of a phone,
light and dark: `build/screenshots/PAGE-desk-light.png` and so on.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.browser import chromium, tab

ROOT = Path(__file__).resolve().parent.parent.parent
SITE = ROOT / "build" / "docs"
PAGES = ("index", "tutorial/first-response", "guides/static-files", "reference/options")
SIZES = {"desk": (1280, 900), "phone": (390, 844)}


def main(pages: list[str]) -> int:
    """Write the pictures, and return the exit code: 2 if there is no such page."""
    folder = ROOT / "build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    versions = sorted(path.parent for path in SITE.glob("*/index.html"))
    if not versions:
        print("There is no site yet: run make docs", file=sys.stderr)
        return 2
    with chromium() as driver, tab(driver) as browser:
        for page in pages or PAGES:
            address = versions[-1] / f"{page}.html"
            if not address.is_file():
                print(f"{page}: the site has no such page", file=sys.stderr)
                return 2
            for colours in ("light", "dark"):
                wanted = [{"name": "prefers-color-scheme", "value": colours}]
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
                for name, size in SIZES.items():
                    browser.resize(*size)
                    browser.open(address.as_uri())
                    path = folder / f"{page.replace('/', '-')}-{name}-{colours}.png"
                    browser.picture(path)
                    print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
