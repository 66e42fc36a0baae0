"""Sphinx's settings for the site, whose sources `tools/site` puts together."""

project = "Stator"
author = copyright = "The Stator authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# The tables of the builtin types stand below nothing but the title.
suppress_warnings = ["myst.header"]

html_theme = "furo"
html_title = "Stator"
# The sources of a page are the project's, some of them put together.
html_copy_source = False
html_show_sourcelink = False

# Links to headings, as GitHub has them.
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
maximum_signature_line_length = 80
