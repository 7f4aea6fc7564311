"""A soak test: mixed load with every fault at once, for any time.

``python -m loadtests soak`` starts a server for each mode and lets clients of every kind at it,
good and bad. It fails if a single answer was wrong or somebody else's, if the error log holds a
line that nobody has expected, or if memory or descriptors have grown.

- `together`: several soaks at the same time, each in a process of its own.
- `run`: one server under mixed load, from its start to the verdict.
- `client`, `dead`, `clients`: the base class of the clients, those that do too little, all others.
- `dialogue`: a connection that tells right responses from wrong ones.
- `gate`: a barrier at which clients pause while the server has to be idle.
- `tally`: counts of responses and faults so far.
- `gauge`: memory, descriptors, threads, temporary files and connections of the server.
- `journal`: check of the server's error log.
- `report`: Markdown and a plot from the records.
"""
