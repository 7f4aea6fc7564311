"""Made-up status documents (`supervisor/admin/model.py`), for tests of what renders them."""

from __future__ import annotations

import bisect
import copy
import functools
import random
from typing import TYPE_CHECKING

from poorhttp.plugins.monitor.admin.model import BOUNDS, no_figures

if TYPE_CHECKING:
    from poorhttp.plugins.monitor.admin.model import (
        Figures,
        Finished,
        Histogram,
        InFlight,
        Refusal,
        Service,
        Slot,
        Status,
        Worker,
    )

#: Seconds since 1970, of every document.
NOW = 1_790_000_000.0

#: Texts by which a client or a file name might break out of a page, a label, a log or a terminal.
#: The last is too long for every table.
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</title></style><svg/onload=alert(1)>",
    "&lt;&#x3c;&amp;",
    'a"} 1\npoorhttp_ready 0\n# EOF\n',
    "\\",
    '\\n\\"{}',
    "\x1b[2J\x1b[31mred\x1b]0;title\x07\x9b31m",
    "line\r\nanother\ttab\x00nul\x7f",
    "\u202egnp.exe\u2066\u200b\ufeff\u2028\u2029",
    "\ud800 is half a letter",
    "data: x\n\nevent: y\nid: 7\n\n",
    "https://user:pass@example.org/%0d%0a{{7*7}}${7*7}",
    "long " * 500,
)


@functools.cache
def durations(number: int, seed: int) -> list[Histogram]:
    """How long so many requests waited, were in the application, and were sent."""
    chance = random.Random(seed)
    found: list[Histogram] = []
    for mean, deviation in ((-9, 1.5), (-4.5, 1.3), (-8, 1.0)):
        counts = [0] * (len(BOUNDS) + 1)
        total = 0.0
        for _ in range(number):
            seconds = chance.lognormvariate(mean, deviation)
            counts[bisect.bisect_left(BOUNDS, seconds)] += 1
            total += seconds
        found.append({"counts": counts, "sum": total})
    return found


