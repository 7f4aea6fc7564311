"""An application with a database, whose workers are forked from one that has served.

Each request writes its token into a table of PostgreSQL and reads it back in a transaction, with
SQLAlchemy and psycopg. The functions show what an application does at a refork.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from sqlalchemy import create_engine, text

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

engine = create_engine(os.environ["LOADTESTS_DATABASE"], pool_size=8, max_overflow=8)

INSERT = text("INSERT INTO tokens (token) VALUES (:token) RETURNING id")
SELECT = text("SELECT token, pg_backend_pid() FROM tokens WHERE id = :id")


def close_connections() -> None:
    """Close the connections, before workers are forked from this one (`before_refork`)."""
    engine.dispose()


def forget_connections() -> None:
    """Leave inherited connections to the process that has opened them (`after_fork`)."""
    engine.dispose(close=False)


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The token as the database has it, the process, and the process of the database."""
    (token,) = parse_qs(environ["QUERY_STRING"])["token"]
    with engine.begin() as connection:
        number = connection.execute(INSERT, {"token": token}).scalar_one()
        written, backend = connection.execute(SELECT, {"id": number}).one()
    body = f"{written} {os.getpid()} {backend}".encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
