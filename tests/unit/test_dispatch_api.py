"""The dispatch-table API: table, hooks, results, the request, forms."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from poorhttp import dispatch as http
from poorhttp.errors import ApplicationError
from tests.support.wsgi_call import Answer, ask
from tests.testkit.server import run

Handler = Callable[[http.Request], object]

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def table(**names: Any) -> http.Application:
    """An application of a table with these names."""
    return http.Application(SimpleNamespace(**{"handlers": {}, **names}))


def serve(handler: Handler, **names: Any) -> http.Application:
    """An application whose handler of `/` takes every method."""
    return table(handlers={"/": (http.METHOD_ALL, handler)}, **names)


def hello(req: http.Request) -> int:
    req.content_type = "text/plain"
    req.write("Hello")
    return http.DONE


def fail(req: http.Request) -> int:
    raise LookupError("the secret of the house")


def writer(*pieces: object, flush: bool = False) -> Handler:
    """A handler that writes these."""

    def handler(req: http.Request) -> None:
        for piece in pieces:
            req.write(piece, flush=flush)

    return handler


def giving(result: object = http.DONE, status: Any = http.HTTP_OK) -> Handler:
    """A handler that sets a status and returns a result."""

    def handler(req: http.Request) -> object:
        req.status = status
        return result

    return handler


# The table


GET = {"/": (http.METHOD_GET, hello)}

#: Functions may share a path.
BOTH = {"/": {http.METHOD_GET: lambda req: "shown", http.METHOD_POST: lambda req: "kept"}}


@pytest.mark.parametrize(
    ("handlers", "method", "path", "status", "allow"),
    [
        (GET, "GET", "/nowhere", 404, ""),
        (GET, "GET", "/\xff\xfe", 404, ""),
        (GET, "POST", "/", 405, "GET, HEAD, OPTIONS"),
        ({"/": (http.METHOD_ALL, hello)}, "BREW", "/", 501, ""),
        ({"/": (http.METHOD_POST, hello)}, "HEAD", "/", 405, "POST, OPTIONS"),
        ({"/": (http.METHOD_GET_POST, hello)}, "OPTIONS", "/", 204, "GET, HEAD, POST, OPTIONS"),
        (BOTH, "PUT", "/", 405, "GET, HEAD, POST, OPTIONS"),
    ],
)
def test_requests_that_no_handler_takes(
    handlers: dict[str, Any], method: str, path: str, status: int, allow: str
) -> None:
    answer = ask(table(handlers=handlers), path, method, validate=method != "BREW")
    assert (answer.status, answer.headers.get("allow", "")) == (status, allow)
    if status == 204:
        assert (answer.fields, answer.body) == ([("Allow", allow)], b"")


def test_a_handler_writes_and_is_done() -> None:
    answer = ask(http.Application(GET))
    assert (answer.status, answer.reason, answer.body) == (200, "OK", b"Hello")
    assert answer.fields == [("Content-Type", "text/plain; charset=utf-8")]
    answer = ask(http.Application(GET), method="HEAD")
    assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "5")


@pytest.mark.parametrize(
    ("handlers", "method", "path", "text"),
    [
        (BOTH, "GET", "/", "shown"),
        (BOTH, "POST", "/", "kept"),
        # An empty path is the root; a path is text.
        (BOTH, "GET", "", "shown"),
        ({"/žluť": (http.METHOD_GET, lambda req: req.uri)}, "GET", "/\xc5\xbelu\xc5\xa5", "/žluť"),
    ],
)
def test_whose_request_it_is(handlers: dict[str, Any], method: str, path: str, text: str) -> None:
    mounted = {"SCRIPT_NAME": "/mounted"}
    assert ask(table(handlers=handlers), path, method, environ=mounted).text == text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"handlers": None}, "has no handlers"),
        ({"handlers": None, "handler": {}}, 'did you mean "handler"?'),
        ({"handlers": []}, "handlers is a list"),
        ({"handlers": {"light": (2, hello)}}, "handlers['light']: a path is text that begins"),
        ({"handlers": {"/": hello}}, "it should be (http.METHOD_GET, function)"),
        ({"handlers": {"/": (hello, 2)}}, "handlers['/'] is"),
        ({"handlers": {"/": (0, hello)}}, "handlers['/'] is"),
        ({"handlers": {"/": {2: "hello"}}}, "handlers['/'] is"),
        ({"handlers": {}, "errors": {99: hello}}, "errors[99]: the key must be a status from 400"),
        ({"handlers": {}, "errors": {404: "page"}}, "errors[404] is 'page'"),
        ({"handlers": {}, "errors": [404]}, "errors is a list"),
        ({"handlers": {}, "post_process": 5}, "post_process is 5, it should be a function"),
    ],
)
def test_a_wrong_table_is_named(names: dict[str, Any], message: str) -> None:
    with pytest.raises(ApplicationError) as caught:
        http.Application(SimpleNamespace(**names))
    assert message in str(caught.value)


# Hooks


def test_the_hooks_run_around_a_handler() -> None:
    def note(name: str) -> Callable[[http.Request], None]:
        return lambda req: req.headers_out.add("X-Step", name)

    def handler(req: http.Request) -> str:
        req.headers_out.add("X-Step", "handler")
        return "done"

    hooks = {name: note(name) for name in ("setreq", "pre_process", "post_process")}
    application = serve(handler, **hooks)
    steps = [value for name, value in ask(application).fields if name == "X-Step"]
    assert steps == ["setreq", "pre_process", "handler", "post_process"]


def test_a_hook_hangs_what_handlers_share_on_the_request_or_answers() -> None:
    def setreq(req: http.Request) -> None:
        req.greeting = "Ahoj"
        if req.method == "POST":
            raise http.SERVER_RETURN(http.HTTP_FORBIDDEN)

    application = serve(lambda req: req.greeting, setreq=setreq)
    assert ask(application).text == "Ahoj"
    assert ask(application, method="POST").status == 403


def test_post_process_sees_error_pages_too() -> None:
    seen = []
    application = table(post_process=lambda req: seen.append(req.status))
    ask(application, "/nowhere")
    assert seen == [404]


def test_the_default_handler_takes_what_the_table_does_not_have() -> None:
    application = serve(lambda req: http.DECLINED, default_handler=lambda req: f"at {req.uri}")
    assert ask(application, "/nowhere").text == "at /nowhere"
    assert ask(application, "/").text == "at /"
    assert ask(table(default_handler=lambda req: http.DECLINED)).status == 404


# Results


@pytest.mark.parametrize(
    ("written", "result", "status", "body"),
    [
        # The answer is as it was made, the status is another one, or there must be no body.
        ("made", http.DONE, "202 Accepted", b"made"),
        ("made", http.OK, "202 Accepted", b"made"),
        ("made", http.HTTP_OK, "202 Accepted", b"made"),
        ("made", None, "202 Accepted", b"made"),
        ("made", http.HTTP_CREATED, "201 Created", b"made"),
        ("lost", http.HTTP_NO_CONTENT, "204 No Content", b""),
        ("lost", http.HTTP_NOT_MODIFIED, "304 Not Modified", b""),
        # The result is the body.
        ("", "žluť", "200 OK", "žluť".encode()),
        ("", b"\x00\xff", "200 OK", b"\x00\xff"),
        ("", ["one ", b"two"], "200 OK", b"one two"),
        ("", iter([b"one ", b"two"]), "200 OK", b"one two"),
    ],
)
def test_results(written: str, result: object, status: str, body: bytes) -> None:
    def handler(req: http.Request) -> object:
        if written:
            req.status = http.HTTP_ACCEPTED
            req.headers_out["Content-Type"] = "text/css"
            req.write(written)
        return result

    answer = ask(serve(handler))
    assert (f"{answer.status} {answer.reason}", answer.body) == (status, body)
    assert bool(answer.fields) == bool(body)


def test_an_iterable_is_closed() -> None:
    closed = []

    class Body:
        def __iter__(self) -> Iterator[bytes]:
            yield b"piece"

        def close(self) -> None:
            closed.append(True)

    def handler(req: http.Request) -> Body:
        req.write("written ")
        return Body()

    assert ask(serve(handler)).text == "written piece"
    assert ask(serve(handler), method="HEAD").body == b""
    assert closed == [True, True]


@pytest.mark.parametrize("status", [400, 403, 404, 418, 451, 500, 503, 599])
def test_an_error_status_is_answered_with_a_page(status: int) -> None:
    def handler(req: http.Request) -> int:
        req.headers_out["X-Draft"] = "yes"
        req.err_headers_out["X-Error"] = "yes"
        req.write("half an answer")
        return status

    answer = ask(serve(handler))
    assert answer.status == status
    assert f"<h1>{status} {answer.reason}</h1>" in answer.text
    assert "half an answer" not in answer.text
    assert answer.headers == {"x-error": "yes", "content-type": "text/html; charset=utf-8"}


def test_a_page_escapes_what_was_asked() -> None:
    answer = ask(table(), "/<script>alert('\"&")
    assert "<script>" not in answer.text
    assert "/&lt;script&gt;alert(&#39;&#34;&amp;" in answer.text


@pytest.mark.parametrize(
    ("application", "logged"),
    [
        (serve(hello, setreq=fail), "LookupError: the secret of the house"),
        (serve(hello, pre_process=fail), "LookupError: the secret of the house"),
        (serve(hello, post_process=fail), "LookupError: the secret of the house"),
        *(
            (serve(giving(result)), "TypeError: the handler of / returned")
            for result in (3, 100, -1, 3.5, {"a": 1}, object())
        ),
        *(
            (serve(giving(status=status)), "is not the status of a response")
            for status in (100, 600, "200 OK", None)
        ),
    ],
)
def test_errors_of_the_server(application: http.Application, logged: str) -> None:
    answer = ask(application)
    assert answer.status == 500
    assert "Hello" not in answer.text
    assert logged in answer.log


def test_server_return_leaves_from_any_depth() -> None:
    def deep() -> None:
        raise http.SERVER_RETURN(http.HTTP_GONE, "It was <here>.")

    def handler(req: http.Request) -> None:
        try:
            deep()
        except LookupError:
            pytest.fail("not a lookup error")

    answer = ask(serve(handler))
    assert answer.status == 410
    assert "It was &lt;here&gt;." in answer.text
    assert answer.log == ""


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (http.SERVER_RETURN(http.DONE), 200, "enough"),
        (http.SERVER_RETURN(http.DECLINED), 404, ""),
        (http.SERVER_RETURN, 500, ""),
    ],
)
def test_server_return(error: Any, status: int, text: str) -> None:
    def handler(req: http.Request) -> None:
        req.write("enough")
        raise error

    answer = ask(serve(handler))
    assert (answer.status, text or answer.text) == (status, answer.text)


def test_an_exception_is_told_to_the_log_and_not_to_the_client() -> None:
    answer = ask(serve(fail), "/?token=7")
    assert answer.status == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert answer.log.startswith("[error] GET /\n")
    assert "in fail\n" in answer.log
    assert "LookupError: the secret of the house" in answer.log


def test_leaving_the_process_is_not_caught() -> None:
    def handler(req: http.Request) -> None:
        sys.exit(3)

    with pytest.raises(SystemExit):
        ask(serve(handler))


# Error pages of the application's own


def lost(req: http.Request) -> int:
    req.write(f"lost at {req.uri}")
    return http.DONE


@pytest.mark.parametrize(
    ("errors", "status", "text"),
    [
        ({404: lost}, 404, "lost at /nowhere"),
        ({404: {http.METHOD_GET: lost}}, 404, "lost at /nowhere"),
        ({404: {http.METHOD_POST: hello, http.METHOD_ALL: lost}}, 404, "lost at /nowhere"),
        ({404: {http.METHOD_POST: lost}}, 404, "<h1>404"),
        ({404: lambda req: "text"}, 404, "text"),
        ({404: lambda req: http.HTTP_GONE, 410: fail}, 410, "<h1>410"),
        ({404: fail, 500: fail}, 500, "<h1>500"),
    ],
)
def test_pages_of_the_applications_own(errors: Any, status: int, text: str) -> None:
    """One of another method is not used; one that fails is an error of the server."""
    answer = ask(table(errors=errors), "/nowhere")
    assert answer.status == status
    assert (text in answer.text) if "<h1>" in text else (answer.text == text)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert ("LookupError" in answer.log) == (status == 500)


def test_an_error_page_knows_the_exception_and_keeps_allow() -> None:
    answer = ask(serve(fail, errors={500: lambda req: type(req.error).__name__}))
    assert (answer.status, answer.text) == (500, "LookupError")
    assert "LookupError" in answer.log
    answer = ask(table(handlers=GET, errors={405: lambda req: "no"}), method="PUT")
    assert (answer.status, answer.text) == (405, "no")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


def test_redirect() -> None:
    def handler(req: http.Request) -> None:
        req.headers_out.add("Set-Cookie", "a=1")
        req.err_headers_out.add("Set-Cookie", "b=2")
        req.write("forgotten")
        http.redirect(req, "/there?a=1&b=<2>")

    answer = ask(serve(handler))
    assert (answer.status, answer.reason) == (302, "Found")
    assert answer.headers["location"] == "/there?a=1&b=%3C2%3E"
    assert [value for name, value in answer.fields if name == "Set-Cookie"] == ["a=1", "b=2"]
    assert "forgotten" not in answer.text
    assert '<a href="/there?a=1&amp;b=%3C2%3E">' in answer.text


@pytest.mark.parametrize(
    ("url", "location"),
    [("/a\r\nSet-Cookie: x=1", "/a%0D%0ASet-Cookie:%20x=1"), ("/žluť%20", "/%C5%BElu%C5%A5%20")],
)
def test_redirect_for_good_with_a_text(url: str, location: str) -> None:
    answer = ask(serve(lambda req: http.redirect(req, url, True, "moved")))
    assert (answer.status, answer.text, answer.headers["location"]) == (301, "moved", location)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_redirect_after_sending_is_refused() -> None:
    def handler(req: http.Request) -> None:
        req.write("sent")
        req.flush()
        http.redirect(req, "/")

    with pytest.raises(RuntimeError, match="already begun"):
        ask(serve(handler))


# Writing


def test_write_takes() -> None:
    data = ["ž", b"\xff", bytearray(b"ab"), memoryview(b"ab"), 5]
    bodies = [ask(serve(writer("<", each, ">"))).body for each in data]
    assert bodies == ["<ž>".encode(), b"<\xff>", b"<ab>", b"<ab>", b"<5>"]


@pytest.mark.parametrize(
    ("content_type", "sent", "body"),
    [
        ("text/html", "text/html; charset=utf-8", b"\xc5\xbe"),
        ("text/html; charset=iso-8859-2", "text/html; charset=iso-8859-2", b"\xbe"),
        ('text/plain; charset="iso-8859-2"; x=y', None, b"\xbe"),
        ("application/json", "application/json", b"\xc5\xbe"),
    ],
)
def test_text_is_encoded_as_its_type_says(content_type: str, sent: str | None, body: bytes) -> None:
    def handler(req: http.Request) -> None:
        req.content_type = content_type
        req.write("ž")

    answer = ask(serve(handler))
    assert answer.fields == [("Content-Type", sent or content_type)]
    assert answer.body == body


def test_flush_sends_at_once() -> None:
    written: list[bytes] = []
    started: list[str] = []
    sent: list[bool] = []

    def handler(req: http.Request) -> None:
        sent.append(req.headers_sent)
        req.write("one ", flush=1)
        sent.append(req.headers_sent)
        assert (started, written) == (["200 OK"], [b"one "])
        req.write("two ")
        req.flush()
        req.write("three")

    def start_response(status: str, fields: object) -> Callable[[bytes], None]:
        started.append(status)
        return written.append

    result = serve(handler)({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, start_response)  # type: ignore[arg-type]
    assert list(result) == [b"three"]
    assert (started, written, sent) == (["200 OK"], [b"one ", b"two "], [False, True])


def test_flush_of_head_sends_no_body() -> None:
    answer = ask(serve(writer("two"), pre_process=writer("one", flush=True)), method="HEAD")
    assert (answer.status, answer.body) == (200, b"")


def test_an_exception_after_flush_breaks_the_answer_off() -> None:
    with pytest.raises(LookupError):
        ask(serve(fail, pre_process=writer("half", flush=True)))


@pytest.fixture
def style(tmp_path: Path) -> str:
    """A file of 16 bytes."""
    (tmp_path / "style.css").write_bytes(b"* { color: red }")
    return str(tmp_path / "style.css")


def test_sendfile(style: str) -> None:
    def handler(req: http.Request) -> None:
        assert req.sendfile(style) == 16

    answer = ask(serve(handler))
    assert answer.fields == [("Content-Type", "text/css"), ("Content-Length", "16")]
    assert answer.body == b"* { color: red }"
    answer = ask(serve(handler), method="HEAD")
    assert (answer.headers["content-length"], answer.body) == ("16", b"")


def test_sendfile_after_writing(style: str) -> None:
    def handler(req: http.Request) -> None:
        req.content_type = "text/x-own"
        req.write("first, ")
        req.sendfile(style)

    answer = ask(serve(handler))
    assert answer.text == "first, * { color: red }"
    assert answer.headers == {"content-type": "text/x-own", "content-length": "23"}


def test_sendfile_uses_the_servers_wrapper(style: str) -> None:
    wrapped = []

    def wrapper(opened: Any) -> list[bytes]:
        wrapped.append(opened.name)
        with opened:
            return [opened.read()]

    def handler(req: http.Request) -> None:
        req.sendfile(style)

    answer = ask(serve(handler), environ={"wsgi.file_wrapper": wrapper})
    assert (answer.body, wrapped) == (b"* { color: red }", [style])


def test_headers_are_looked_up_without_case() -> None:
    headers = http.Headers([("Accept", "a")])
    headers.add("accept", "b")
    assert (headers["ACCEPT"], headers.get_all("accept")) == ("a", ["a", "b"])
    headers["aCCept"] = 5
    assert headers.items() == [("aCCept", "5")]
    assert "accept" in headers
    assert headers["none"] is None
    assert headers.get("none", "default") == "default"
    assert headers.setdefault("None", "set") == "set"
    assert headers.setdefault("none", "again") == "set"
    assert (len(headers), list(headers), headers.values()) == (2, ["aCCept", "None"], ["5", "set"])
    del headers["accept"]
    assert "accept" not in headers


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\0b", "☃", "a\x7f"])
def test_a_header_cannot_carry(value: str) -> None:
    with pytest.raises(ValueError, match="header X-Name cannot carry"):
        http.Headers().add("X-Name", value)
    with pytest.raises(ValueError, match="header X-Name cannot carry"):
        http.Headers()["X-Name"] = value


@pytest.mark.parametrize("name", ["", "X Name", "X-Name:", "X\n", "Ž"])
def test_a_header_cannot_be_called(name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a header"):
        http.Headers().add(name, "value")


# The request


def received(*arguments: Any, **keywords: Any) -> tuple[http.Request, Answer]:
    """The request that a handler gets."""
    seen: list[http.Request] = []
    answer = ask(serve(seen.append), *arguments, **keywords)
    return seen[0], answer


def test_what_a_request_knows() -> None:
    req, _ = received(
        "/?a=1",
        "POST",
        b"body",
        {
            "Host": "a.example:8080",
            "User-Agent": "robot",
            "Referer": "http://b.example/",
            "X-Requested-With": "XMLHttpRequest",
            "Accept-Language": "cs",
            "Cookie": "a=1; b=2",
            "Content-Type": "text/x-own",
        },
        environ={"SERVER_PORT": "8080", "SERVER_NAME": "server", "SERVER_SOFTWARE": "poorhttp/1.0"},
    )
    assert (req.method, req.method_number) == ("POST", http.METHOD_POST)
    assert (req.uri, req.path, req.query) == ("/", "/", "a=1")
    assert (req.hostname, req.scheme, req.protocol) == ("a.example:8080", "http", "HTTP/1.1")
    assert (req.server_hostname, req.port) == ("server", 8080)
    assert req.server_software == "poorhttp/1.0"
    assert (req.remote_addr, req.get_remote_host()) == ("192.0.2.7", "192.0.2.7")
    assert req.remote_host is None
    assert (req.user_agent, req.referer, req.is_xhr) == ("robot", "http://b.example/", True)
    assert req.headers_in["accept-language"] == "cs"
    assert req.headers_in["Content-Length"] == "4"
    assert req.headers_in["Content-Type"] == "text/x-own"
    assert req.cookies["b"].value == "2"
    assert req.subprocess_env is req.environ
    assert req.construct_url("/x") == "http://a.example:8080/x"
    assert req.construct_url("https://c.example/") == "https://c.example/"
    req.add_common_vars()
    assert req.environ["REQUEST_URI"] == "/"


@pytest.mark.parametrize(
    ("environ", "body"),
    [
        ({"CONTENT_LENGTH": "4"}, b"ab|cd|"),
        ({"CONTENT_LENGTH": "", "wsgi.input_terminated": True}, b"ab|cdef|"),
    ],
)
def test_the_body_is_read_to_its_end_and_no_further(environ: dict[str, Any], body: bytes) -> None:
    """The end is where the length says it, or the server marks it."""

    def handler(req: http.Request) -> list[bytes]:
        return [req.read(2), b"|", req.read(100), b"|", req.read()]

    answer = ask(serve(handler), "/", "POST", b"abcdef", environ=environ, validate=False)
    assert answer.body == body


def test_json() -> None:
    assert ask(serve(lambda req: req.json["a"]), "/", "POST", b'{"a": "b"}').text == "b"
    answer = ask(serve(lambda req: req.json["a"]), "/", "POST", b"{")
    assert answer.status == 400
    assert "is not valid JSON" in answer.text


def test_options_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("app_NAME", "environment")
    monkeypatch.setenv("APP_OTHER", "2")
    application = http.Application(
        {"/": (http.METHOD_GET, lambda req: repr(sorted(req.get_options().items())))},
        options={"name": "given", "third": "3"},
    )
    assert ask(application).text == "[('name', 'environment'), ('other', '2'), ('third', '3')]"
    assert "('name', 'server')" in ask(application, environ={"app_name": "server"}).text


def test_document_root_is_the_folder_of_the_table() -> None:
    application = serve(lambda req: req.document_root(), __file__="/srv/app/dispatch_table.py")
    assert ask(application).text == "/srv/app"
    assert ask(application, environ={"DOCUMENT_ROOT": "/srv/www"}).text == "/srv/www"


def test_log_error() -> None:
    def handler(req: http.Request) -> None:
        req.log_error("a notice")
        req.log_error("an error", http.LOG_ERR)
        req.log_error("not written", http.LOG_DEBUG)
        req.log_error("a\r\n[error] forged\x1b[31m")

    answer = ask(serve(handler))
    assert answer.log == (
        "[notice] a notice\n[error] an error\n[notice] a\\x0d\n  [error] forged\\x1b[31m\n"
    )


def test_the_table_sets_the_log_level() -> None:
    def handler(req: http.Request) -> None:
        req.log_error("written", http.LOG_DEBUG)

    assert ask(serve(handler, log_level=http.LOG_DEBUG)).log == "[debug] written\n"


# Forms


def test_args_are_the_fields_of_the_address() -> None:
    req, _ = received("/?a=1&b=%C5%BE+x&a=2&c=", "POST", b"d=1", FORM)
    assert req.args.keys() == ["a", "b", "c"]
    assert req.args.getfirst("a") == "1"
    assert req.args.getlist("a", int) == [1, 2]
    assert req.args.getvalue("b") == "ž x"


def test_a_form_has_the_fields_of_body_and_address() -> None:
    req, _ = received("/?a=3&q=x", "POST", b"a=1&b=%C5%BE&a=2&blank=", FORM)
    form = req.form
    assert form.getlist("a") == ["1", "2", "3"]
    assert form.getfirst("a", 0, int) == 1
    assert form.getfirst("none") is None
    assert form.getfirst("none", "5", int) == 5
    assert form.getvalue("a") == ["1", "2", "3"]
    assert form.getvalue("b") == "ž"
    assert form.getvalue("none", "default") == "default"
    assert "blank" not in form
    assert sorted(form) == ["a", "b", "q"]
    assert len(form) == 3
    field = form["b"]
    assert isinstance(field, http.Field)
    assert (field.value, field.filename, field.file) == ("ž", None, None)
    assert isinstance(form["a"], list)
    with pytest.raises(KeyError):
        form["none"]


def test_a_form_is_read_once_and_asked_as_often_as_wished() -> None:
    req, _ = received("/", "POST", b"a=1&blank=", FORM)
    assert http.FieldStorage(req).keys() == ["a"]
    assert http.FieldStorage(req, keep_blank_values=1).keys() == ["a", "blank"]


def test_a_body_that_is_no_form_stays_unread() -> None:
    req, _ = received("/?a=1", "POST", b"{}", {"Content-Type": "application/json"})
    assert req.form.keys() == ["a"]
    assert req.json == {}


def multipart(*parts: tuple[str, bytes], end: str = "--b--\r\n") -> tuple[bytes, dict[str, str]]:
    """A body of parts, each what stands behind `form-data; ` and its content."""
    body = b"".join(
        f"--b\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
        for head, content in parts
    )
    return body + end.encode(), {"Content-Type": "multipart/form-data; boundary=b"}


@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_file_is_uploaded(size: int) -> None:
    content = os.urandom(size)
    head = 'name="file"; filename="ž.bin"\r\nContent-Type: application/x-own; a=b'
    seen: list[Any] = []

    def handler(req: http.Request) -> None:
        field = req.form["file"]
        assert isinstance(field, http.Field)
        assert field.file is not None
        seen.extend([field.filename, field.type, field.size, field.file.read(), field.value])
        seen.append(req.form.getfirst("note"))

    body, headers = multipart(('name="note"', "poznámka".encode()), (head, content))
    answer = ask(serve(handler), "/", "POST", body, headers)
    assert answer.status == 200, answer.log
    assert seen == ["ž.bin", "application/x-own", size, content, content, "poznámka"]


def test_a_file_input_without_a_file_is_a_blank_value() -> None:
    """As browsers send it: with an empty name of the file."""
    head = 'name="file"; filename=""\r\nContent-Type: application/octet-stream'
    body, headers = multipart(('name="note"', b"1"), (head, b""))
    assert ask(serve(lambda req: req.form.keys()), "/", "POST", body, headers).text == "note"

    def all_of(req: http.Request) -> str:
        return repr(http.FieldStorage(req, keep_blank_values=True).keys())

    assert ask(serve(all_of), "/", "POST", body, headers).text == "['note', 'file']"


@pytest.mark.parametrize(
    ("head", "name", "filename"),
    [
        ('name="f"; filename="a.txt"', "f", "a.txt"),
        ("name=f; filename=a.txt", "f", "a.txt"),
        ("name=\"f\"; filename*=UTF-8''%C5%BE%20.txt", "f", "ž .txt"),
        ("name=\"f\"; FileName*=utf-8'cs'%C5%BE.txt", "f", "ž.txt"),
        ("name=\"f\"; filename*=iso-8859-1''%E9.txt", "f", "é.txt"),
        ("name=\"f\"; filename*=klingon''%C5%BE", "f", "ž"),
        ('name="f"; filename*="UTF-8\'\'a%22b"', "f", 'a"b'),
        ('name="f"; filename="z.txt"; filename*=UTF-8\'\'%C5%BE.txt', "f", "ž.txt"),
        ('filename*=UTF-8\'\'%C5%BE.txt; filename="z.txt"; name="f"', "f", "ž.txt"),
        ('name="f"; filename*=plain.txt', "f", "plain.txt"),
        ('name="f"; filename*0*=UTF-8\'\'%C5; filename*1*=%BE; filename*2=".%41"', "f", "ž.%41"),
        ("name*=UTF-8''%C5%BE; filename*=UTF-8''a", "ž", "a"),
        ("name=\"f; filename*=UTF-8''a\"", "f; filename*=UTF-8''a", None),
        ('name="f*"; filename="a*"', "f*", "a*"),
        ('name="a%22b%0D%0Ac"; filename="%22%0D%0A%41.txt"', 'a"b\r\nc', '"\r\n%41.txt'),
        (r'name="f"; filename="a\"b\\c"', "f", 'a"b\\c'),
        ('name="f"', "f", None),
    ],
)
@pytest.mark.parametrize("content", [b"", b"x"])
def test_names_of_a_part(head: str, name: str, filename: str | None, content: bytes) -> None:
    """A part with `filename` or `filename*` is a file, also an empty one."""
    body, headers = multipart((head, content))

    def handler(req: http.Request) -> str:
        return repr([(field.name, field.filename, field.value) for field in req.form.list])

    text = content.decode()
    found = [(name, filename, text if filename is None else content)]
    expected = [] if filename is None and not content else found
    assert ask(serve(handler), "/", "POST", body, headers).text == repr(expected)


@pytest.mark.parametrize(
    ("limit", "value", "body", "headers"),
    [
        ("max_fields", 2, b"a=1&b=2&c=3", FORM),
        ("max_memory", 10, b"a=12345678901", FORM),
        ("max_fields", 2, *multipart(('name="a"', b"1"), ('name="b"', b"1"), ('name="c"', b"1"))),
        ("max_memory", 10, *multipart(('name="a"', b"12345"), ('name="b"', b"123456"))),
        ("max_files", 1, *multipart(*[(f'name="a"; filename="{n}"', b"1") for n in "ab"])),
        ("max_files", 1, *multipart(*[(f"name=a; filename*=''{n}", b"") for n in "ab"])),
        ("max_upload", 70_000, *multipart(('name="a"; filename="a"', b"1" * 80_000))),
        # Its length is not known.
        ("max_memory", 10, b"a=12345678901", {**FORM, "Content-Length": ""}),
    ],
)
def test_a_form_beyond_a_limit_is_too_large(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: int, body: bytes, headers: dict[str, str]
) -> None:
    monkeypatch.setattr(http.FieldStorage, limit, value)
    environ = {"wsgi.input_terminated": True} if "Content-Length" in headers else {}
    form = serve(lambda req: req.form.keys())
    answer = ask(form, "/", "POST", body, headers, environ=environ, validate=not environ)
    assert (answer.status, answer.reason) == (413, "Content Too Large")
    assert str(value) in answer.text
    assert answer.log == ""


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "text"),
    [
        ("/", *multipart(('name="a"', b"1"), end=""), 400, "The form cannot be read"),
        ("/", b"no boundary here", multipart()[1], 400, "The form cannot be read"),
        (
            "/",
            b"--b--\r\n",
            {"Content-Type": "multipart/form-data"},
            400,
            "The form cannot be read",
        ),
        ("/?page=<x>", b"", {}, 400, "The field &#39;page&#39; cannot have this value."),
        ("/?" + "a=1&" * 1001, b"", {}, 414, "<h1>414 URI Too Long</h1>"),
    ],
)
def test_a_form_that_is_wrong(
    path: str, body: bytes, headers: dict[str, str], status: int, text: str
) -> None:
    application = serve(lambda req: f"{req.args.keys()} {req.form.getfirst('page', '1', int)}")
    answer = ask(application, path, "POST", body, headers)
    assert answer.status == status
    assert text in answer.text
    assert answer.log == ""


def test_a_form_with_files_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "multipart", None)
    body, headers = multipart(('name="a"', b"1"))
    answer = ask(serve(lambda req: req.form.keys()), "/", "POST", body, headers)
    assert answer.status == 500
    assert answer.log.endswith(
        "forms with files need multipart, which is not installed: pip install '.[forms]' in the "
        "folder of the server's source\n"
    )
    assert ask(serve(lambda req: req.form.keys()), "/", "POST", b"a=1", FORM).text == "a"


def test_what_is_not_used_is_not_imported() -> None:
    """Memory is what the first Poor HTTP was chosen for."""
    code = (
        "import sys; from poorhttp import dispatch as http; "
        "http.Application({'/': (2, print)})({'REQUEST_METHOD': 'HEAD'}, print); "
        "print([name for name in ('multipart', 'urllib.parse', 'email', 'inspect', 'logging', "
        "'typing', 'traceback', 'html', 'json') if name in sys.modules])"
    )
    path = os.pathsep.join(path for path in sys.path if path)
    done = run(sys.executable, "-S", "-c", code, env={"PYTHONPATH": path})
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_failed_request_is_freed_at_once() -> None:
    """Without a cycle: an upload's files, and the server's own things, do not wait in memory."""
    freed: list[bool] = []

    class Witness:
        def __del__(self) -> None:
            freed.append(True)

    def handler(req: http.Request) -> None:
        req.witness = Witness()
        fail(req)

    gc.disable()
    try:
        ask(serve(handler))
    finally:
        gc.enable()
    assert freed == [True]
