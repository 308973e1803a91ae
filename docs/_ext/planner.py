"""The planner's script and style, on its own page and on no other."""

from typing import Any

from sphinx.application import Sphinx


def added(app: Sphinx, page: str, *_: object) -> None:
    """Add them to a page that is about to be written."""
    if page == "planner":
        app.add_css_file("planner.css")
        app.add_js_file("planner.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add it to the application."""
    app.connect("html-page-context", added)
    return {"parallel_read_safe": True}
