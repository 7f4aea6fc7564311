"""Dead, slow, non-reading and non-sending clients, and large requests: `endure`.

- `study`: the study.
- `experiments`: the experiments.
- `promises`: the promised figures, and how each is read from the results.
- `report`: live clients beside a burden against without, and what it costs.
"""
