"""Reports: sections of text, tables and figures, as one HTML page, as Markdown and as CSV.

`model` is what a study says; the other files know how it looks.
"""

from __future__ import annotations
