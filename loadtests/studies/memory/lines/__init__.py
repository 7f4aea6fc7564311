"""Memory by line of the example applications.

- `by_line`: the measurement.
- `examples`: the applications.
- `profiled`: calls an example under memory_profiler, in a process of its own.
- `report`: the report.
"""
