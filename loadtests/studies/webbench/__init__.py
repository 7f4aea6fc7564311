"""The study `webbench` of 2001: files of a workload at random, as WebBench asks for them.

- `study`: the steps, and the report.
- `workload`: the files, and the order of requests.
"""
