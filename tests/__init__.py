"""The tests: one file per module, and suites over real sockets in every mode."""
