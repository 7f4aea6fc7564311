"""Declarations of all options, with text for help and the reference page.

option.py    what an option is: parser, default, text
server.py    application, listening, workers, processes
hooks.py     functions that are called when workers start or end, and on a reload
limits.py    limits of time and size
proxies.py   proxies in front of the server, `Server` header
logs.py      access log, error log
content.py   mounts, request bodies, static files
"""
