"""Content: files, a site, CGI programs and template pages, ours beside web servers of the system.

- `experiments`: what is asked.
- `promises`: the promised figures.
- `report`: the page.
"""
