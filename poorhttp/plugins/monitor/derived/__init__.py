"""Rates, history and warnings computed from status documents, for the page and `top`.

advice.py     which workers and threads a server needs, and their price
history.py    the last hour in slots of a minute, kept in the main process
rates.py      quantiles, sums, and rates of the last seconds
scaling.py    how many workers and threads there are, and why
notices.py    states and figures that are out of order
units.py      numbers with units, short enough for a table
"""
