"""Servers in operation: reloaded, upgraded, recycled, killed, timed out and stopped under load.

``steady`` is the load, a process of its own that checks every answer; ``load`` is that process as
the lab sees it; ``contestants`` says how each server is operated; ``experiments`` does it, and
``report`` tells what came of it.
"""
