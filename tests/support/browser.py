"""Headless Chromium, driven by Selenium: one process for all tests, a tab of its own for each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.packages import need
from tests.testkit.client import HANG

# Selenium is imported where it is used: tests in other processes import this module, too.
if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

#: It talks to nobody but the server under test, and runs as any user.
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Those of servers under test are made on the spot.
    "--ignore-certificate-errors",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Browser:
    """A tab of a browser, and what its user does there; see the fixture `browser`."""

    def __init__(self, driver: Chrome) -> None:
        self._driver = driver

    def open(self, url: str) -> None:
        """Open a page, and wait until it is loaded."""
        self._driver.get(url)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window, in pixels; a narrow one is that of a phone."""
        self._driver.set_window_size(width, height)

    def picture(self, path: Path) -> None:
        """Write what the window shows to a file (PNG)."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._driver.save_screenshot(str(path))

    def find(self, selector: str) -> WebElement:
        """The first element of the page that a CSS selector matches."""
        return self._driver.find_element("css selector", selector)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression on the page; a promise is waited for."""
        return self._driver.execute_script(f"return {script}")

    def text(self) -> str:
        """The visible text of the page; empty while there is none."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def wait_text(self, text: str) -> None:
        """Wait until the page shows a text."""
        self._wait(lambda: text in self.text(), f"{text!r} on the page")

    def wait_for(self, script: str) -> None:
        """Wait until a JavaScript expression is true on whichever page is shown by then."""
        self._wait(lambda: self.run(script), script)

    def _wait(self, condition: Any, what: str) -> None:
        from selenium.common.exceptions import JavascriptException, TimeoutException
        from selenium.webdriver.support.wait import WebDriverWait

        # A script ends with an exception if its page goes while it runs.
        ignored = [JavascriptException]
        wait = WebDriverWait(self._driver, HANG, poll_frequency=0.02, ignored_exceptions=ignored)
        try:
            wait.until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"{what}: not in {HANG:.0f} s; it shows:\n{self.text()}") from None


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Chromium, without a window. Skips the test where it is not installed."""
    need("chromium", "chromedriver")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for option in OPTIONS:
        options.add_argument(option)
    # With a path Selenium never asks the network for a driver.
    service = ChromeService(executable_path=str(shutil.which("chromedriver")))
    driver = Chrome(options, service)
    try:
        driver.set_page_load_timeout(HANG)
        driver.set_script_timeout(HANG)
        yield driver
    finally:
        driver.quit()


@contextmanager
def tab(driver: Chrome) -> Iterator[Browser]:
    """A new tab, without anything that was kept for the pages of others."""
    first = driver.current_window_handle
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    driver.switch_to.new_window("window")
    try:
        yield Browser(driver)
    finally:
        driver.close()
        driver.switch_to.window(first)
