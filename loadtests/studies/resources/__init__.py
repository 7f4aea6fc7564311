"""The study `resources` of 2005: CPU time, memory and traffic of a server under load.

- `study`: a loop against each server, sampled several times a second, and the report.
"""
