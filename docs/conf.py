"""How Sphinx builds the site: `make docs` runs it, and every warning is an error."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
sys.path.insert(0, str(Path(__file__).parent / "examples"))
sys.path.insert(0, str(Path(__file__).parent / "planner"))

import gallery
import inventories
from pac_wrap import __version__
from reference import PUBLIC, classes_like_functions

project = "PAC-Wrap"
author = "The PAC-Wrap authors"
version = release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "elsewhere",
    "gallery",
    "mathematics",
    "planner",
    "reference",
]
exclude_patterns = [
    "_build",
    "reproduction/introduction.md",
    "reproduction/adbench.md",
    "reliability/introduction.md",
]
templates_path = ["_templates"]
nitpicky = True
# a name in a docstring is a link if it is public, and code if not
default_role = "py:obj"
nitpick_ignore_regex = [("py:.*", ".*")]

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
# notebooks are run if what they need is here, and again if they or the package change
nb_execution_mode = "cache"
nb_execution_cache_path = str(gallery.cache_folder())
nb_execution_excludepatterns = [f"{name}.ipynb" for name in gallery.LEFT]
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 900
# how a stream was cut into pieces differs from run to run
nb_merge_streams = True

autosummary_generate = ["api.md"]
# the names of a class and of a function that differ only in case are one file on some systems
autosummary_filename_map = {name: f"{name}-class" for name in classes_like_functions()}
autodoc_default_options = {"member-order": "bysource", "inherited-members": "BaseException, Enum, int, str"}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {name: address for name, address in PUBLIC.items() if "." not in name}

intersphinx_mapping = inventories.write(Path(__file__).parent / "_build" / "inventories")
mathjax_path = "mathjax/tex-chtml.js"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "PAC-Wrap"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
