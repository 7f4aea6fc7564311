"""Chooses the mode that suits the libraries which a project imports."""

from __future__ import annotations

from poorhttp.config.resources import usable_cpus
from poorhttp.plugins.setup.deployment.project import DeployedProject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from poorhttp.config.settings import Settings

#: Libraries of gevent, which work in its mode only.
GREENLETS = {"flask_sockets", "gevent", "geventwebsocket", "grequests"}

#: Libraries that speak WebSocket by threads.
SOCKETS = {"flask_sock", "flask_socketio", "simple_websocket", "socketio", "wsproto"}

#: Libraries whose calls wait for a database or another server.
WAITING = {
    *("MySQLdb", "boto3", "botocore", "cassandra", "celery", "cx_Oracle", "django.db"),
    *("elasticsearch", "flask_sqlalchemy", "grpc", "httpx", "kafka", "ldap3", "mariadb"),
    *("mysql.connector", "oracledb", "paramiko", "peewee", "pika", "psycopg", "psycopg2"),
    *("pymongo", "pymysql", "pyodbc", "redis", "requests", "smtplib", "sqlalchemy"),
    *("urllib.request", "urllib3"),
}

#: Libraries that are there to compute.
COMPUTING = {
    *("PIL", "cv2", "matplotlib", "numba", "numpy", "onnxruntime", "pandas", "polars"),
    *("reportlab", "scipy", "skimage", "sklearn", "spacy", "sympy", "tensorflow", "torch"),
    *("transformers", "weasyprint"),
}

#: Threads of a worker whose requests wait, and of one of which nothing is known.
MANY_THREADS, THREADS = "16", "8"


class Mode:
    """A mode, with its reasons.

    Attributes:
        values: options by their names: `mode`, and perhaps `workers`, `threads` and others.
        reasons: sentences for people.
    """

    def __init__(self, values: dict[str, str], *reasons: str) -> None:
        self.values = values
        self.reasons = list(reasons)


def choose(project: DeployedProject, target: str) -> Mode:
    """Return the mode for a project, by a look at its imports."""
    if target.startswith("static:"):
        reason = "Files are sent without Python, whatever the mode is."
        return Mode({"mode": "threading", "threads": THREADS}, reason)
    greenlets = project.importing(GREENLETS)
    sockets = project.importing(SOCKETS)
    waiting = project.importing(WAITING)
    computing = project.importing(COMPUTING)
    if greenlets:
        return Mode(
            {"mode": "gevent"},
            f"{_names(greenlets)}: a greenlet for each request, thousands at the same time.",
            "Libraries must support gevent: one that blocks stops all requests.",
        )
    threads = {"mode": "threading", "threads": MANY_THREADS if waiting else THREADS}
    if computing and waiting:
        cpus = str(max(2, usable_cpus()))
        return Mode(
            {"mode": "threading", "workers": cpus, "threads": THREADS},
            f"{_names(computing)}, to compute; {_names(waiting)}, to wait for others.",
            "A worker for each processor computes, and its threads wait.",
        )
    if computing:
        return Mode(
            {"mode": "forking"},
            f"{_names(computing)}, to compute: a process for each processor, one request in each.",
        )
    reasons = []
    if waiting:
        reasons = [
            f"{_names(waiting)}: requests wait, and a waiting thread holds up no other request.",
            "A database must allow as many connections as there are threads.",
        ]
    if sockets:
        reasons.append(
            f"{_names(sockets)}: each WebSocket has a thread of its own, beside these "
            "(upgraded_threads)."
        )
    if not reasons:
        reasons = ["Threads suit most applications: a slow request does not hold up the others."]
    return Mode(threads, *reasons)


def configured(settings: Settings, file: str) -> Mode:
    """Return the mode that a configuration file has."""
    names = ("mode", "workers", "threads", "preload")
    values = {name: settings.written(name)[0] for name in names if settings.is_set(name)}
    return Mode({"mode": settings.mode, **values}, f"As in {file}.")


def _names(found: dict[str, str]) -> str:
    """Return a phrase about imports: `app.py imports numpy`."""
    library, file = next(iter(found.items()))
    more = f" (and {', '.join([*found][1:4])})" if len(found) > 1 else ""
    return f"{file} imports {library}{more}"
