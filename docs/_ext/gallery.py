"""The example notebooks: which of them are run with the site, and a picture of each on their page."""

import ast
import base64
import hashlib
import sys
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from run_examples import missing

DOCS = Path(__file__).parents[1]
NOTEBOOKS = {
    path.relative_to(DOCS).with_suffix("").as_posix(): nbformat.read(path, as_version=4)
    for path in sorted((DOCS / "examples").glob("*.ipynb"))
}
# those that cannot be run on this machine, and why
LEFT = {name: "; ".join(reasons) for name, notebook in NOTEBOOKS.items() if (reasons := missing(notebook))}


def cache_folder() -> Path:
    """Return the folder of saved outputs; its name changes with the package's code, not its docstrings."""
    digest = hashlib.sha256()
    for path in sorted((DOCS.parent / "src").rglob("*")):
        if path.suffix == ".py":
            digest.update(_code(path).encode())
        elif path.suffix in (".c", ".js", ".css", ".html"):
            digest.update(path.read_bytes())
    return DOCS / "_build" / ".cache" / digest.hexdigest()[:16]


def _code(path: Path) -> str:
    """Return the code of a file, without its comments and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body[0] = ast.Pass()
    return ast.dump(tree)


def spread(app: Sphinx, env: Any, names: list[str]) -> None:
    """Spread the notebooks among the other pages: pages are read in blocks, and a block by one process."""
    notebooks = [name for name in names if name in NOTEBOOKS]
    others = [name for name in names if name not in NOTEBOOKS]
    for place, name in enumerate(notebooks):
        others.insert(place * len(names) // len(notebooks), name)
    names[:] = others


class Gallery(SphinxDirective):
    """A list of notebooks, each with its last picture and its title."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the list, and a hidden tree of contents."""
        folder = DOCS / "_build" / "thumbnails"
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["```{toctree}", ":hidden:", "", *self.content, "```", ""]
        for name in self.content:
            cells = NOTEBOOKS[name].cells
            outputs = [output for cell in cells for output in cell.get("outputs", []) if "data" in output]
            picture = [output.data["image/png"] for output in outputs if "image/png" in output.data][-1]
            file = folder / f"{Path(name).name}.png"
            file.write_bytes(base64.b64decode(picture))
            title = cells[0].source.splitlines()[0].removeprefix("# ")
            lines.append(f"- [![](/_build/thumbnails/{file.name}) {title}]({name}.ipynb)")
        found: list[nodes.Node] = self.parse_text_to_nodes("\n".join(lines))
        for node in found:
            if isinstance(node, nodes.bullet_list):
                node["classes"].append("gallery")
        return found


def say(app: Sphinx) -> None:
    """Log which notebooks show their saved outputs, and why."""
    for reason in sorted(set(LEFT.values())):
        names = ", ".join(Path(name).name for name in LEFT if LEFT[name] == reason)
        sys.stdout.write(f"not run, but shown with the outputs kept in them, since {reason}: {names}\n")


def note(app: Sphinx, doctree: nodes.document) -> None:
    """Add a note to the page of a notebook that shows saved outputs."""
    if (name := app.env.docname) in LEFT:
        text = f"This page shows the outputs kept with the notebook; it was not run here, since {LEFT[name]}."
        title = next(iter(doctree.findall(nodes.title)))
        title.parent.insert(1, nodes.note("", nodes.paragraph("", text)))


def setup(app: Sphinx) -> dict[str, Any]:
    """Add it all to the application."""
    app.add_directive("gallery", Gallery)
    app.connect("builder-inited", say)
    app.connect("env-before-read-docs", spread)
    app.connect("doctree-read", note)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
