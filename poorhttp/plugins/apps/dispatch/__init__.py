"""Dispatch tables: the API of applications that map paths to functions (`dispatch:FOLDER`).

    from poorhttp import dispatch as http

    def hello(req):
        req.content_type = "text/plain"
        req.write("Hello")
        return http.DONE

    handlers = {"/": (http.METHOD_GET, hello)}

Saved as `dispatch_table.py` in a folder it is served by `poorhttp serve dispatch:FOLDER`; any other
WSGI server takes `http.Application(table)`.

target.py          the target `dispatch:FOLDER`
application.py     a dispatch table as a WSGI application
methods.py         request methods as bits (`METHOD_*`)
request.py         the request that a handler is called with, and its answer
headers.py         header fields
form.py            fields of forms, in the address or the body
cookies.py         parser of the `Cookie` header
server_return.py   the exception that ends a handler early
status.py          result codes, and status codes (`HTTP_*`)
pages.py           default pages of error statuses
levels.py          levels of log messages (`LOG_*`)
"""

from __future__ import annotations

from .application import Application
from .form import Field, Fields, FieldStorage, FormError
from .headers import Headers
from .levels import *  # noqa: F403
from .methods import *  # noqa: F403
from .request import Request, redirect
from .server_return import SERVER_RETURN
from .status import *  # noqa: F403

#: Every number, and what follows.
__all__ = [name for name in globals() if name.isupper() and name != "SERVER_RETURN"]
__all__ += ["Application", "Field", "FieldStorage", "Fields", "FormError", "Headers", "Request"]
__all__ += ["SERVER_RETURN", "methods", "redirect"]  # noqa: F405
