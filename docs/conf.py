"""How the pages become a site: `make docs`, or `python -m sphinx -c docs . build/site` at the root of the repository.

The root is the source, so that a page, the proof notes beside the code and the files that they link to have the same
relative links here as in an editor. Pages and notes are taken by pattern; only docs/index.md says in which order.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # docstrings are those of the sources beside the pages

import fastdp  # noqa: E402

project = "fastdp"
version = release = fastdp.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "docstrings", "formulas", "pages", "notebooks"]
include_patterns = ["docs/**", "fastdp/*.md", "fastdp/**/*.md", "kernels/*.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = ["fastdp/kernels", "fastdp/bench", "docs/results", "build", "dist", ".*", "**/__pycache__"]
root_doc = "docs/index"

myst_heading_anchors = 4  # a link may end in #a-heading
highlight_language = "none"  # indented blocks are pseudo-code; Python says so

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"fastdp {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = html_show_copyright = False
html_additional_pages = {"index": "start.html"}  # build/site/index.html leads to docs/index.html
templates_path = ["templates"]
