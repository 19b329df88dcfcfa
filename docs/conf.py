"""How Sphinx builds the documentation: `make docs`."""

import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "Credence"
author = "the Credence team"
release = metadata.version("credence-server")
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "mathml",
    "markdown_pages",
    "openapi",
]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4  # links to headings, as on GitHub
html_math_renderer = "mathml"
html_theme = "furo"
html_title = "Credence"
html_static_path = ["static"]
html_css_files = ["docs.css"]
html_logo = "static/logo.svg"
html_favicon = "static/logo.svg"
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
add_module_names = False
suppress_warnings = ["myst.xref_missing"]  # links to files beside docs/, which a test follows
