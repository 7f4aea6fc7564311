"""The study `content`: files, a site, CGI programs and template pages, beside web servers.

- `experiments`: the requests of each experiment.
- `promises`: the promised figures.
- `report`: the report.
- `study`: the study.
"""
