"""The study `endure`: dead, slow, non-reading and non-sending clients, large requests.

- `study`: the study, the promised figures, and the report: live clients beside a burden against
  without, and what it costs.
- `experiments`: the experiments.
"""
