"""The form fields of a request, read at first use."""

from __future__ import annotations

from ..dispatch.form import Fields, FieldStorage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..dispatch.form import Field
    from ..dispatch.request import Request


class Form(Fields):
    """Fields of body and query, the same as `request.form`."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._list: list[Field] | None = None

    @property
    def list(self) -> list[Field]:  # type: ignore[override]
        """The fields, in the order in which they were sent."""
        if self._list is None:
            self._list = FieldStorage(self._request).list
        return self._list