def figures(requests: int, seed: int = 1) -> Figures:
    """Figures of so many requests, always the same; each number in them differs from the others."""
    made = no_figures()
    statuses = {"1xx": 0.001, "2xx": 0.9, "3xx": 0.05, "4xx": 0.04, "5xx": 0.005}
    made["requests"] = requests
    made["responses"] = {key: int(requests * part) for key, part in statuses.items()}
    made["refused"] = {key: place for place, key in enumerate(made["refused"], 2)}
    made["timed_out"] = requests // 1000 + 1
    made["departed"] = requests // 500 + 2
    made["bytes_received"] = requests * 431 + 17
    made["bytes_sent"] = requests * 13_021 + 29
    made["accepted"] = requests // 7 + 3
    made["tls_handshakes"] = requests // 9 + 4
    made["tls_failures"] = requests // 3000 + 5
    made["http2_failures"] = requests // 4000 + 8
    made["http2_resets"] = {"client": requests // 800 + 9, "server": requests // 900 + 10}
    made["http2_connections"], made["http2_streams"] = 14, 15
    made["upgrades"] = requests // 700 + 6
    made["spooled_bytes"] = requests * 97
    made["cache_hits"] = requests // 3
    made["cache_misses"] = requests // 40 + 7
    made["interpreter_wait"] = requests * 0.000_013
    made["in_flight"] = 3
    made["queued"] = 2
    made["oldest"] = 12.75
    made["connections"] = {"reading": 5, "active": 3, "sending": 4, "idle": 31, "upgraded": 8}
    waiting, application, sending = copy.deepcopy(durations(min(requests, 500), seed))
    made.update({"waiting": waiting, "application": application, "sending": sending})
    return made


def request(line: str, number: int = 4711, seconds: float = 1.25) -> InFlight:
    return {
        "number": number,
        "line": line,
        "seconds": seconds,
        "thread": 10_000 + number,
        "id": f"{number:016x}",
        "upgraded": False,
        "streaming": False,
    }


def finished(line: str, status: int, application: float, number: int = 815) -> Finished:
    return {
        "when": NOW - number,
        "line": line,
        "status": status,
        "waited": application / 7,
        "application": application,
        "sending": application / 40,
        "sent": 1000 + number,
        "pid": 101,
        "number": number,
        "id": f"{number:016x}",
    }


def refusal(line: str, status: int, reason: str, number: int = 900) -> Refusal:
    """A request that the server has refused."""
    return {
        "when": NOW - number,
        "status": status,
        "reason": reason,
        "client": f"[2001:db8::{number % 10}]:{50_000 + number}",
        "line": line,
        "pid": 102,
        "number": number,
        "id": f"{number:016x}",
    }


def worker(index: int, *, pid: int = 0, state: str = "serving", requests: int = 12_345) -> Worker:
    """A worker with two requests in flight, one of them upgraded."""
    chat = request("GET /chat", 12, 3601.5)
    chat["upgraded"] = True
    return {
        "pid": pid or 101 + index,
        "index": index,
        "state": state,
        "age": 86_400.5 + index,
        "answers": state == "serving",
        "full": False,
        "requests": requests,
        "connections": 51,
        "in_flight": 3,
        "cpu": 321.25 + index,
        "rss": 64_000_000 + index,
        "pss": 32_000_000 + index,
        "working_on": [request(f"GET /cart/{index}?page=2"), chat],
        "figures": figures(requests, index + 2),
    }


def slot(begin: float, requests: int = 3000) -> Slot:
    """A minute, of so many requests; each is different."""
    made = figures(requests, int(begin) % 997)
    return {
        "begin": begin,
        "end": begin + 60,
        "requests": requests,
        "errors": made["responses"]["5xx"],
        "received": made["bytes_received"],
        "sent": made["bytes_sent"],
        "died": 0,
        "memory": 90_000_000 + (int(begin) % 3600) * 10_000,
        "waiting": made["waiting"]["counts"],
        "application": made["application"]["counts"],
        "sending": made["sending"]["counts"],
    }


def service(name: str = "", workers: int = 2) -> Service:
    """A service in order."""
    return {
        "name": name,
        "mode": "threading",
        "urls": ["https://127.0.0.1:8443", "unix:/run/poorhttp.sock"],
        "target": "shop.wsgi:application",
        "threads": 8,
        "threads_follow_load": False,
        "workers_follow_load": True,
        "scaling": {
            "in_flight": 3,
            "used": 1.25,
            "idle": 0.5,
            "held": 0.75,
            "room": 12,
            "added": 3,
            "ended": 1,
            "workers_by_hand": 0,
        },
        "wanted": workers,
        "alive": workers,
        "answering": workers,
        "full": 0,
        "capacity": 8 * workers,
        "figures": figures(30_000),
        "workers": [worker(index) for index in range(workers)],
        "accept_queues": [
            {"url": "https://127.0.0.1:8443", "waiting": 7, "limit": 2048},
            {"url": "unix:/run/poorhttp.sock", "waiting": 0, "limit": 1024},
        ],
        "unread": 4,
        "restarts": {"died": 1, "worn": 12, "stopped": 0, "timeout": 2, "asked": 3},
        "reforks": 4,
        "slowest": [
            finished(f"GET /report/{each}", 200, 9.5 / (each + 1), each + 60) for each in range(20)
        ],
        "errors": [finished("POST /order", 500, 0.5, 61), finished("GET /slow", 504, 30.0, 62)],
        "refusals": [
            refusal("GET /caf\\xc3\\xa9 HTTP/1.1", 400, "a malformed target", 63),
            refusal("", 408, "the request did not come in time", 64),
            refusal("POST /upload HTTP/1.1", 413, "the body is too large", 65),
        ],
        "certificates": [{"file": "/etc/ssl/shop.pem", "expires": NOW + 30 * 86_400}],
        # Ten minutes without a request, and a quiet one.
        "history": [
            slot(NOW - 60 * each, 300 if each == 41 else 1500 + 40 * each)
            for each in range(60, 0, -1)
            if not 20 < each <= 30
        ],
    }


def document() -> Status:
    """A server with one service, in order."""
    return {
        "version": "1.2.3",
        "python": "3.13.1",
        "pid": 100,
        "started": NOW - 86_402.5,
        "now": NOW,
        "ready": True,
        "why_not_ready": "",
        "cpus": 4,
        "host_name": "shop.example.org",
        "services": [service()],
        "reloads": {"succeeded": 5, "failed": 1, "last": {"when": NOW - 600, "result": "reloaded"}},
        "log_lines_lost": 6,
        "metrics": [],
        "configuration": [
            {"service": "", "option": "threads", "value": "8", "origin": "shop.ini:3"},
            {"service": "", "option": "workers", "value": "2", "origin": "--workers"},
            {"service": "", "option": "admin_token_file", "value": "***", "origin": "shop.ini:9"},
        ],
    }


def fresh() -> Status:
    """A server that starts: no worker serves yet, and all figures are 0."""
    made = document()
    only = service(workers=0)
    only.update({"figures": no_figures(), "slowest": [], "errors": [], "certificates": []})
    only.update({"refusals": [], "accept_queues": [], "unread": 0})
    only.update({"wanted": 1, "capacity": 8, "restarts": dict.fromkeys(only["restarts"], 0)})
    only["history"] = []
    starting = worker(0, state="starting", requests=0)
    starting.update({"figures": no_figures(), "working_on": [], "age": 0.0, "requests": 0})
    starting.update({"cpu": 0.0, "rss": 0, "pss": 0, "connections": 0, "in_flight": 0})
    only["workers"] = [starting]
    made["services"] = [only]
    made["reloads"] = {"succeeded": 0, "failed": 0, "last": None}
    made["started"] = NOW
    made["ready"], made["why_not_ready"] = False, "the server is starting"
    made["log_lines_lost"] = 0
    return made


def troubled() -> Status:
    """Two services, one of them in trouble: workers in each state, no capacity, a failed reload."""
    made = document()
    shop, chat = service("shop", 5), service("chat", 1)
    for each, state in zip(
        shop["workers"], ("starting", "serving", "retiring", "broken", "stopped"), strict=True
    ):
        each["state"], each["answers"] = state, state == "serving"
    shop["workers"][1]["answers"], shop["workers"][1]["full"] = False, True
    shop["alive"], shop["answering"], shop["full"] = 2, 1, 1
    chat["mode"], chat["capacity"] = "gevent", None
    chat["certificates"] = [{"file": "/etc/ssl/chat.pem", "expires": NOW - 1}]
    made["services"] = [shop, chat]
    made["ready"], made["why_not_ready"] = False, "service shop: no worker answers"
    made["reloads"]["last"] = {
        "when": NOW - 5,
        "result": "not reloaded; the previous version keeps serving: shop.ini:3: threads: 0 is out "
        "of range; write a number from 1 to 10000",
    }
    return made


def escaped(text: str) -> str:
    """A request line with `text` in its target, as the reactor escapes it (`escape_ascii`)."""
    special = {"\t": "\\t", "\r": "\\r", "\n": "\\n", "'": "\\'", '"': '\\"', "\\": "\\\\"}
    raw = f"GET /{text}".encode("utf-8", "surrogatepass")
    return "".join(
        special.get(chr(byte), chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}") for byte in raw
    )[:500]


def hostile() -> Status:
    """Every text is hostile. Lines of requests are escaped as the reactor does it, still HTML."""
    made = document()
    texts = list(HOSTILE)
    services = []
    for place, text in enumerate(texts):
        each = service(f"{place}{text}", 1)
        each["target"] = text
        each["urls"] = [text]
        line = escaped(text)
        for one in each["workers"]:
            one["working_on"] = [request(line), request(line, 2)]
            one["working_on"][1]["id"] = escaped(text)
        each["slowest"] = [finished(line, 200, 3.5)]
        each["errors"] = [finished(line, 500, 0.5)]
        each["refusals"] = [refusal(line, 400, text)]
        each["refusals"][0]["client"] = text
        each["accept_queues"] = [{"url": text, "waiting": 3, "limit": 2}]
        each["certificates"] = [{"file": text, "expires": NOW}]
        services.append(each)
    made["services"] = services
    made["host_name"] = texts[0]
    made["ready"], made["why_not_ready"] = False, "; ".join(texts)
    made["reloads"]["last"] = {"when": NOW, "result": "; ".join(texts)}
    made["configuration"] = [
        {"service": text, "option": "target", "value": text, "origin": text} for text in texts
    ]
    return made


#: All documents, by name.
DOCUMENTS = {"in order": document, "fresh": fresh, "troubled": troubled, "hostile": hostile}


def series(moments: int, seconds: float = 2.0, requests: int = 500) -> list[Status]:
    """A document of each of so many moments, `seconds` apart: counters and histograms grow."""
    found = []
    for moment in range(moments):
        made = copy.deepcopy(document())
        made["now"] = NOW + moment * seconds
        for each in made["services"]:
            each["figures"] = figures(30_000 + moment * requests)
            for one in each["workers"]:
                one["requests"] += moment * requests // 2
                one["age"] += moment * seconds
                one["figures"] = figures(one["requests"], one["index"] + 2)
        found.append(made)
    return found
