"""Frameworks of ASGI, beside uvicorn: requests, streams, WebSockets, and their own clients."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

from tests.programs.running.application import Application, Steps
from tests.programs.running.visit import ending
from tests.support.browser import Browser, chromium
from tests.testkit.server import Program, wait_for

#: What stands before each of them.
COMMON = """
import asyncio

async def pieces():
    for number in range(5):
        yield f"data: {number}\\n\\n".encode()
        await asyncio.sleep(0.01)

async def length(stream):
    return sum([len(piece) async for piece in stream])
"""

#: Applications that answer the same requests.
SAME = {
    "starlette": """
from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route, WebSocketRoute

async def home(request):
    return JSONResponse([request.client.host, str(request.url)])

async def upload(request):
    return JSONResponse(await length(request.stream()))

async def form(request):
    async with request.form() as form:
        return JSONResponse([form["name"], len(await form["file"].read())])

async def events(request):
    return StreamingResponse(pieces(), media_type="text/event-stream")

async def fail(request):
    raise ValueError("meant")

async def ws(socket):
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)

gets = [Route("/", home), Route("/events", events), Route("/fail", fail)]
posts = [Route("/upload", upload, methods=["POST"]), Route("/form", form, methods=["POST"])]
application = Starlette(routes=[*gets, *posts, WebSocketRoute("/ws", ws)])
""",
    "fastapi": """
from fastapi import FastAPI, Form, Request, UploadFile, WebSocket
from fastapi.responses import StreamingResponse
application = FastAPI()

@application.get("/")
def home(request: Request):
    return [request.client.host, str(request.url)]

@application.post("/upload")
async def upload(request: Request):
    return await length(request.stream())

@application.post("/form")
async def form(file: UploadFile, name: str = Form()):
    return [name, len(await file.read())]

@application.get("/events")
async def events():
    return StreamingResponse(pieces(), media_type="text/event-stream")

@application.get("/fail")
async def fail():
    raise ValueError("meant")

@application.websocket("/ws")
async def ws(socket: WebSocket):
    await socket.accept()
    async for text in socket.iter_text():
        await socket.send_text(text)
""",
    "channels": """
import django
from django.conf import settings
settings.configure(SECRET_KEY="x", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, MIDDLEWARE=[],
                   DATA_UPLOAD_MAX_MEMORY_SIZE=None)
django.setup()
from channels.generic.websocket import WebsocketConsumer
from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application
from django.http import JsonResponse, StreamingHttpResponse
from django.urls import path

def home(request):
    return JsonResponse([request.META["REMOTE_ADDR"], request.build_absolute_uri()], safe=False)

async def upload(request):
    return JsonResponse(len(request.body), safe=False)

def form(request):
    return JsonResponse([request.POST["name"], request.FILES["file"].size], safe=False)

async def events(request):
    return StreamingHttpResponse(pieces(), content_type="text/event-stream")

async def fail(request):
    raise ValueError("meant")

class Echo(WebsocketConsumer):
    def receive(self, text_data=None, bytes_data=None):
        self.send(text_data=text_data)

views = {"": home, "upload": upload, "form": form, "events": events, "fail": fail}
urlpatterns = [path(*pair) for pair in views.items()]
application = ProtocolTypeRouter({"http": get_asgi_application(), "websocket": Echo.as_asgi()})
""",
    "quart": """
from quart import Quart, request, websocket
application = Quart(__name__)

@application.get("/")
async def home():
    return [request.remote_addr, request.url]

@application.post("/upload")
async def upload():
    return str(await length(request.body))

@application.post("/form")
async def form():
    return [(await request.form)["name"], len((await request.files)["file"].read())]

@application.get("/events")
async def events():
    return pieces(), {"Content-Type": "text/event-stream"}

@application.get("/fail")
async def fail():
    raise ValueError("meant")

@application.websocket("/ws")
async def ws():
    while True:
        await websocket.send(await websocket.receive())
""",
    "litestar": """
from litestar import Litestar, Request, get, post, websocket_listener
from litestar.response import Stream

@get("/", sync_to_thread=True)
def home(request: Request) -> list[str]:
    return [request.client.host, str(request.url)]

@post("/upload")
async def upload(request: Request) -> int:
    return await length(request.stream())

@post("/form")
async def form(request: Request) -> list:
    found = await request.form()
    return [found["name"], len(await found["file"].read())]

@get("/events")
async def events() -> Stream:
    return Stream(pieces(), media_type="text/event-stream")

@get("/fail")
async def fail() -> None:
    raise ValueError("meant")

@websocket_listener("/ws")
async def ws(data: str) -> str:
    return data

application = Litestar([home, upload, form, events, fail, ws])
""",
    "sanic": """
from sanic import Sanic, response
application = Sanic("served")

@application.get("/")
async def home(request):
    return response.json([request.ip, request.url])

@application.post("/upload", stream=True)
async def upload(request):
    return response.json(await length(request.stream))

