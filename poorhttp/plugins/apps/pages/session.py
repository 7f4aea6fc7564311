"""Sessions: data about a visitor in a signed cookie.

The visitor can read the data but not change them. They are JSON: reading them runs no code.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping
from functools import cached_property
from hashlib import sha256

from .cookies import Cookies, set_cookie

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from _typeshed.wsgi import WSGIEnvironment
    from itsdangerous import URLSafeTimedSerializer

NAME = "session"

#: Most bytes of name and value, for all browsers (RFC 6265 section 6.1).
MAX_COOKIE = 4096

#: The part of its lifetime after which a session is signed again, with a new date.
RENEWAL = 0.125


class Sessions:
    """Signs and reads sessions."""

    def __init__(self, key: bytes, salt: str, lifetime: float) -> None:
        """Take the key, a salt for the signature, and the seconds for which it is valid."""
        self._key = key
        self._salt = salt
        self.lifetime = lifetime

    def read(self, text: str) -> tuple[dict[str, Any], float] | None:
        """Return data and age in seconds of a cookie; nothing if it is forged or too old."""
        from itsdangerous import BadData

        try:
            data, date = self._signer.loads(text, max_age=int(self.lifetime), return_timestamp=True)
        except BadData:
            return None
        return (data, time.time() - date.timestamp()) if isinstance(data, dict) else None

    def sign(self, data: dict[str, Any]) -> str:
        """Return the text of a cookie.

        Raises:
            TypeError: the data are not JSON.
            ValueError: they are too large for a cookie.
        """
        signed = self._signer.dumps(data)
        text = signed if isinstance(signed, str) else signed.decode()
        size = len(NAME) + 1 + len(text)
        if size > MAX_COOKIE:
            raise ValueError(
                f"the session takes {size} bytes as a cookie, but browsers keep at most "
                f"{MAX_COOKIE}: store the data in a database, and its key in the session"
            )
        return text

    @cached_property
    def _signer(self) -> URLSafeTimedSerializer:
        # Imported with the first session: it needs more memory than a page.
        from itsdangerous import URLSafeTimedSerializer

        return URLSafeTimedSerializer(
            self._key,
            salt=self._salt,
            signer_kwargs={"key_derivation": "hmac", "digest_method": sha256},
        )


class Session(MutableMapping[str, "Any"]):
    """A dictionary that the visitor's next request has again.

    It holds JSON: text, numbers, booleans, `None`, lists, and dictionaries with text as keys. The
    cookie is read at first use, and sent if it has changed or is an eighth of its lifetime old. Of
    two requests at the same time, the last answer wins.
    """

    __slots__ = ("_age", "_before", "_cookies", "_data", "_environ", "_sessions")

    def __init__(self, sessions: Sessions, cookies: Cookies, environ: WSGIEnvironment) -> None:
        self._sessions = sessions
        self._cookies = cookies
        self._environ = environ
        self._data: dict[str, Any] | None = None
        self._before = ""
        self._age = 0.0

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._read()[name] = value

    def __delitem__(self, name: str) -> None:
        del self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __repr__(self) -> str:
        return f"Session({self._read()!r})"

    def _read(self) -> dict[str, Any]:
        if self._data is None:
            cookie = self._cookies.get(NAME)
            found = self._sessions.read(cookie) if cookie else None
            self._data, self._age = found or ({}, 0.0)
            self._before = _text(self._data)
        return self._data

    @property
    def touched(self) -> bool:
        """Whether the page has used it: its answer is for this visitor only."""
        return self._data is not None

    def cookie(self) -> str | None:
        """Return the `Set-Cookie` header that the answer needs, if any.

        Raises:
            TypeError, ValueError: see `Sessions.sign`.
        """
        data = self._data
        if data is None:
            return None
        changed = _text(data) != self._before
        lifetime = self._sessions.lifetime
        if not changed and self._age < lifetime * RENEWAL:
            return None
        path = self._environ.get("SCRIPT_NAME", "") or "/"
        if path != "/":
            from urllib.parse import quote

            # Browsers compare it with the encoded path of an address.
            path = quote(path.encode("latin-1"))
        secure = self._environ["wsgi.url_scheme"] == "https"
        if not data:
            return set_cookie(NAME, "", path=path, lifetime=0, secure=secure)
        text = self._sessions.sign(data)
        return set_cookie(NAME, text, path=path, lifetime=lifetime, secure=secure)


def _text(data: dict[str, Any]) -> str:
    """Return the data as text, in which a change inside of a list shows too."""
    from json import dumps

    return dumps(data, separators=(",", ":")) if data else ""
