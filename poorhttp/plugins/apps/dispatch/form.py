"""Form fields: from the query string of the URL, and from the request body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from poorhttp.errors import ApplicationError, how_to_install
from poorhttp.plugins.apps.native import read_fields

from .server_return import SERVER_RETURN
from .status import (
    HTTP_BAD_REQUEST,
    HTTP_REQUEST_ENTITY_TOO_LARGE,
    HTTP_REQUEST_URI_TOO_LARGE,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

    import multipart

    from .request import Request


# Bytes of an uploaded file in memory; a larger one is written to disk.
_SPOOL = 64 * 1024

# Continuation lines (RFC 5322 section 2.2.3) in the header of one part. The library copies the
# whole field for each of them, up to 4 KiB: 200 KB of them took 0.4 s.
_MAX_CONTINUATIONS = 8

# Digits of a section's number in a parameter such as `filename*0` (RFC 2231 section 3).
_MAX_SECTION_DIGITS = 2

# Charsets that a part may name beside UTF-8, by their IANA names and aliases. A client must not
# choose among all codecs: `punycode` is quadratic, and Python keeps every unknown name for ever.
_CHARSETS = {
    name: codec
    for codec, names in {
        "ascii": "us-ascii ascii us ansi_x3.4-1968 iso646-us iso-ir-6 ibm367 cp367 csascii",
        "latin-1": "iso-8859-1 iso_8859-1 iso8859-1 latin1 latin-1 l1 iso-ir-100 ibm819 cp819 "
        "csisolatin1",
        "cp1252": "windows-1252 cp1252 x-cp1252 cswindows1252",
    }.items()
    for name in names.split()
}

# Codecs of Python that do not decode text.
_NO_CHARSETS = frozenset({"idna", "undefined"})


class FormError(SERVER_RETURN, ValueError):
    """A form is malformed (400) or too large (413), which is the response unless you catch it."""


class Field:
    """One field: a text, or an uploaded file.

    Attributes:
        name: of the field in the form.
        filename: sent by the browser, None for a text. Never to be used as a path.
        type: the media type sent by the browser, without parameters.
        file: the content of an uploaded file, at its start, None for a text. A large one is in an
            unlinked temporary file, which is gone when the field is.
        size: bytes of a file, characters of a text.
    """

    __slots__ = ("_text", "file", "filename", "name", "size", "type")

    def __init__(
        self,
        name: str,
        text: str = "",
        *,
        filename: str | None = None,
        file: BinaryIO | None = None,
        type: str = "text/plain",  # noqa: A002 - the attribute's name since the cgi module
    ) -> None:
        self.name = name
        self._text = text
        self.filename = filename
        self.file = file
        self.size = len(text)
        self.type = type

    @property
    def value(self) -> str | bytes:
        """The text, or the whole content of the file."""
        if self.file is None:
            return self._text
        at = self.file.tell()
        self.file.seek(0)
        content = self.file.read()
        self.file.seek(at)
        return content

    def __del__(self) -> None:
        if self.file is not None:
            self.file.close()

    def __repr__(self) -> str:
        what = repr(self._text) if self.file is None else f"file {self.filename!r}"
        return f"Field({self.name!r}, {what})"


class Fields:
    """Fields, in the order in which they were sent. A name may have several."""

    def __init__(self, fields: Iterable[Field] = ()) -> None:
        self.list = list(fields)

    def __getitem__(self, name: str) -> Field | list[Field]:
        """The field of a name, or a list where there are several.

        Raises:
            KeyError: there is none.
        """
        found = [field for field in self.list if field.name == name]
        if not found:
            raise KeyError(name)
        return found[0] if len(found) == 1 else found

    def __contains__(self, name: object) -> bool:
        return any(field.name == name for field in self.list)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.list!r})"

    def keys(self) -> list[str]:
        """The names, each once."""
        return list(dict.fromkeys(field.name for field in self.list))

    def getfirst(
        self, name: str, default: Any = None, func: Callable[[Any], Any] | None = None
    ) -> Any:
        """The first value of a name, or the default, passed through `func`, such as `int`.

        Raises:
            FormError: `func` raised ValueError for the value: 400, unless it is caught.
        """
        for field in self.list:
            if field.name == name:
                return _converted(field, func)
        return default if func is None or default is None else func(default)

    def getlist(self, name: str, func: Callable[[Any], Any] | None = None) -> list[Any]:
        """Every value of a name, each passed through `func`. Raises like `getfirst`."""
        return [_converted(field, func) for field in self.list if field.name == name]

    def getvalue(self, name: str, default: Any = None) -> Any:
        """The value of a name, a list of them where there are several, or the default."""
        values = self.getlist(name)
        if not values:
            return default
        return values[0] if len(values) == 1 else values


class FieldStorage(Fields):
    """The fields of a request's body and then of its address.

    Bodies are `application/x-www-form-urlencoded` (WHATWG URL section 5) or `multipart/form-data`
    (RFC 7578); one of another type has no fields here and stays unread. The limits are attributes,
    to be set on the class for the whole application or on a subclass.

    Args:
        req: the request.
        keep_blank_values: keep fields without a value; by default they count as not sent. A file
            that has a name is kept, also if it is empty.

    Raises:
        FormError: malformed (400) or beyond a limit (413).
        ApplicationError: it is `multipart/form-data`, and the extra `forms` is not installed.
    """

    #: Fields in one form; Django's figure. More would be an attack on hash tables.
    max_fields = 1000
    #: Files in one form; Django's figure. Each may need a descriptor, and often 1,024 is the limit.
    max_files = 100
    #: Bytes of text in one form, in memory.
    max_memory = 8 * 1024**2
    #: Bytes of files in one form, on disk; the default of the option `max_body`.
    max_upload = 1024**3

    def __init__(self, req: Request, keep_blank_values: bool | int = False) -> None:
        sent = req.sent_fields
        if sent is None:
            # The body can be read only once; its fields are kept for another FieldStorage.
            sent = req.sent_fields = [*self._body(req), *query(req.query, self.max_fields)]
        # A file may be empty. An input for which no file was chosen has an empty file name.
        super().__init__(
            [field for field in sent if keep_blank_values or field.size or field.filename]
        )

    def _body(self, req: Request) -> list[Field]:
        content_type = req.environ.get("CONTENT_TYPE")
        if not content_type:
            return []
        media_type, _, _ = content_type.partition(";")
        match media_type.strip().lower():
            case "application/x-www-form-urlencoded":
                if req.content_length > self.max_memory:
                    raise _too_large(f"The form is larger than {self.max_memory} bytes.")
                text = req.read(self.max_memory + 1)
                if len(text) > self.max_memory:
                    raise _too_large(f"The form is larger than {self.max_memory} bytes.")
                return _urlencoded(
                    text.decode("utf-8", "replace"), self.max_fields, HTTP_REQUEST_ENTITY_TOO_LARGE
                )
            case "multipart/form-data":
                return self._multipart(req)
        return []

    def _multipart(self, req: Request) -> list[Field]:
        try:
            import multipart
        except ImportError:
            raise ApplicationError(
                "forms with files need multipart, which is not installed: "
                + how_to_install("forms")
            ) from None

        if req.content_length > self.max_memory + self.max_upload:
            raise _too_large(f"The form is larger than {self.max_memory + self.max_upload} bytes.")
        _, options = multipart.parse_options_header(req.environ["CONTENT_TYPE"])
        fields: list[Field] = []
        file: Field | None = None
        text: list[bytes] = []
        files = text_size = file_size = 0
        try:
            with _parser_class()(options.get("boundary", "")) as parser:
                for event in parser.parse_blocking(req.read):
                    if isinstance(event, multipart.MultipartSegment):
                        part = event
                        text.clear()
                        file = None
                        if len(fields) == self.max_fields:
                            raise _too_large(f"The form has more than {self.max_fields} fields.")
                        name, filename = _names(part)
                        if filename is not None:
                            files += 1
                            if files > self.max_files:
                                raise _too_large(f"The form has more than {self.max_files} files.")
                            file = _file(name, filename, part.content_type)
                            fields.append(file)
                    elif not event:
                        if file is None:
                            fields.append(Field(name, _text(b"".join(text), part.charset)))
                        elif file.file is not None:
                            file.file.seek(0)
                    elif file is None or file.file is None:
                        text_size += len(event)
                        if text_size > self.max_memory:
                            raise _too_large(f"The form's text exceeds {self.max_memory} bytes.")
                        text.append(bytes(event))
                    else:
                        file_size += len(event)
                        if file_size > self.max_upload:
                            raise _too_large(f"The form's files exceed {self.max_upload} bytes.")
                        file.size += file.file.write(event)
        except multipart.ParserLimitReached as error:
            raise _too_large(f"The form is larger than accepted: {error}.") from error
        except multipart.MultipartError as error:
            raise FormError(HTTP_BAD_REQUEST, f"The form cannot be read: {error}.") from error
        return fields


def query(text: str, max_fields: int = FieldStorage.max_fields) -> list[Field]:
    """Return the fields of a query string, blank ones too.

    Raises:
        FormError: more than `max_fields` (414).
    """
    return _urlencoded(text, max_fields, HTTP_REQUEST_URI_TOO_LARGE)


def _urlencoded(text: str, max_fields: int, status: int) -> list[Field]:
    if not text:
        return []
    if text.count("&") >= max_fields:
        raise FormError(status, f"More than {max_fields} fields were sent.")
    return [Field(name, value) for name, value in read_fields(text)]


def _file(name: str, filename: str, media_type: str | None) -> Field:
    from tempfile import SpooledTemporaryFile

    file: Any = SpooledTemporaryFile(max_size=_SPOOL)  # noqa: SIM115 - the field closes it
    return Field(name, filename=filename, file=file, type=media_type or "application/octet-stream")


def _names(part: multipart.MultipartSegment) -> tuple[str, str | None]:
    """Return the name of a part, and that of its file; None for a text.

    RFC 7578 section 4.2 forbids `filename*`, but older versions of urllib3 and other clients send
    it, and `name*`, for names that are not ASCII. As in RFC 6266, it counts before `filename`.
    """
    disposition = part.header("Content-Disposition", "")
    if "*" not in disposition:
        return part.name or "", part.filename
    extended = _extended_parameters(disposition)
    return extended.get("name", part.name or ""), extended.get("filename", part.filename)


def _extended_parameters(disposition: str) -> dict[str, str]:
    """Return parameters that are encoded (RFC 8187) or in several sections (RFC 2231)."""
    import re  # the library for forms has imported it

    token, quoted = r"[!#$%&'*+.^_`|~\w-]+", r'"(?:\\.|[^"\\])*"'
    sections: dict[str, dict[int, tuple[bool, str]]] = {}
    for key, value in re.findall(rf";\s*({token})\s*=\s*({quoted}|[^;\"]*)", disposition, re.ASCII):
        name, star, section = key.lower().partition("*")
        number = section.removesuffix("*") or "0"
        if star and number.isdecimal() and len(number) <= _MAX_SECTION_DIGITS:
            is_encoded = key.endswith("*")
            text = value.strip()
            if text[:1] == '"':
                text = re.sub(r"\\(.)", r"\1", text[1:-1])
            sections.setdefault(name, {}).setdefault(int(number), (is_encoded, text))
    return {name: _decoded_sections(parts) for name, parts in sections.items()}


def _decoded_sections(parts: dict[int, tuple[bool, str]]) -> str:
    """Return the text of a parameter; the first encoded section begins with `CHARSET'LANGUAGE'`."""
    from urllib.parse import unquote_to_bytes  # the library for forms has imported it

    raw, charset = b"", None
    for _, (is_encoded, text) in sorted(parts.items()):
        value = text
        if is_encoded and charset is None:
            charset, *rest = text.split("'", 2)
            charset, value = (charset, rest[1]) if len(rest) == 2 else ("", text)
        raw += unquote_to_bytes(value) if is_encoded else value.encode()
    return _text(raw, charset)


@cache
def _parser_class() -> type[multipart.PushMultipartParser]:
    """The library's parser, with a limit of continuation lines."""
    import multipart

    class Parser(multipart.PushMultipartParser):  # type: ignore[misc]
        _continuations = 0

        def _on_segment_headerline(self, line: bytes) -> None:
            if line[:1] in (b" ", b"\t"):
                self._continuations += 1
                if self._continuations > _MAX_CONTINUATIONS:
                    raise multipart.ParserLimitReached("too many continuation lines in a part")
            super()._on_segment_headerline(line)

        def _on_segment_start(self) -> None:
            self._continuations = 0
            super()._on_segment_start()

    return Parser


def _text(raw: bytes, charset: str | None) -> str:
    """Decode the text of a part.

    Raises:
        FormError: its charset has an impossible name (400).
    """
    name = (charset or "utf-8").strip().lower()
    if name in _NO_CHARSETS or not name.isprintable():
        raise FormError(HTTP_BAD_REQUEST, f"The form names an unknown charset: {name!r}.")
    return raw.decode(_CHARSETS.get(name, "utf-8"), "replace")


def _converted(field: Field, func: Callable[[Any], Any] | None) -> Any:
    if func is None:
        return field.value
    try:
        return func(field.value)
    except ValueError as error:
        raise FormError(
            HTTP_BAD_REQUEST, f"The field {field.name!r} cannot have this value."
        ) from error


def _too_large(message: str) -> FormError:
    return FormError(HTTP_REQUEST_ENTITY_TOO_LARGE, message)
