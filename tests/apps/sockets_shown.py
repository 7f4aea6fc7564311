"""Pages that talk over WebSockets: by flask-sock, and by Flask-SocketIO, from polling on.

There is no client of Socket.IO for browsers among the packages; what the page says is its protocol
(Engine.IO 4, Socket.IO 5).
"""

from __future__ import annotations

from typing import Any

from flask import Flask
from flask_sock import Sock
from flask_socketio import SocketIO

application = Flask(__name__)
sock = Sock(application)
socketio = SocketIO(application, async_mode="threading")

PAGE = """\
<!doctype html><meta charset=utf-8><title>Sockets</title><ol id=said></ol>
<script>
const say = text => document.getElementById("said").append(
  Object.assign(document.createElement("li"), {textContent: text}));
const at = path => `${location.protocol.replace("http", "ws")}//${location.host}${path}`;
SCRIPT
</script>
"""
BY_SOCK = """
const socket = new WebSocket(at("/echo"));
socket.onopen = () => socket.send("Grüße from the page");
socket.onmessage = event => say(`echoed: ${event.data}`);
socket.onclose = event => say(`closed with ${event.code}, clean: ${event.wasClean}`);
"""
BY_SOCKETIO = """
const path = "/socket.io/?EIO=4";
async function poll(sid) {
  const answer = await fetch(`${path}&transport=polling&sid=${sid}`);
  return (await answer.text()).split("\\x1e");
}
(async () => {
  const opened = await (await fetch(`${path}&transport=polling`)).text();
  const sid = JSON.parse(opened.slice(1)).sid;
  await fetch(`${path}&transport=polling&sid=${sid}`, {method: "POST", body: "40"});
  say(`connected by polling: ${(await poll(sid)).some(packet => packet.startsWith("40"))}`);
  let polled = poll(sid);
  const socket = new WebSocket(at(`${path}&transport=websocket&sid=${sid}`));
  socket.onopen = () => socket.send("2probe");
  socket.onmessage = async event => {
    if (event.data == "3probe") {
      // What still comes by polling comes before that.
      await polled;
      socket.send("5");
      say("upgraded to a WebSocket");
      socket.send(`42["spoken","Grüße from the page"]`);
    } else if (event.data == "2") {
      socket.send("3");
    } else {
      say(`said: ${JSON.parse(event.data.slice(2))[1]}`);
    }
  };
})();
"""


@application.get("/sock")
def page_by_sock() -> str:
    """The page of the first."""
    return PAGE.replace("SCRIPT", BY_SOCK)


@application.get("/socketio")
def page_by_socketio() -> str:
    """The page of the second."""
    return PAGE.replace("SCRIPT", BY_SOCKETIO)


@sock.route("/echo")  # type: ignore[untyped-decorator]
def echo(websocket: Any) -> None:
    """One message and its echo; then the connection is closed."""
    websocket.send(websocket.receive())


@socketio.on("spoken")  # type: ignore[untyped-decorator]
def spoken(text: str) -> None:
    """An event with an answer."""
    socketio.emit("answered", f"{text}, answered")
