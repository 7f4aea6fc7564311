"""The fields of a request, read when a page touches them."""

from __future__ import annotations

from ..dispatch.form import Fields, FieldStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..dispatch.form import Field
    from ..dispatch.request import Request


class Form(Fields):
    """Fields of the body and of the address, as `request.form` has them."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._list: list[Field] | None = None

    @property
    def list(self) -> list[Field]:  # type: ignore[override]
        """The fields, in the order they came."""
        if self._list is None:
            self._list = FieldStorage(self._request).list
        return self._list
