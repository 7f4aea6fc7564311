"""Memory over time and under load.

- `curve`: idle, ten and a hundred requests at once, idle again, by memory_profiler.
- `moments`: when idle, after ten and after a hundred parallel requests.
- `parallel`: requests at the same time.
- `report`: the report.
"""
