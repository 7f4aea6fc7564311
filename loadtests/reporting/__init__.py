"""Reports: sections of text, tables and figures, as one HTML page, as Markdown and as CSV.

- `model`: the parts of a report, without their layout: what a study says.
- `page`, `page.html.jinja`, `page.css`: one self-contained HTML page.
- `glossary`: explanations of the short names of columns.
- `terminal`: a report in short, for a terminal.
- `markdown`: Markdown.
- `sheets`: tables and figures as CSV.
- `markdown_insert`: inserts tables between marks in a Markdown page.
- `figures/`: bars and lines as SVG.
- `cells`: cells of tables.
- `promises`: promised figures beside measured ones.
- `faults`: what failed under load, by server and experiment.
- `names`: file names of tables and figures.
- `provenance`: the end of every report: place, time and method of the measurement.
- `progress`: progress of a run on the terminal.
"""

from __future__ import annotations
