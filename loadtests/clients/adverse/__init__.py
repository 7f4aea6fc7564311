"""Adverse clients: dead, slow, and those that do not read.

- `clients`: the process of the clients.
- `handle`: that process, seen from the lab.
"""
