"""The study `compress`: JSON that is compressed on the fly.

- `study`: the class, its steps and report.
"""
