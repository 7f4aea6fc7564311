"""The study `auto`: threads that follow the load, beside fixed numbers and other servers.

- `study`: the class, its steps and report.
"""
