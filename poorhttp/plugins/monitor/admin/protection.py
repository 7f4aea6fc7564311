"""Access control of the address `admin`: tokens, and requests from pages of other sites.

Browsers on the machine of the server reach its loopback addresses. So a page of another site must
be able neither to send a command (`Origin`, `Sec-Fetch-Site`, and a content type that its browser
asks about first), nor to read, under a name of its own that has become this address (`Host`, "DNS
rebinding").
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from poorhttp.config.settings import Settings
from poorhttp.errors import ConfigError
from poorhttp.net.listener import Listener
from poorhttp.plugins.monitor.options import Monitoring
from poorhttp.process.c_socket import socket
from poorhttp.process.safe_open import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

#: Fewest characters of a token that cannot be guessed.
MIN_TOKEN = 16

#: Status, and a line that says why.
Refusal = tuple[str, str]

UNAUTHORIZED = "401 Unauthorized"
FORBIDDEN = "403 Forbidden"


class Protection:
    """What a request must have to be answered.

    Attributes:
        token: the token; empty if none is needed.
    """

    def __init__(self, settings: Settings, listeners: Sequence[Listener]) -> None:
        """Read the token, and check that it is there if others than this machine reach the address.

        Raises:
            ConfigError: the file cannot be used, or is missing.
        """
        options = settings.of(Monitoring)
        self.token = b""
        if options.admin_token_file is not None:
            self.token = read_token(options.admin_token_file, settings.origin("admin_token_file"))
        open_to_others = [each.url for each in listeners if not _is_local(each)]
        if open_to_others and not self.token:
            raise ConfigError(
                f"{settings.origin('admin')}: {open_to_others[0]} can be reached from other "
                "machines: set admin_token_file, or choose a loopback address, as 127.0.0.1:9090, "
                "or a Unix socket"
            )
        #: Names of the address in `Host`, besides those of loopback.
        self._hosts = {each.server[0].lower() for each in listeners}
        if options.admin is not None and options.admin.host:
            self._hosts.add(options.admin.host.lower())

    def refusal(self, environ: WSGIEnvironment) -> Refusal | None:
        """Return why a request is refused, which asks for more than `/-/live` and `/-/ready`."""
        if not self.token:
            return None
        given = environ.get("HTTP_AUTHORIZATION", "")
        if _is_same(_credentials(given), self.token):
            return None
        return UNAUTHORIZED, (
            "the token is not that of admin_token_file"
            if given
            else "a token is needed: Authorization: Bearer TOKEN, that of admin_token_file"
        )

    def refusal_of_host(self, environ: WSGIEnvironment) -> Refusal | None:
        """Return why a request is refused whose answer no page of another site may read.

        With a token any name is right: such a page cannot know the token.
        """
        host = environ.get("HTTP_HOST", "")
        if self.token or _is_loopback_name(name := _host_name(host)) or name in self._hosts:
            return None
        return FORBIDDEN, (
            f"Host: {ascii(host)[1:-1]} is no name of this address; use localhost, 127.0.0.1, or "
            "set admin_token_file"
        )

    def refusal_of_command(self, environ: WSGIEnvironment) -> Refusal | None:
        """Return why a request is refused that would change something."""
        refusal = self.refusal_of_host(environ)
        if refusal is not None:
            return refusal
        if environ.get("HTTP_SEC_FETCH_SITE", "none") not in ("none", "same-origin"):
            return FORBIDDEN, "a page of another site cannot send commands (Sec-Fetch-Site)"
        origin = environ.get("HTTP_ORIGIN")
        host = environ.get("HTTP_HOST", "")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return FORBIDDEN, "a page of another site cannot send commands (Origin)"
        content_type = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
        if content_type != "application/json":
            return "415 Unsupported Media Type", "write Content-Type: application/json"
        return None


def read_token(path: str, place: str = "admin_token_file") -> bytes:
    """Return the token in a file, which others cannot read.

    Raises:
        ConfigError: it cannot be used.
    """
    return read_token_file(path, place)[0]


def read_token_file(path: str, place: str) -> tuple[bytes, os.stat_result]:
    """Return the token in a file, and the state of the file then; errors as `read_token`."""
    try:
        fd = open_regular(path)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            mode = found.st_mode
            token = file.read(4097).strip()
    except OSError as error:
        raise ConfigError(f"{place}: {path}: {error.strerror}") from error
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise ConfigError(
            f"{place}: everybody can read or write {path} (mode {stat.S_IMODE(mode):04o}): "
            f"chmod o-rwx {path}"
        )
    if not MIN_TOKEN <= len(token) <= 4096 or not all(0x21 <= byte <= 0x7E for byte in token):
        raise ConfigError(
            f"{place}: {path} has to hold one token of {MIN_TOKEN} to 4096 visible ASCII "
            f"characters; make one, for example: openssl rand -hex 32 > {path}"
        )
    return token, found


def _credentials(given: str) -> bytes:
    """Return the token of an `Authorization` header; of Basic, which browsers have, the password.

    Empty without one.
    """
    scheme, _, value = given.strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value.encode("latin-1", "replace")
    if scheme.lower() == "basic":
        import binascii

        try:
            return binascii.a2b_base64(value.encode("latin-1")).partition(b":")[2]
        except ValueError:
            pass
    return b""


def _is_same(one: bytes, other: bytes) -> bool:
    """Compare in a time that does not depend on where they differ."""
    from hmac import compare_digest

    return compare_digest(one, other)


def _host_name(host: str) -> str:
    """Return the name in a `Host` header, in lower case, without port and brackets."""
    name, colon, port = host.rpartition(":")
    if not colon or host.endswith("]"):
        name = host
    elif not (port.isascii() and port.isdigit()):
        return host
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name.lower().removesuffix(".")


def _is_loopback_name(name: str) -> bool:
    parts = name.split(".")
    if parts[0] == "127" and len(parts) == 4:
        return all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts)
    return name in ("localhost", "::1")


def _is_local(listener: Listener) -> bool:
    """Whether only this machine reaches a listening socket."""
    if listener.socket.family == socket.AF_UNIX:
        return True
    host: str = listener.socket.getsockname()[0].removeprefix("::ffff:")
    return host == "::1" or host.startswith("127.")
