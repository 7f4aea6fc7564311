"""Program: a main process controlled by commands, which forks workers over a socket.

It takes lines from its standard input: `start` forks a worker, `say PID BYTES` says something to
it, `leave PID` closes the channel to it, `kill PID NUMBER` sends it a signal. It prints `URL
listens`, and then what happens: `PID started`, `PID said OCTETS`, `PID ended CODE`. Its arguments
are a mode and options, `OPTION=VALUE`.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Iterable

from poorhttp import logs
from poorhttp._core import fork_for_server
from poorhttp.config.settings import Settings
from poorhttp.net import sockets
from poorhttp.plugins.dev.live_reload import LiveReload, script
from poorhttp.plugins.dev.options import PREFIX
from poorhttp.process.worker_context import WorkerContext
from poorhttp.supervisor.scoreboard import Scoreboard
from poorhttp.targets.routes import Routes
from poorhttp.worker import mode
from poorhttp.worker.stop_signals import StopSignals
from poorhttp.worker.worker import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

#: Places for workers that live at the same time.
PLACES = 64


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer with process, path and body; a path that names a file is waited for.

    Below /begun the answer is begun before that, and its rest comes afterwards.
    """
    path = environ["PATH_INFO"]
    text = b"%d %s %s" % (os.getpid(), path.encode(), environ["wsgi.input"].read())
    begun = path.startswith("/begun/")
    gate = path.removeprefix("/begun")
    length = len(text) + (1 if begun else 0)
    write = start_response("200 OK", [("Content-Length", str(length))])
    if begun:
        write(text)
    if gate.startswith("/tmp/"):
        environ["wsgi.errors"].write(f"entered {gate}\n")
        while not os.path.exists(gate):
            time.sleep(0.002)
    return [b"!" if begun else text]


def main(mode_name: str, *options: str) -> None:
    """Be the main process until standard input ends; then wait for the workers."""
    given = dict(option.split("=", 1) for option in options)
    recycle_after = int(given.pop("recycle_after", "0"))
    settings = Settings(mode=mode_name, **{"bind": "127.0.0.1:0", **given})
    (listener,) = sockets.open_listeners(settings)
    scoreboard = Scoreboard(PLACES)
    run_mode = mode.load(settings)
    live = settings.is_enabled("live")
    app: WSGIApplication = LiveReload(application, "1") if live else application
    routes = Routes(settings, app).table([PREFIX] if live else [])
    channels: dict[int, socket.socket] = {}
    places: dict[int, int] = {}
    print(listener.url, "listens", flush=True)

    def start() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        place = scoreboard.take()
        status = scoreboard.open(place)
        pid = fork_for_server()
        if pid == 0:
            ours.close()
            for channel in channels.values():
                channel.close()
            mode.prepare(run_mode, settings)
            logs.error_log.open(settings)
            context = WorkerContext(
                place, place, theirs.fileno(), scoreboard.memory, status, recycle_after
            )

            def ready() -> None:
                theirs.send(b"+")
                theirs.close()

            with StopSignals(settings, supervised=True) as signals:
                worker = Worker(
                    app,
                    settings,
                    [listener],
                    context,
                    routes=routes,
                    appended=script("1") if live else None,
                    ready=ready,
                    signals=signals,
                )
                run_mode.run(worker)
            os._exit(0)
        theirs.close()
        channels[pid] = ours
        places[pid] = place
        print(pid, "started", flush=True)

    commands = ""
    while True:
        sources: list[int | socket.socket] = [0, *channels.values()]
        readable, _, _ = select.select(sources, [], [], 0.01 if places else None)
        for pid, channel in list(channels.items()):
            if channel in readable:
                try:
                    said = channel.recv(64)
                except ConnectionResetError:
                    said = b""
                if said:
                    print(pid, "said", said.decode(), flush=True)
                else:
                    channels.pop(pid).close()
        for pid in list(places):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                scoreboard.free(places.pop(pid))
                print(pid, "ended", os.waitstatus_to_exitcode(status), flush=True)
        if 0 in readable:
            more = os.read(0, 4096).decode()
            if not more:
                return
            *lines, commands = (commands + more).split("\n")
            for line in lines:
                match line.split():
                    case ["start"]:
                        start()
                    case ["say", to, octets]:
                        channels[int(to)].send(octets.encode())
                    case ["leave", to]:
                        channels.pop(int(to)).close()
                    case ["kill", to, number]:
                        os.kill(int(to), int(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
