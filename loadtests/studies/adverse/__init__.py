"""Dead, slow, non-reading and non-sending clients, and large requests: `endure`.

- `experiments`: the experiments.
- `report`: the promised figures, beside measured ones, and the page.
"""
