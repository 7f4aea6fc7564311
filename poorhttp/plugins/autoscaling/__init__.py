"""The number of threads follows the load (`threads = auto`).

options.py        the options
worker_hooks.py   checks the options, and gives the bounds to the reactor, which decides
component.py      in the main process: a new worker begins with the threads of the one before
"""
