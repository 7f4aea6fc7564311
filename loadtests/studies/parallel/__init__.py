"""The study `parallel` of 2010: a hundred new requests per second, however slow the responses are.

- `study`: the steps, also those to the highest rate of new requests, and the report.
"""
