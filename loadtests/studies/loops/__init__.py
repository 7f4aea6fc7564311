"""The study `loops` of 2005: seconds for a page asked for in a loop, over several networks.

It is one page, five in turn, or five at random.

- `study`: every server in every run, three loops each, over every network.
- `report`: the report.
"""
