"""How the documentation is built; `make docs` runs it with warnings as errors."""

import os
import warnings

from hardwood import __version__

os.environ["MPLBACKEND"] = "Agg"
# The gallery's figures have no window to be shown in.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

project = "hardwood"
release = __version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_theme = "pydata_sphinx_theme"
html_title = "hardwood"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_show_sourcelink = False
exclude_patterns = ["templates", "auto_examples/**/*.ipynb", "auto_examples/**/*.json"]
templates_path = ["templates"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "backreferences_dir": "backreferences",
    "doc_module": ("hardwood",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
}

# One page a name; types stand in the docstrings, where they say shapes and ranges too.
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# A property of a shared base class, which has no page of its own.
nitpick_ignore = [("py:obj", "feature_importances_")]
