"""The class `Transport`: what carries HTTP at addresses of a protocol that a plug-in adds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from poorhttp.config.registry import registry
from poorhttp.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from poorhttp.config.settings import Settings
    from poorhttp.net.listener import Listener


class Transport:
    """Base class: the transport of a service, which its workers share.

    It is made in the process that reads the settings, before privileges are dropped; workers that
    are forked from it have it. A reload makes a new one. What plug-ins share with it while workers
    run, they send with `RENEW` (`poorhttp.process.control_channel`).

    Attributes:
        title: heading of its lines in what `poorhttp check` prints.
    """

    title = ""

    @property
    def identity(self) -> str:
        """What tells this server from others, as a sentence without its subject; mostly empty."""
        return ""

    @classmethod
    def of(cls, settings: Settings) -> Transport | None:
        """Return that of a service; `None` if none of its addresses needs one.

        Called if an address of `bind` has the protocol, or an option of the plug-in is set.

        Raises:
            ConfigError: the options cannot be used.
        """
        raise NotImplementedError

    def reactor_arguments(self, listeners: Sequence[Listener]) -> dict[str, Any]:
        """Return the arguments of `poorhttp._core.Reactor` by which it uses the transport."""
        raise NotImplementedError

    def renew_in_thread(self) -> None:
        """Begin to follow changes, in a process that serves without a main process."""

    def describe(self) -> list[str]:
        """Return lines for `poorhttp check`."""
        return []

    def warnings(self) -> list[str]:
        """Return sentences about what works, but not for long or not for everybody."""
        return []

    def log_warnings(self) -> None:
        """Log the warnings, unless that was done before."""

    def expiries(self) -> Iterable[tuple[str, float]]:
        """Return files that expire, and when, in seconds since 1970."""
        return ()


def load(settings: Settings) -> Transport | None:
    """Make the transport of a service; `None` if none of its addresses needs one.

    Raises:
        ConfigError: its plug-in is missing, or its options cannot be used.
    """
    for name, entry in registry.entries["transports"].items():
        address = next((each for each in settings.bind if each.protocol == name), None)
        if address is None and not registry.uses(name, settings.is_enabled):
            continue
        try:
            kind: type[Transport] = entry.named(entry.load())
        except ConfigError as error:
            place = settings.origin("bind")
            if address is not None:
                place += f": {address}"
            raise ConfigError(f"{place}: {error}") from None
        found = kind.of(settings)
        if found is not None:
            carrier: Transport = entry.named(found)
            return carrier
    return None
