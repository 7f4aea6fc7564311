"""The response of a template page: status, headers and cookies."""

from __future__ import annotations

from poorhttp.plugins.apps.dispatch.headers import Headers
from poorhttp.plugins.apps.dispatch.server_return import SERVER_RETURN, encoded_url
from poorhttp.plugins.apps.dispatch.status import DONE

from .cookies import set_cookie

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from _typeshed.wsgi import WSGIEnvironment


class Response:
    """Status and headers. A page may change them at any time, since they are sent after rendering.

    Attributes:
        status: 200 unless set.
        content_type: `text/html; charset=utf-8` unless set; the text is always UTF-8.
    """

    __slots__ = ("_environ", "_headers", "content_type", "status")

    def __init__(self, environ: WSGIEnvironment) -> None:
        self.status = 200
        self.content_type = "text/html; charset=utf-8"
        self._environ = environ
        self._headers: Headers | None = None

    @property
    def headers(self) -> Headers:
        """The headers, as `response.headers["Cache-Control"] = "no-store"`."""
        if self._headers is None:
            self._headers = Headers()
        return self._headers

    def fields(self) -> list[tuple[str, str]]:
        """Return the headers for `start_response`, without Content-Type."""
        if self._headers is None:
            return []
        if (content_type := self._headers["Content-Type"]) is not None:
            self.content_type = content_type
            del self._headers["Content-Type"]
        return self._headers.items()

    def set_cookie(
        self,
        name: str,
        value: object,
        *,
        lifetime: float | None = None,
        path: str = "/",
        domain: str | None = None,
        secure: bool | None = None,
        http_only: bool = True,
        same_site: str = "Lax",
    ) -> None:
        """Set a cookie.

        Args:
            name: of the cookie.
            value: its `str()` is sent.
            lifetime: in seconds; None for a cookie that the browser forgets when it is closed.
            path: where the browser sends it.
            domain: hosts to which the browser sends it; None for this one only.
            secure: only by https; None if this request came by https.
            http_only: hidden from scripts.
            same_site: `Lax`, `Strict` or `None`.
        """
        if secure is None:
            secure = self._environ["wsgi.url_scheme"] == "https"
        text = set_cookie(
            name,
            str(value),
            lifetime=lifetime,
            path=path,
            domain=domain,
            secure=secure,
            http_only=http_only,
            same_site=same_site,
        )
        self.headers.add("Set-Cookie", text)

    def delete_cookie(self, name: str, *, path: str = "/", domain: str | None = None) -> None:
        """Delete a cookie; path and domain must be those that it was set with."""
        self.set_cookie(name, "", lifetime=0, path=path, domain=domain)

    def redirect(self, url: str, status: int = 303) -> NoReturn:
        """Redirect the browser, and end the page. Headers, cookies and session are sent.

        Args:
            url: absolute, or relative to the present one. Characters that cannot stand in an
                address are percent-encoded, line breaks too.
            status: 303 by default: reloading the new page does not send a form again.
        """
        self.headers["Location"] = encoded_url(url)
        self.status = status
        raise SERVER_RETURN(DONE)

    def abort(self, status: int, message: str = "") -> NoReturn:
        """Answer with the page of an error status, 400 to 599, and end this one."""
        if not 400 <= status <= 599:
            raise ValueError(f"{status!r} is not the status of an error: use a number from 400")
        raise SERVER_RETURN(status, message)
