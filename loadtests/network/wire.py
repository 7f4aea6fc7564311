"""A network cable with delay, loss and rate: `python wire.py ONE OTHER SECONDS SHARE RATE`.

It carries frames between two interfaces of its network namespace, each after so many seconds, but
for a random share of them, and no more than so many bits a second each way (0: any number), until
its standard input ends. `tc netem` does the same; kernels may be built without it.
"""

from __future__ import annotations

import heapq
import random
import select
import socket
import sys
import time
from contextlib import suppress
from itertools import count

# From linux/if_packet.h and linux/if_ether.h.
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 15, 23
ETH_P_ALL = 3
LARGEST = 1 << 17
"""More than the largest frame: before it is cut up for a real network, one may have 64 KiB."""


def plug(interface: str) -> socket.socket:
    """All frames that come in at an interface, and a way to send others from it."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK)
    # With the note of the kernel that somebody else has yet to write the checksum, or to cut it up.
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    end.bind((interface, ETH_P_ALL))
    return end


def carry(one: socket.socket, other: socket.socket, delay: float, loss: float, rate: float) -> None:
    """Carries frames between them until whoever has started us lets go, or has ended."""
    across = {one: other, other: one}
    free = dict.fromkeys(across, 0.0)
    number = count()
    under_way: list[tuple[float, int, socket.socket, bytes]] = []
    while True:
        wait = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready, _, _ = select.select([one, other, sys.stdin], [], [], wait)
        if sys.stdin in ready:
            return
        now = time.monotonic()
        for end in across.keys() & ready:
            try:
                while True:
                    frame = end.recv(LARGEST)
                    if random.random() < loss:
                        continue
                    if rate:
                        # It begins when those before it have passed.
                        free[end] = max(now, free[end]) + len(frame) * 8 / rate
                    due = max(now, free[end]) + delay
                    # The number keeps those of the same moment in order.
                    heapq.heappush(under_way, (due, next(number), across[end], frame))
            except OSError:
                # There are no more; or that end is down for now.
                pass
        while under_way and under_way[0][0] <= now:
            _, _, end, frame = heapq.heappop(under_way)
            # That end is down, or has no room: then the frame is lost, as on any cable.
            with suppress(OSError):
                end.send(frame)


if __name__ == "__main__":
    ends = plug(sys.argv[1]), plug(sys.argv[2])
    print("plugged in", flush=True)
    carry(*ends, *map(float, sys.argv[3:6]))
