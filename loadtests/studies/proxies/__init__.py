"""Servers behind a proxy: ours behind those of `proxy/`, and gateway protocols beside uWSGI.

- `experiments`: what is asked.
- `promises`: the promised figures.
- `report`: the page.
"""
