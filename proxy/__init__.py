"""Configurations of web servers that stand in front of ours, and how to try them."""
