"""HTTP/2: who may speak it, streams and windows. The reactor speaks it.

options.py        the options
worker_hooks.py   gives the options to the reactor
"""
