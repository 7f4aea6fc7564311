"""The study `loops` of 2005: one page, five pages in turn, or at random; from near and from far.

- `study`: every server in every run, three loops each, over every network.
- `report`: the report.
"""
