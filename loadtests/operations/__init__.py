"""Servers in operation: reloaded, upgraded, recycled, killed, timed out and stopped under load.

``steady`` is the load, a process of its own whose clients (``line``) check every answer and count
what they meet (``tally``); ``load`` is that process as the lab sees it. ``contestants`` says how
each server is operated, ``experiments`` does it in ``trial``s, and ``promises`` and ``report`` tell
what came of it.
"""
