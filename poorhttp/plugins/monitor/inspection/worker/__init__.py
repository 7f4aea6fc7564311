"""The worker's side of an inspection: stacks, profile and objects of its process.

The main process asks by a signal, so a worker needs nothing but a handler until then. All other
modules are imported when the first question comes.

area.py      memory in which the main process asks, and workers answer
handler.py   the signal handlers of a worker
stacks.py    stacks of all threads and greenlets, with their requests
sampler.py   profile: which stacks take the time
heap.py      memory: objects by type, or allocations by line
"""
