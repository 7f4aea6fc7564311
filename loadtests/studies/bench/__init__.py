"""The comparison of all servers, `bench`, and the experiments behind promised figures, `show`.

- `study`: both studies.
- `scenarios`: number of connections, request, expected response.
- `experiments`: the runs of `show`.
- `report`: the promised figures; what a request costs each server, and how fast it answers.
"""
