"""The C module `_socket` in place of `socket`, whose enumerations every process would pay for."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
else:
    import _socket as socket

__all__ = ["socket"]
