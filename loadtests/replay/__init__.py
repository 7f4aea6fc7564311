"""Requests at given times to any server: `load` at a rate, `replay` those of an access log.

- `command`: the command lines.
- `chain`: visits of several requests, with what earlier responses said.
- `report`: outcome, percentiles, distribution and course of times, of stored results.
"""
