"""Compression of responses: what is compressed, and how. The reactor does it.

options.py        the options: codings, their levels, media types
worker_hooks.py   gives the options to the reactor
"""
