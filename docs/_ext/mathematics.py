"""Mathematics without the network, and links to what has a number on the page on theory."""

import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

THEORY = "theory"
# an equation: "eq. (7)", "eqs. (7) to (11)" anywhere, "(7)" on the page itself; a theorem by its name
EQUATION, BARE = (
    re.compile(r"(?<=[Ee]q\. )\((\d+)\)|(?<=[Ee]qs\. )\((\d+)\)|(?<=\) to )\((\d+)\)"),
    re.compile(r"(?<![\w)])\((\d+)\)"),
)
THEOREM = re.compile(r"(?:Theorem|Lemma) (\d+|A)\b")
APART = (
    nodes.reference,
    nodes.literal,
    nodes.literal_block,
    nodes.math,
    nodes.math_block,
    nodes.title,
    nodes.strong,
)


def number(app: Sphinx, doctree: nodes.document) -> None:
    """Give an equation with a tag, and a theorem, an address of its own."""
    for block in doctree.findall(nodes.math_block):
        for tag in re.findall(r"\\tag\{(\d+)\}", block.astext()):
            block["ids"].append(f"eq-{tag}")
        # as it stands: Sphinx would put lines into an environment of its own, in which no tag may stand
        block["no-wrap"] = True
        text = nodes.Text(rf"\[{block.astext()}\]")
        block.clear()
        block += text
    if app.env.docname == THEORY:
        for strong in doctree.findall(nodes.strong):
            if found := THEOREM.match(strong.astext()):
                strong["ids"].append(f"theorem-{found[1].lower()}")


def link(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Make what is cited by its number a link."""
    text = app.env.doc2path(THEORY).read_text(encoding="utf-8")
    known = {f"eq-{n}" for n in re.findall(r"\\tag\{(\d+)\}", text)}
    known |= {
        f"theorem-{n.lower()}"
        for n in re.findall(r"^\*\*(?:Theorem|Lemma) (\d+|A)\b", text, flags=re.MULTILINE)
    }
    page = "" if name == THEORY else app.builder.get_relative_uri(name, THEORY)
    equation = BARE if name == THEORY else EQUATION
    for node in list(doctree.findall(nodes.Text)):
        if any(isinstance(parent, APART) for parent in _above(node)):
            continue
        parts: list[nodes.Node] = []
        at, said = 0, node.astext()
        for found in sorted([*equation.finditer(said), *THEOREM.finditer(said)], key=lambda one: one.start()):
            kind = "theorem" if found.re is THEOREM else "eq"
            target = f"{kind}-{next(filter(None, found.groups())).lower()}"
            if target in known:
                parts += [
                    nodes.Text(said[at : found.start()]),
                    nodes.reference("", found[0], refuri=f"{page}#{target}", internal=True),
                ]
                at = found.end()
        if parts:
            node.parent.replace(node, [*parts, nodes.Text(said[at:])])


def _above(node: nodes.Node) -> list[nodes.Node]:
    above = []
    while (node := node.parent) is not None:
        above.append(node)
    return above


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy what a page needs of the packaged MathJax, a twentieth of it."""
    spec = find_spec("sphinx-mathjax-offline")
    if error is None and app.builder.format == "html" and spec is not None and spec.origin is not None:
        source, target = Path(spec.origin).parent / "static" / "mathjax", app.outdir / "_static" / "mathjax"
        fonts = Path("output", "chtml", "fonts", "woff-v2")
        shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
        shutil.copy(source / "tex-chtml.js", target)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add it all to the application."""
    app.connect("doctree-read", number)
    app.connect("doctree-resolved", link)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
