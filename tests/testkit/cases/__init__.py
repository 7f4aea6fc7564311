"""Readers of the case files in tests/cases."""
