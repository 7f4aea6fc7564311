"""The comparison of all servers, `bench`, and the experiments behind promised figures, `show`.

- `study`: both studies.
- `scenarios`: number of connections, request, expected response.
- `experiments`: the experiments of `show`.
- `promises`: the promised figures, and how each is read from the results.
- `report`: what a request costs each server, and how fast it answers.
"""
