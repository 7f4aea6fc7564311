"""The study `serial` of 2010: one request after another, each on a connection of its own.

- `study`: the steps, and the report.
"""
