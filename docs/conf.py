"""Configuration of Sphinx for the manual: `make docs` builds it into `build/docs`.

The pages are Markdown that reads well on GitHub, too. manual_site/ has what makes a site of them.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS)]

from manual_site import repository  # noqa: E402

from poorhttp.config.version import VERSION  # noqa: E402

project = "Poor HTTP"
author = "The Poor HTTP developers"
project_copyright = author
version = release = VERSION

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "manual_site.repository",
    "manual_site.indexes",
    "manual_site.markdown",
    "manual_site.diagrams",
    "manual_site.docstrings",
    "manual_site.search",
]
exclude_patterns = ["figures", "manual_site"]
nitpicky = True
# Examples are fragments and templates; a lexer that stumbles over one still shows it.
suppress_warnings = ["misc.highlighting_failure"]

# Anchors of headings are those that GitHub makes.
myst_heading_anchors = 6

# Docstrings have code between single backticks.
default_role = "code"
# Dashes; quotation marks stay as they are written.
smartquotes_action = "D"

# Types of arguments are shown as they are written; those of WSGI have no page to link to.
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
# The pages are the same where the extension is not built.
autodoc_mock_imports = [] if find_spec("poorhttp._core") else ["poorhttp._core"]
nitpick_ignore_regex = [(r"py:.*", r".*")]
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"Poor HTTP {VERSION}"
html_logo = html_favicon = "../poorhttp/plugins/monitor/page/icon.svg"
html_static_path = ["manual_site/static"]
html_css_files = ["manual.css"]
html_search_scorer = str(DOCS / "manual_site/search.js")
templates_path = ["manual_site/templates"]
html_copy_source = html_domain_indices = False
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f6f78",
        "color-brand-content": "#1f6f78",
        "color-brand-visited": "#1f6f78",
    },
    "dark_css_variables": {
        "color-brand-primary": "#6cc3cd",
        "color-brand-content": "#6cc3cd",
        "color-brand-visited": "#6cc3cd",
    },
    **repository.theme_options(),
}

# Of shell sessions, the commands are copied without prompts and output.
copybutton_exclude = ".linenos, .gp, .go"
copybutton_copy_empty_lines = False

# `make docs-links`
linkcheck_timeout = 20
linkcheck_ignore = [r"https?://(localhost|127\.0\.0\.1|\[::1\]|[\w.-]*example\.\w+)([:/].*)?$"]
