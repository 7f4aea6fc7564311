"""The study `balance`: two workers and more, and how connections spread over them.

- `simulation`: ways to choose the worker that accepts, with more workers than there are cores here.
- `study`: experiments and report.
"""
