"""The comparison of all servers, `bench`, and the experiments behind promised figures, `show`.

- `scenarios`: number of connections, request, expected response.
- `experiments`: the experiments of `show`.
- `targets`: the promised figures, and how each is read from the results.
- `report`: Markdown tables and SVG plots.
"""
