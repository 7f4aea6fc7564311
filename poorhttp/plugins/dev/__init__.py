"""The development server: `poorhttp dev` and its options (autoreload, debug, live, profile, open).

commands.py               the command `poorhttp dev`
options.py                the options
component.py              what it does in the main process
worker_hooks.py           what it does in workers: error pages
threads_end.py            ends workers whose threads do not end
terminal_sink.py          the access log `terminal`
reload/                   starts a new generation of the application when a file is saved
debug/                    shows exceptions as pages, with Werkzeug's debugger
live_reload.py            makes pages in the browser reload themselves
profiler.py               profiles slow requests, a page for each
console.py                output of the main process: terminal, profiles, browser
terminal.py               shows requests as lines in the terminal
terminal_tracebacks.py    shows exceptions in the terminal
frames.py                 tracebacks without the frames of the server
template_errors.py        finds the line of a template at which an exception was raised
escape.py                 escapes text for pages and for the terminal
local_certificate.py      certificate for this machine (`--https`)
open_browser.py           opens the browser (`--open`)
"""
