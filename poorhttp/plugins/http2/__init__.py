"""Options of HTTP/2 (who may speak it, streams, windows), which workers give to the reactor.

options.py        the options
worker_hooks.py   gives the options to the reactor
"""
