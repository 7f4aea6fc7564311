"""SVG figures.

- `figure`: a figure of the model in two widths: of a page, and of a phone.
- `bars`, `lines`: bar charts and line charts.
- `canvas`, `ticks`, `legend`: their drawing area, axes and legends.
- `svg`: cleans SVG files of matplotlib for a page.
- `plot`: bars and dots without a plotting library, for the pages of `bench` and its kin.
"""
