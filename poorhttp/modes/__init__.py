"""Modes: how the requests of a worker are scheduled; the list of the files.

single.py      one request at a time
forking.py     one request at a time in each of several processes
threading.py   threads that share one reactor
gevent.py      a greenlet for each request

A mode is a module with a function `run(worker)`, which serves until the reactor stops, and an
optional function `prepare()`, which is called before the application is imported. Plug-ins add
modes in the entry-point group `poorhttp.modes`; `poorhttp/worker/mode.py` loads a mode.
"""
