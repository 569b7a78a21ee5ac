"""How Sphinx builds the site from these pages: `make docs`. Nothing is fetched from a network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs" / "_ext")]

import matplotlib  # noqa: E402  the path has to be set first

matplotlib.use("Agg")

from sphinx_gallery.sorting import FileNameSortKey  # noqa: E402

from trimlearn import __version__  # noqa: E402

repository = "https://github.com/trimlearn/trimlearn"  # also in pyproject.toml, project.urls

project = "trimlearn"
author = "trimlearn authors"
copyright = "trimlearn authors, BSD-3-Clause"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api_pages",
    "plain_docstrings",
    "source_pages",
]
exclude_patterns = ["_ext", "_pictures", "_templates"]
templates_path = ["_templates"]
default_role = "py:obj"  # `solve` in a docstring is a link to it
toc_object_entries_show_parents = "hide"  # fit(), not TrimmedPCA.fit()
highlight_language = "text"  # the formulas are indented blocks; code says that it is Python
suppress_warnings = ["config.cache"]  # sphinx_gallery_conf holds a class, which Sphinx cannot keep between builds

# -- pages -------------------------------------------------------------------------------------------------------------

myst_heading_anchors = 4  # links to headings as GitHub has them
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": {"url": "source/{{path}}#{{fragment}}"}}
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]

# -- the reference -----------------------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_filename_map = {"trimlearn.Check": "trimlearn.check.Check"}  # beside check, where case does not count
autodoc_typehints = "none"  # the docstrings say the types, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them, methods with their own docstrings
numpydoc_xref_param_type = False

# -- the gallery -------------------------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": FileNameSortKey,
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("trimlearn",),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),  # tables, but not the Axes that the last line returns
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 5,
    "write_computation_times": False,  # that page would fetch scripts from elsewhere
    "matplotlib_animations": False,
    "thumbnail_size": (480, 336),
}

# -- how it looks ------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "trimlearn"
html_static_path = ["_static"]
html_css_files = ["trimlearn.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "trimlearn", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "github_url": repository,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "which_estimator": [], "comparison": [], "gallery/*": []}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """Where the source of a public name is on this site; pages of the reference lie one folder down."""
    from source_pages import page_of_object

    page = page_of_object(info["module"], info["fullname"]) if domain == "py" else None
    return f"../{page}" if page else None
