"""Pages that live outside docs/ are included by a page of the site: links to one lead to the other."""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
# a file of the repository, and the page of the site that includes it
PAGES = {
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(\]\()([^)#\s]+)(?=[)#])")


def led(text: str, folder: Path, page: Path) -> str:
    """Return the text with its local links, relative to a folder, as the page needs them."""

    def target(found: re.Match[str]) -> str:
        if ":" in found[2]:
            return found[0]
        file = os.path.relpath(folder / found[2], ROOT)
        file = os.path.join("docs", PAGES[file]) if file in PAGES else file
        return found[1] + os.path.relpath(ROOT / file, page.parent)

    return LINK.sub(target, text)


def read(app: Sphinx, name: str, source: list[str]) -> None:
    """Lead the links of a page."""
    page = Path(app.env.doc2path(name))
    if page.suffix == ".md":
        source[0] = led(source[0], page.parent, page)


def included(app: Sphinx, path: Path, parent: str, source: list[str]) -> None:
    """Lead the links of a file that a page includes."""
    source[0] = led(source[0], (app.srcdir / path).resolve().parent, Path(app.env.doc2path(parent)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Add both to the application."""
    app.connect("source-read", read)
    app.connect("include-read", included)
    return {"parallel_read_safe": True}
