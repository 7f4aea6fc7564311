"""The numbers of threads and workers follow the load (`threads = auto`, `workers = auto`).

options.py        the options
worker_hooks.py   checks the options, and gives the bounds to the reactor, which decides on threads
worker_count.py   decides how many workers there are: a function of figures and time
resources.py      processor time and memory
worker_watch.py   looks at the workers of a service, and adds and ends them
component.py      in the main process: has services watched, and hands on what was learned
"""
