"""The study `content`: files, a site, CGI programs and template pages, beside web servers.

- `experiments`: the requests of each experiment.
- `study`: the promised figures, the report, and the study.
"""
