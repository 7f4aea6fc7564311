"""Dead, slow, non-reading and non-sending clients, and large requests: `endure`.

- `study`: the study, the promised figures, and the report: live clients beside a burden against
  without, and what it costs.
- `experiments`: the experiments.
"""
