"""A soak test: mixed load with every fault at once, for any time.

``python -m loadtests soak`` starts a server for each mode and lets clients of every kind at it,
good and bad. It fails if a single answer was wrong or somebody else's, if the error log holds a
line that nobody has expected, or if memory or descriptors have grown.
"""
