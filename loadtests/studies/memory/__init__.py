"""The study `memory` of 2010: use by configuration, over time and by line of source, and leaks.

- `study`: the steps and the report of all parts.
- `moments`: memory when idle, after ten and after a hundred parallel requests, and its tables.
- `curve`: memory over time, by memory_profiler, and its figures.
- `leak`: the leak check: whether memory grows with the number of requests, and its tables.
- `by_line`: memory by line of the example applications, and its tables.
- `profiled`: these applications; calls one under memory_profiler, in a process of its own.
"""
