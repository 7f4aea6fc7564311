"""SVG figures.

- `figure`: a figure of the model in two widths: of a page, and of a phone; as SVG.
- `bars`, `lines`: bar charts and line charts.
- `chart`: an empty figure with its legend; scales, limits and ticks of axes.
- `lab.mplstyle`: colours, fonts and lines.
"""
