"""The site of the manual: extensions of Sphinx for docs/conf.py, and the command that builds it.

build.py        builds all versions, their menu, and the page that redirects to the newest
pictures.py     draws the pictures of README
screenshots.py  takes pictures of the site, at both widths, light and dark
repository.py   links to files of the repository
indexes.py      tables of contents, made of the lists in index pages
markdown.py     GitHub's notes, pictures for light and dark, and cells with sentences
diagrams.py     drawings in the place of Mermaid
draw_diagrams.py  draws them, after a diagram has changed
diagrams/       the drawings
docstrings.py   examples in docstrings
search.py, search.js  the site's search
static/         the style sheet
templates/      the place of the versions' menu
"""
