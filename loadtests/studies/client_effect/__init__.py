"""The study `influence` of 2001: every client with every server, and each one's share of variation.

- `study`: the steps.
- `grid`: observations of every client with every server.
- `verdict`: whether the client was the bottleneck, in a sentence.
- `original`: the study of 2001, and a second analysis of its tables.
- `variance_tables`: tables of an analysis of variance.
- `report`: the report.
"""
