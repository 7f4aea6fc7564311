"""`poorhttp dev` with ASGI applications: pages while they cannot be loaded or started."""

from __future__ import annotations

from tests.support.development import IMPATIENT, ProjectFolder, wait_text
from tests.testkit.server import Server, wait_for

#: A line when it is imported, and one of the startup of its lifespan.
APP = """\
import asyncio, os, traceback
{}

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        for _ in range(2):
            kind = (await receive())["type"]
            {}
            await send({{"type": f"{{kind}}.complete"}})
        return
    await send({{"type": "http.response.start", "status": 200, "headers": []}})
    await send({{"type": "http.response.body", "body": b"served"}})
"""
FAILED = 'await send({"type": "lifespan.startup.failed", "message": %s});'

#: What is in a version, and what its page says, as the terminal does.
BROKEN = {
    "syntax": ("a = = 1", "pass", ("SyntaxError", "app.py", "line 2")),
    "import": ("1 / 0", "pass", ("ZeroDivisionError", "app.py", "line 2, in <module>")),
    "startup": ("", "1 / 0", ("ZeroDivisionError", "line 8, in application")),
    "message": ("", FAILED % '"no database"' + " return", ("startup failed: no database",)),
    # As Starlette does.
    "sent": (
        "",
        f"""try: 1 / 0
            except Exception:
                {FAILED % "traceback.format_exc()"} raise""",
        ("ZeroDivisionError", "line 8, in application"),
    ),
}


def save(project: ProjectFolder, imported: str = "", started: str = "pass") -> None:
    project.save("app.py", APP.format(imported, started))


def test_a_version_that_fails_is_answered_with_a_page(project: ProjectFolder) -> None:
    """Its lines are there once, although it is started again when the version before has ended."""
    save(project)
    with project.develop("asyncio", tracebacks=True) as server:
        wait_text(server, "served")
        for imported, started, shown in BROKEN.values():
            before = len(server.log())
            save(project, imported, started)
            page = wait_text(server, shown[0])
            assert server.get("/").status == 500
            for text in shown:
                assert text in page
            assert server.log()[before:].count(shown[0]) == 1
            save(project)
            wait_text(server, "served")
        save(project, "os._exit(7)")
        wait_text(server, "ended with 7 while it was loaded")
        save(project)
        wait_text(server, "served")


def test_a_startup_that_takes_long_says_where_it_is(project: ProjectFolder) -> None:
    save(project)
    with project.develop("asyncio", launcher=IMPATIENT) as server:
        wait_text(server, "served")
        for times, body in enumerate(("await asyncio.sleep(0.01)", "os.stat('.')"), 1):
            # Not one file for both: a version runs this at its end, too.
            started = f"while not os.path.exists('go-{times}'): {body}"

            def has_place(server: Server = server, started: str = started) -> bool:
                save(project, "", started)
                return "app.py, line 8, in application" in wait_text(server, "has been loading")

            # On a busy machine it may not have come so far by then.
            wait_for(has_place, "the place where it waits")
            assert server.get("/").status == 503
            server.wait_log("has been loading for 2 s: app.py, line 8", times)
            (project.folder / f"go-{times}").touch()
            wait_text(server, "served")


#: Logs an exception, and answers with status and content type of the path.
LOGS = """\
import logging

async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        raise RuntimeError
    try:
        1 / 0
    except ZeroDivisionError:
        logging.exception("sorry")
    _, status, *kind = scope["path"].split("/")
    headers = [(b"content-type", "/".join(kind).encode())]
    await send({"type": "http.response.start", "status": int(status), "headers": headers})
    await send({"type": "http.response.body", "body": b"sorry"})
"""


def test_a_logged_exception_behind_a_server_error_has_a_page(project: ProjectFolder) -> None:
    project.save("app.py", LOGS)
    with project.develop("asyncio", "--autoreload", "off", tracebacks=True) as server:
        paged = [
            server.get("/503/text/html", "Accept: text/html"),
            server.get("/503/text/plain"),
            server.get("/503/application/json", "Accept: text/html"),
        ]
        for response in paged:
            assert response.status == 503
            assert b"ZeroDivisionError" in response.body
        own = [server.get("/503/application/json"), server.get("/200/text/plain")]
        assert [(each.status, each.body) for each in own] == [(503, b"sorry"), (200, b"sorry")]
        assert server.log().count("ZeroDivisionError") == len([*paged, *own])
