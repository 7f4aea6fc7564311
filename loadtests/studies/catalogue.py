"""All studies, in the order of reports."""

from __future__ import annotations

from loadtests.studies import (
    auto,
    cluster,
    compress,
    content,
    deadconn,
    endure,
    influence,
    loops,
    ordered,
    overload,
    parallel,
    power,
    proxies,
    resources,
    serial,
    tls,
    uploads,
    webbench,
)
from loadtests.studies.balance import study as balance
from loadtests.studies.bench import study as bench
from loadtests.studies.develop import study as develop
from loadtests.studies.http2 import study as http2
from loadtests.studies.memory import study as memory
from loadtests.studies.operate import study as operate
from loadtests.studies.study import Study
from loadtests.studies.websocket import study as websocket

STUDIES: dict[str, Study] = {
    "serial": serial.STUDY,
    "parallel": parallel.STUDY,
    "memory": memory.STUDY,
    "loops": loops.STUDY,
    "power": power.STUDY,
    "resources": resources.STUDY,
    "deadconn": deadconn.STUDY,
    "webbench": webbench.STUDY,
    "influence": influence.STUDY,
    "ordered": ordered.STUDY,
    "overload": overload.STUDY,
    "content": content.STUDY,
    "proxies": proxies.PROXIES,
    "gateways": proxies.GATEWAYS,
    "cluster": cluster.STUDY,
    "balance": balance.STUDY,
    "bench": bench.BENCH,
    "show": bench.SHOW,
    "endure": endure.STUDY,
    "operate": operate.STUDY,
    "develop": develop.STUDY,
    "websocket": websocket.STUDY,
    "tls": tls.STUDY,
    "http2": http2.STUDY,
    "uploads": uploads.STUDY,
    "auto": auto.STUDY,
    "compress": compress.STUDY,
}
"""By name, which is their command and folder; `Makefile` reads the names here."""
