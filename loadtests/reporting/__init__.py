"""Reports: sections of text, tables and figures, as one HTML page, as Markdown and as CSV.

- `model`: the parts of a report, without their layout: what a study says.
- `page`, `page.html.jinja`, `page.css`: one self-contained HTML page.
- `terminal`: a report in short, for a terminal.
- `markdown`: Markdown, also into a page that somebody has written.
- `sheets`: tables and figures as CSV.
- `percentiles`: percentile plots of histograms.
- `figures/`: bars and lines as SVG.
- `cells`: cells of tables.
- `promises`: promised figures beside measured ones.
- `faults`: what failed under load, by server and experiment.
- `provenance`: the end of every report: place, time and method of the measurement.
- `progress`: progress of a run on the terminal.
"""
