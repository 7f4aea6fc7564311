"""The study `influence` of 2001: every client with every server, and each one's share of variation.

- `study`: the steps, and the report, with the study of 2001 and a second analysis of its tables.
- `variation`: observations of every client with every server, and tables of their analysis.
"""
