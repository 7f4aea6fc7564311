"""Parsers and other functions, called in the test's own process."""