@application.post("/form")
async def form(request):
    return response.json([request.form.get("name"), len(request.files.get("file").body)])

@application.get("/events")
async def events(request):
    answer = await request.respond(content_type="text/event-stream")
    async for piece in pieces():
        await answer.send(piece)
    await answer.eof()

@application.get("/fail")
async def fail(request):
    raise ValueError("meant")

@application.websocket("/ws")
async def ws(request, socket):
    while (text := await socket.recv()) is not None:
        await socket.send(text)
""",
    "blacksheep": """
from blacksheep import Application, Request, Response, StreamedContent, WebSocket, get, json, post
from blacksheep import WebSocketDisconnectError, ws
application = Application()

@get("/")
async def home(request: Request):
    return json([request.original_client_ip, str(request.url)])

@post("/upload")
async def upload(request: Request):
    return json(await length(request.stream()))

@post("/form")
async def form(request: Request):
    found = await request.form()
    return json([found["name"], len((await request.files())[0].data)])

@get("/events")
async def events():
    return Response(200, content=StreamedContent(b"text/event-stream", pieces))

@get("/fail")
async def fail():
    raise ValueError("meant")

@ws("/ws")
async def echo(socket: WebSocket):
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnectError:
        pass
""",
}

#: Applications with clients of their own.
OTHERS = {
    "sse": """
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.routing import Route

async def ticks():
    number = 0
    while True:
        yield {"event": "tick", "data": str(number)}
        number += 1
        await asyncio.sleep(0.01)

async def events(request):
    return EventSourceResponse(ticks())

application = Starlette(routes=[Route("/", events)])
""",
    "mcp": """
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
server = MCPServer("shop")

@server.tool()
async def add(a: int, b: int, ctx: Context) -> int:
    for number in range(3):
        await ctx.report_progress(number, 3)
    return a + b

@server.resource("greeting://{name}")
def greeting(name: str) -> str:
    return f"Hello, {name}!"

application = server.streamable_http_app()
""",
    "strawberry": """
import typing
import strawberry
from strawberry.asgi import GraphQL

@strawberry.type
class Query:
    @strawberry.field
    async def hello(self, name: str) -> str:
        return f"hello {name}"

@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int) -> typing.AsyncGenerator[int, None]:
        for number in range(to):
            yield number

application = GraphQL(strawberry.Schema(Query, subscription=Subscription))
""",
    "socketio": """
import socketio
server = socketio.AsyncServer(async_mode="asgi")

@server.event
async def message(sid, data):
    await server.emit("answer", data, to=sid)
    return len(data)

application = socketio.ASGIApp(server)
""",
    "dash": """
from dash import Dash, Input, Output, dcc, html
page = Dash(__name__, backend="fastapi", websocket_callbacks=True)
page.layout = html.Div([dcc.Input(id="name"), html.P(id="greeting")])

@page.callback(Output("greeting", "children"), Input("name", "value"))
def greet(name):
    return f"Hello, {name}!"

application = page.server
""",
    "gradio": """
import gradio
from fastapi import FastAPI

def greet(name):
    for number in range(3):
        yield f"{name} {number}"

with gradio.Blocks() as page:
    name, text = gradio.Textbox(), gradio.Textbox()
    gradio.Button("go").click(greet, name, text, api_name="greet")
