"""Requests at given times to any server: `load` at a rate, `replay` those of an access log.

- `command`: the command lines.
- `server`: the server, started or found by its port, and what it uses.
- `chain`: visits of several requests, with what earlier responses said.
- `outcomes`: failures in words, and each path on its own.
- `gate`: conditions under which a load fails, and files for CI.
- `report`: outcome, percentiles, distribution and course of times, of stored results.
"""
