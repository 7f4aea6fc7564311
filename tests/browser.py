"""A browser that looks at what is served: Chromium, without a window."""

from __future__ import annotations

import fcntl
import html
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.client import HANG
from tests.server import wait_for

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


def program() -> str:
    """The browser's program."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    assert found, f"no browser to look with: apt-get install {NAMES[0]}"
    return found


def look(url: str, profile: Path) -> Any:
    """What a page that was made by `page` tells. `profile` is where the browser may write."""
    done = subprocess.run(
        [
            program(),
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


class Browser:
    """A browser that keeps a page open, and does what its user would.

    It is spoken to through a pair of pipes (`--remote-debugging-pipe`): messages of the DevTools
    protocol, each with a zero behind it. `profile` is where it may write.
    """

    def __init__(self, profile: Path) -> None:
        self._number = 0
        self._heard = b""
        ends = os.pipe(), os.pipe()
        (their_input, self._input), (self._output, their_output) = ends
        # It reads from descriptor 3 and writes to 4, which may be ours here: so a shell sees to it.
        far = [fcntl.fcntl(end, fcntl.F_DUPFD, 32) for end in (their_input, their_output)]
        pipes = f"exec 3<&{far[0]} 4>&{far[1]} {far[0]}<&- {far[1]}>&-;"
        self._stderr = (profile.parent / f"{profile.name}.err").open("wb")
        self._process = subprocess.Popen(
            [
                *("bash", "-c", f'{pipes} exec "$@"', "browser", program(), *OPTIONS),
                *(f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            pass_fds=far,
            start_new_session=True,
        )
        for descriptor in (their_input, their_output, *far):
            os.close(descriptor)
        self._session: str | None = None
        try:
            wait_for(self._pages, "a page of the browser")
            page = self._pages()[0]["targetId"]
            self._session = self._do("Target.attachToTarget", targetId=page, flatten=True)[
                "sessionId"
            ]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, with all its processes."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for descriptor in (self._input, self._output):
            os.close(descriptor)
        self._stderr.close()

    def open(self, url: str) -> None:
        """Open a page; does not wait until it is shown."""
        self._do("Page.navigate", url=url)

    def resize(self, width: int, height: int) -> None:
        """Make the window as large as a screen, in pixels; a narrow one is that of a phone."""
        self._do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def run(self, script: str) -> Any:
        """What an expression in JavaScript is worth on the page; a promise is waited for."""
        done = self._do(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def text(self) -> str:
        """What is to be read on the page; nothing while another one takes its place."""
        try:
            return str(self.run("document.body ? document.body.innerText : ''"))
        except Gone:
            return ""

    def wait_text(self, text: str) -> None:
        """Wait until the page shows a text."""
        try:
            wait_for(lambda: text in self.text(), f"{text!r} on the page")
        except AssertionError as error:
            raise AssertionError(f"{error}; it shows:\n{self.text()}") from None

    def wait_for(self, script: str) -> None:
        """Wait until an expression in JavaScript is true on the page, whichever it is by then."""

        def holds() -> bool:
            try:
                return bool(self.run(script))
            except Gone:
                return False

        wait_for(holds, script)

    def _pages(self) -> list[dict[str, Any]]:
        targets: list[dict[str, Any]] = self._do("Target.getTargets")["targetInfos"]
        return [target for target in targets if target["type"] == "page"]

    def _do(self, method: str, **parameters: object) -> Any:
        """Have something done, and wait for what comes of it."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._input, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + HANG
        while True:
            answer = self._hear(end)
            if answer.get("id") == self._number:
                break
        if "error" in answer:
            raise Gone(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _hear(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._heard:
            ready, _, _ = select.select([self._output], [], [], max(0, end - time.monotonic()))
            more = os.read(self._output, 1 << 20) if ready else b""
            assert more, "the browser says nothing" if not ready else "the browser has ended"
            self._heard += more
        message, _, self._heard = self._heard.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer


class Gone(Exception):
    """What was asked for went with the page that it was asked of."""
