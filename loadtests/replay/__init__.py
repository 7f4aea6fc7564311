"""`replay`: the requests of an access log, at their recorded times or faster, to any server.

- `command`: the command line.
- `report`: outcome, percentiles and distribution of times, of stored results.
"""
