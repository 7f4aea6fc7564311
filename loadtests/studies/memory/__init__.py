"""The study `memory` of 2010: use by configuration, over time and by line of source, and leaks.

- `study`: the steps of all parts.
- `report`: use by configuration, and the report of all parts.
- `moments`: memory when idle, after ten and after a hundred parallel requests.
- `usage`: memory of a server's processes: as `ps` counts it, and with shared pages divided.
- `parallel`: requests at the same time.
- `curve`: memory over time, by memory_profiler, and its figures.
- `leak`: the leak check: whether memory grows with the number of requests, and its tables.
- `mixture`: requests of all kinds in random order, some of them aborted by their client.
- `by_line`: memory by line of the example applications, and its tables.
- `examples`: these applications.
- `profiled`: calls an example under memory_profiler, in a process of its own.
"""
