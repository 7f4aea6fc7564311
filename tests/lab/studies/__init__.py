"""The studies of the load lab: calculations, reports, and a small run of each."""