application = gradio.mount_gradio_app(FastAPI(), page, path="/")
""",
}


class Asgi(Application):
    requirements = (
        *("uvicorn==0.54.0", "httptools==0.9.0", "uvloop==0.23.0", "websockets==17.4"),
        *("starlette==1.10.0", "fastapi==0.165.0", "python-multipart==0.0.34"),
        *("django==5.2.19", "channels==4.3.2", "quart==0.22.0", "litestar==2.25.0"),
        *("sanic==25.12.1", "blacksheep==2.6.4", "sse-starlette==3.7.0", "mcp==2.3.0"),
        *("strawberry-graphql==0.341.2", "python-socketio==5.18.1", "gradio==6.31.0"),
        *("dash==4.4.1", "selenium==4.51.0"),
        *("httpx==0.28.1", "httpx-sse==0.4.3", "requests==2.34.2", "websocket-client==1.9.2"),
    )
    needs = ("chromium", "chromedriver")
    target = ""
    reference = "uvicorn"
    modes = ("asyncio",)

    def prepare(self) -> None:
        for name, text in {**SAME, **OTHERS}.items():
            Path(f"served_{name}.py").write_text(COMMON + text)

    def command(self) -> list[str]:
        if self.server == "uvicorn":
            port = self.url.rpartition(":")[2]
            return ["python", "-m", "uvicorn", self.target, "--port", port]
        # The compression of Gradio loses the messages of files.
        options = ["--no-asgi-pathsend"] if "gradio" in self.target else []
        return [*super().command(), *options]

    def drive(self) -> Steps:
        steps: dict[str, Callable[[], Steps]] = dict.fromkeys(SAME, self.same)
        steps |= {name: getattr(self, name) for name in OTHERS}
        for name, found in steps.items():
            self.target = f"served_{name}:application"
            with Program(*self.command(), cwd=Path.cwd(), merged=True) as server:
                wait_for(partial(self.accepts, server), "accept")
                for step, seen in found():
                    yield f"{name}: {step}", seen
                fault = ending(server)
                # uvicorn ends by the signal.
                assert not fault or self.server == "uvicorn", f"{name}: {fault}\n{server.log()}"

    def accepts(self, server: Program) -> bool:
        assert server.process.poll() is None, server.log()
        host, port = self.url.removeprefix("http://").split(":")
        with suppress(OSError), socket.create_connection((host, int(port))):
            return True
        return False

    def same(self) -> Steps:
        import httpx
        from websockets.sync.client import connect

        # uvicorn closes the connection behind an exception.
        each = httpx.Limits(max_keepalive_connections=0)
        with httpx.Client(base_url=self.url, timeout=60, limits=each) as client:
            for path in ("/?a=b%20c", "/events", "/fail", "/nowhere"):
                answer = client.get(path)
                seen = [answer.status_code, answer.headers.get("content-type")]
                yield path, [*seen, answer.text if answer.status_code < 500 else ""]
            pieces = iter([b"x" * 10_000] * 300)
            yield "upload", client.post("/upload", content=pieces).text
            file = {"file": ("a.txt", b"y" * 1_000_000)}
            yield "form", client.post("/form", data={"name": "Ä"}, files=file).json()
            yield "method", client.post("/").status_code
        with connect(self.url.replace("http", "ws", 1) + "/ws") as websocket:
            for text in ("ä", "z" * 100_000):
                websocket.send(text)
                yield f"{len(text)} letters by WebSocket", websocket.recv() == text

    def sse(self) -> Steps:
        import httpx
        from httpx_sse import connect_sse

        with httpx.Client(timeout=60) as client, connect_sse(client, "GET", self.url) as source:
            events = source.iter_sse()
            yield "events", [[event.event, event.data] for event in islice(events, 5)]

    def mcp(self) -> Steps:
        # With a session, as before the protocol of 2026, and without.
        for mode in ("legacy", "auto"):
            yield mode, asyncio.run(self.tools(mode))

    async def tools(self, mode: str) -> list[object]:
        from mcp.client import Client

        progress = []

        async def note(number: float, *_: object) -> None:
            progress.append(number)

        async with Client(f"{self.url}/mcp", mode=mode) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            added = await client.call_tool("add", {"a": 2, "b": 3}, progress_callback=note)
            read = await client.read_resource("greeting://Ann")
            version = client.protocol_version
        return [version, names, added.content[0].text, read.contents[0].text, progress]

    def strawberry(self) -> Steps:
        import json

        import httpx
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol

        query = {"query": '{ hello(name: "Ann") }'}
        yield "query", httpx.post(self.url, json=query, timeout=60).json()
        url = self.url.replace("http", "ws", 1)
        with connect(url, subprotocols=[Subprotocol("graphql-transport-ws")]) as websocket:
            websocket.send('{"type": "connection_init"}')
            seen = [json.loads(websocket.recv())]
            query = {"query": "subscription { count(to: 3) }"}
            websocket.send(json.dumps({"type": "subscribe", "id": "1", "payload": query}))
            while seen[-1]["type"] != "complete":
                seen.append(json.loads(websocket.recv()))
        yield "subscription", seen

    def socketio(self) -> Steps:
        import socketio

        for transport in ("polling", "websocket"):
            with socketio.SimpleClient() as client:
                client.connect(self.url, transports=[transport])
                yield f"{transport}: result", client.call("message", "ä" * 50_000, timeout=60)
                yield f"{transport}: event", client.receive(timeout=60) == ["answer", "ä" * 50_000]

    def dash(self) -> Steps:
        with chromium() as driver:
            page = Browser(driver)
            page.open(self.url)
            page.wait_text("Hello, None!")
            page.find("#name").send_keys("Ann")
            page.wait_text("Hello, Ann!")
            yield "page", page.text()
            # Callbacks come by WebSocket.
            names = "performance.getEntriesByType('resource').map(each => each.name).join()"
            yield "posts", "_dash-update-component" in str(page.run(names))

    def gradio(self) -> Steps:
        import httpx
        from gradio_client import Client

        with chromium() as driver:
            page = Browser(driver)
            page.open(self.url)
            page.wait_for("document.querySelector('textarea') && document.querySelector('button')")
            page.find("textarea").send_keys("Ann")
            page.run(
                "[...document.querySelectorAll('button')].find(e => e.innerText == 'go').click()"
            )
            page.wait_for("document.querySelectorAll('textarea')[1].value == 'Ann 2'")
            yield "in a browser", True
        yield "page", httpx.get(self.url, timeout=60).status_code
        job = Client(self.url, verbose=False).submit("Ann", api_name="/greet")
        yield "results", [job.result(), job.outputs()]
