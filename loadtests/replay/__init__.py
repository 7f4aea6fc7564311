"""Requests at given times to any server: `load` at a rate, `replay` those of an access log.

- `command`: the command lines.
- `report`: outcome, percentiles, distribution and course of times, of stored results.
"""
