"""A browser that looks at what is served: Chromium, without a window."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.client import HANG

#: Under which names it is installed.
NAMES = ("chromium", "google-chrome")

#: It talks to nobody but the server under test, and does not mind who runs it.
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

#: The page that looks at others, in a frame as wide as a phone. What `look` returns is its title.
PAGE = """<!DOCTYPE html>
<title></title>
<iframe width="360" height="640"></iframe>
<script>
const frame = document.querySelector("iframe");

// Does something that shows a page, and waits for it with all its images.
async function shown(deed) {
    const loaded = new Promise(done => frame.addEventListener("load", done, {once: true}));
    deed();
    await loaded;
    return frame.contentDocument;
}

const open = path => shown(() => { frame.src = path; });

async function look() {
LOOK
}

look().then(
    found => { document.title = JSON.stringify({found}); },
    error => { document.title = JSON.stringify({failed: String(error)}); },
);
</script>
"""

#: Milliseconds of the browser's own time, which stands still while it waits for the server.
PATIENCE = 10_000


def page(look: str) -> str:
    """The page that looks at others of its server.

    Args:
        look: the body of a function in JavaScript. `await open(PATH)` is the document of a page,
            `await shown(() => LINK.click())` the one behind a link; what it returns is told.
    """
    return PAGE.replace("LOOK", look)


def look(url: str, profile: Path) -> Any:
    """What a page that was made by `page` tells. `profile` is where the browser may write."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program, f"no browser to look with: apt-get install {NAMES[0]}"
    done = subprocess.run(
        [
            program,
            *OPTIONS,
            f"--user-data-dir={profile}",
            f"--virtual-time-budget={PATIENCE}",
            "--dump-dom",
            url,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    title = re.search(r"<title>(.+?)</title>", done.stdout, re.DOTALL)
    assert title, f"nothing was found; status {done.returncode}:\n{done.stdout}\n{done.stderr}"
    told = json.loads(html.unescape(title[1]))
    assert "found" in told, told.get("failed")
    return told["found"]
