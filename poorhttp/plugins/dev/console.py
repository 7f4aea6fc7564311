"""Console of the development server: requests in the terminal, profiles, opening the browser."""

from __future__ import annotations

from collections.abc import Sequence

from poorhttp.errors import ConfigError
from poorhttp.plugins.dev.options import Development
from poorhttp.plugins.dev.terminal_sink import SINK, is_shown
from poorhttp.process.privileges import Privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings
    from poorhttp.plugins.dev.profiler import Profiles
    from poorhttp.plugins.dev.terminal import Terminal


class Console:
    """The terminal and the folder of profiles, each only if an option asks for it.

    Attributes:
        terminal: shows requests and messages; None if no service logs to it.
    """

    def __init__(self) -> None:
        self.terminal: Terminal | None = None
        self._profiles: Profiles | None = None

    def follow(self, services: Sequence[Settings]) -> None:
        """Prepare for services whose workers will be forked.

        Raises:
            ConfigError: the folder of profiles cannot be made.
        """
        shown = [settings for settings in services if is_shown(settings)]
        if self.terminal is not None and shown:
            self.terminal.take(shown)
        elif shown:
            from poorhttp.plugins.dev.terminal import Terminal

            self.terminal = Terminal(shown)
            SINK.lines = self.terminal.lines

        if self._profiles is None and any(
            settings.of(Development).profile for settings in services
        ):
            from poorhttp.plugins.dev import profiler

            try:
                self._profiles = profiler.Profiles(Privileges(services[0]).owner)
            except OSError as error:
                raise ConfigError(
                    f"{services[0].origin('profile')}: there is no folder for profiles: {error}"
                ) from error
            profiler.profiles = self._profiles
        if self.terminal is not None:
            self.terminal.profiles = self._profiles

    def show(self, urls: Sequence[str], *, opens: bool) -> None:
        """Take the addresses that are served, and open the browser if `opens` is set."""
        if not opens and self._profiles is None:
            return
        from poorhttp.plugins.dev import open_browser

        if self._profiles is not None:
            self._profiles.url = open_browser.browser_url(urls)
        if opens:
            open_browser.open(urls)

    def close(self) -> None:
        """Close the terminal and remove the profiles."""
        if self.terminal is not None:
            SINK.lines = None
            self.terminal.close()
        if self._profiles is not None:
            self._profiles.close()
