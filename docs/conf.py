"""How Sphinx builds the site: `make docs` runs it, and every warning is an error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from pac_wrap import __version__

project = "PAC-Wrap"
author = "The PAC-Wrap authors"
version = release = __version__
extensions = ["myst_nb", "sphinx_copybutton", "elsewhere", "planner"]
exclude_patterns = ["_build", "reproduction/introduction.md", "reliability/introduction.md"]
nitpicky = True

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = "off"

html_theme = "furo"
html_title = "PAC-Wrap"
html_static_path = ["_static"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
