"""What the main process shows to the person who develops: requests, profiles, the browser."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp import logs
from poorhttp.errors import ConfigError
from poorhttp.process.privileges import Privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select

    from poorhttp.config.settings import Settings
    from poorhttp.dev.profiler import Profiles
    from poorhttp.dev.terminal import Terminal


class Console:
    """The terminal and the folder of profiles, as far as options ask for them."""

    def __init__(self) -> None:
        self._terminal: Terminal | None = None
        self._profiles: Profiles | None = None

    def follow(self, services: Sequence[Settings]) -> None:
        """Have what workers serve shown, and profiles kept: before they are forked.

        Raises:
            ConfigError: there is no folder for profiles.
        """
        shown = [settings for settings in services if logs.is_for_terminal(settings)]
        if self._terminal is not None and shown:
            self._terminal.take(shown)
        elif shown:
            from poorhttp.dev.terminal import Terminal

            self._terminal = Terminal(shown)
            logs.terminal = self._terminal.lines

        if self._profiles is None and any(settings.profile for settings in services):
            from poorhttp.dev import profiler

            try:
                self._profiles = profiler.Profiles(Privileges(services[0]).owner)
            except OSError as error:
                raise ConfigError(
                    f"{services[0].origin('profile')}: there is no folder for profiles: {error}"
                ) from error
            profiler.profiles = self._profiles
        if self._terminal is not None:
            self._terminal.profiles = self._profiles

    def show(self, urls: Sequence[str], *, opens: bool) -> None:
        """Show what is served at these addresses; in the browser if it `opens`."""
        if not opens and self._profiles is None:
            return
        from poorhttp.dev import open_browser

        if self._profiles is not None:
            self._profiles.url = open_browser.browser_url(urls)
        if opens:
            open_browser.open(urls)

    def say(self, text: str, style: str) -> bool:
        """Say something in the terminal; `False` if there is none."""
        if self._terminal is not None:
            self._terminal.say(text, style)
        return self._terminal is not None

    def register(self, poller: select.poll) -> None:
        """Register what is readable when there is something to show."""
        if self._terminal is not None:
            self._terminal.register(poller)

    def due(self) -> float:
        """Return when there is something to do although nothing is readable."""
        return self._terminal.due() if self._terminal is not None else float("inf")

    def serve(self) -> None:
        """Show what there is."""
        if self._terminal is not None:
            self._terminal.serve()

    def close(self) -> None:
        """Give the terminal back, and remove the profiles."""
        if self._terminal is not None:
            logs.terminal = None
            self._terminal.close()
        if self._profiles is not None:
            self._profiles.close()
