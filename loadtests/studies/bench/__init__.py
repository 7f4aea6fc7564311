"""The comparison of all servers, `bench`, and the experiments behind promised figures, `show`.

- `scenarios`: number of connections, request, expected response.
- `study`: the runs of `show`; what a request costs each server, and how fast it answers.
"""
