"""What only mode `asyncio` uses of the extension module."""

from poorhttp._core import Reactor, Request, reason_phrases

__all__ = ["Reactor", "Request", "reason_phrases"]
