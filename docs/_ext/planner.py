"""The planner's script and style: made when the site is built, and on no other page."""

import json
from typing import Any

from sphinx.application import Sphinx

import planner_page


def made(app: Sphinx) -> None:
    """Write them to where the site keeps its scripts and styles."""
    if app.builder.format == "html":
        found = json.loads(planner_page.COSTS.read_text(encoding="utf-8"))
        planner_page.write_files(app.outdir / "_static", found)


def added(app: Sphinx, page: str, *_: object) -> None:
    """Add them to a page that is about to be written."""
    if page == "planner":
        app.add_css_file("planner.css")
        app.add_js_file("planner.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add both to the application."""
    app.connect("builder-inited", made)
    app.connect("html-page-context", added)
    return {"parallel_read_safe": True}
