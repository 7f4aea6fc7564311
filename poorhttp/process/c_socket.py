"""The C module `_socket` instead of `socket`, which imports `enum` and so costs memory."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
else:
    import _socket as socket

__all__ = ["socket"]
