"""Measures the constants of the model of many workers (`cores`): CPU time, wake-ups, memory.

`python -m loadtests.studies.balance.constants 1 2 8 64 256`. Times are CPU times, the least of
three: other programs on the machine make them larger, but not by much.
"""

from __future__ import annotations

import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import psutil

from loadtests.measure.resources import cpu_seconds, session_processes, smaps_rollup
from loadtests.measure.waiting import HANG, wait_until
from loadtests.servers.poorhttp_server import PoorhttpServer

APPLICATION = "loadtests/apps/burn.py"
MANY = 1_000
KEPT = b"GET /?1 HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSED = b"GET /?1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
SECONDS = 8.0


def wakeups(processes: Iterable[int]) -> int:
    """How often their first threads have waited."""
    return sum(psutil.Process(one).num_ctx_switches().voluntary for one in processes)


def measured(workers: int) -> dict[str, float]:
    """All constants for so many workers."""
    mode = "forking" if workers > 1 else "single"
    with PoorhttpServer(APPLICATION, "--mode", mode, "--workers", str(workers)) as server:
        main, port = server.process.pid, server.port
        found = {"main process, start, ms of CPU": cpu_seconds([main]) * 1e3}
        each = [one for one in session_processes(main) if one != main]

        def spent() -> float:
            return cpu_seconds(each) * 1e6

        # The first request of a worker costs more.
        _connections(port)
        for what, read, run in (
            ("wake-ups for a connection", partial(wakeups, each), _connections),
            ("a connection, µs", spent, _connections),
            ("a request on a kept connection, µs", spent, _kept),
        ):
            found[what] = _of(read, partial(run, port))
        pss = sum(smaps_rollup(one)["Pss"] for one in each)
        found["a worker, MiB (PSS)"] = pss / workers / 2**20
        found["main process, MiB (anonymous)"] = smaps_rollup(main)["Anonymous"] / 2**20
        found |= _busy(main, port, workers)
        begun = cpu_seconds([main])
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "reloaded: " in server.log(), HANG)
        found["main process, reload, ms of CPU"] = (cpu_seconds([main]) - begun) * 1e3
    return found


def _of(read: Callable[[], float], run: Callable[[], None]) -> float:
    """How much this grows for each of the MANY, the least of three."""
    grown = []
    for _ in range(3):
        before = read()
        run()
        grown.append((read() - before) / MANY)
    return min(grown)


def _connections(port: int) -> None:
    for _ in range(MANY):
        with socket.create_connection(("127.0.0.1", port), HANG) as client:
            client.sendall(CLOSED)
            while client.recv(4096):
                pass


def _kept(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), HANG) as client:
        for _ in range(MANY):
            client.sendall(KEPT)
            client.recv(4096)


def _busy(main: int, port: int, workers: int) -> dict[str, float]:
    """The main process while every worker has requests, which began at different moments."""
    selector, over, before, wakes = selectors.DefaultSelector(), 0.0, 0.0, 0
    clients = []
    for _ in range(workers):
        clients.append(socket.create_connection(("127.0.0.1", port), HANG))
        clients[-1].sendall(KEPT)
        selector.register(clients[-1], selectors.EVENT_READ)
        time.sleep(1 / workers)
    warm = time.monotonic() + 2
    while not over or time.monotonic() < over:
        if not over and time.monotonic() > warm:
            over = time.monotonic() + SECONDS
            before, wakes = cpu_seconds([main]), wakeups([main])
        for key, _ in selector.select(0.1):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            client.recv(4096)
            client.sendall(KEPT)
    spent, woken = cpu_seconds([main]) - before, wakeups([main]) - wakes
    for client in clients:
        client.close()
    return {
        "main process, all workers busy, ms of CPU a second": spent / SECONDS * 1e3,
        "main process, all workers busy, wake-ups a second": woken / SECONDS,
    }


if __name__ == "__main__":
    for count in map(int, sys.argv[1:]):
        print(f"{count} workers, of {Path('/proc/loadavg').read_text().split()[0]} load:")
        for name, value in measured(count).items():
            print(f"  {name}: {value:,.2f}", flush=True)
