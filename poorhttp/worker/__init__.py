"""A process that serves: with a main process above it, or alone.

start.py          first steps of a forked worker, and its end
standalone.py     serving without a main process
service.py        one configuration: sockets, routes, application
development.py    where the development server is plugged in
worker.py         makes the reactor for a mode
wsgi.py           requests → WSGI application → responses
tcp.py            connections → handler of a raw TCP service
timeouts.py       interrupts requests that take too long
stop_signals.py   signal handlers: graceful and quick stop, log rotation
temp_dir.py       the folder for temporary files
check.py          the command `poorhttp check`
"""
