"""The study `parallel` of 2010: a hundred new requests per second, however slow the responses are.

- `study`: the steps.
- `ramp`: the highest rate of new requests, found by raising it.
- `report`: the report.
"""
