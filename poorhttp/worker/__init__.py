"""Worker processes: with a main process, or standalone.

start.py          start and exit of a forked worker
standalone.py     serving without a main process
service.py        one service of the configuration: sockets, routes, application
mode.py           the mode that the settings name
plugin_hooks.py   what plug-ins do when settings are read, and in workers
options.py        the options of a reactor, made from settings
worker.py         creates the reactor for a mode
wsgi.py           requests → WSGI application → responses
hooks/            functions of the application that are called for events
tcp.py            connections → handler of a raw TCP service
timeouts.py       interrupts requests that take too long
stop_signals.py   signal handlers: graceful and quick stop, log rotation
temp_dir.py       the folder for temporary files
check.py          the command `poorhttp check`
"""
