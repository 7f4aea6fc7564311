"""Error pages.

PLACEHOLDER
"""
