"""Mode `asyncio`: ASGI applications in an event loop of asyncio or uvloop; the list of the files.

mode.py              the mode: makes the event loop, watches the reactor, starts a task per request
exchange.py          one HTTP request: its scope, `receive` and `send`
websocket.py         one WebSocket, by the extension module `_websocket`
scope.py             scopes of requests, from their heads
lifespan.py          the lifespan of an application: startup and shutdown
applications.py      which application answers a request, and whether it is ASGI or WSGI
request_threads.py   threads that run requests of WSGI applications
blocked_loop.py      logs where an application blocks the event loop (`slow_request`)
interrupter.py       ends tasks whose requests exceed `request_timeout`
options.py           the options
native.py            what only this mode uses of the extension module
worker_hooks.py      finds out which targets are ASGI applications
"""
