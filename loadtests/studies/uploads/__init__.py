"""The study `uploads`: a large body for an application that hashes it.

- `study`: the class, its steps and report.
"""
