"""How the documentation is built; `make docs` runs it with warnings as errors."""

from hardwood import __version__

project = "hardwood"
release = __version__
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "hardwood"
templates_path: list[str] = []

# Types stand in the docstrings, where they say shapes and ranges too.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# A property of a shared base class, which has no page of its own.
nitpick_ignore = [("py:obj", "feature_importances_")]
