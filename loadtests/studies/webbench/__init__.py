"""The study `webbench` of 2001: files of a workload at random; requests and bytes per second.

- `workload`: the files, and the order of requests.
- `study`: the steps.
- `report`: the report.
"""
