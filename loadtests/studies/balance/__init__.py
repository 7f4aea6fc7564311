"""The study `balance`: two workers and more, and how connections spread over them.

- `simulation`: ways to choose the worker that accepts, with more workers than there are cores here.
- `cores`: a model of what many workers on as many cores share, and its simulation.
- `constants`: measures the constants of that model.
- `study`: experiments and report.
"""
