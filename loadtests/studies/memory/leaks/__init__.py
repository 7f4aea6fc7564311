"""The leak check: whether memory grows with the number of requests.

- `leak`: the check.
- `mixture`: requests of all kinds in random order, some of them aborted by their client.
- `report`: its report.
"""
