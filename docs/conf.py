"""How `make docs` builds the site."""

from __future__ import annotations

import sys
from pathlib import Path

import pyblasgpu

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "pyblasgpu"
author = "pyblasgpu developers"
copyright = author
version = release = pyblasgpu.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "numpydoc",
    # of docs/extensions
    "gallery",
    "linked_names",
]
exclude_patterns = ["_build", "**/README.md"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# `gemm` in a docstring is a link
default_role = "py:obj"
add_module_names = False

autosummary_generate = True
# of classes the methods are described, not listed
templates_path = ["_templates"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# "a, b : array" and "{'N', 'T'}" read as they are written
numpydoc_xref_param_type = False

# `>>>` and `$` of a copied line are left out
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme = "pydata_sphinx_theme"
html_title = "pyblasgpu"
html_show_sourcelink = False
html_theme_options = {
    "github_url": "https://github.com/pyblasgpu/pyblasgpu",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
}
html_sidebars = {"benchmarks": [], "glossary": [], "names": []}
