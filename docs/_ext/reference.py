"""The reference: the help of every command, and links from names in the pages to their documentation."""

import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.testing import CliRunner

from inventories import FOREIGN
from pac_wrap import __all__ as names
from pac_wrap.cli.commands import app as command_line

WIDTH = "92"
MODULES = (
    "pac_wrap.series",
    "pac_wrap.scoring",
    "pac_wrap.tails",
    "pac_wrap.validation",
    "pac_wrap_paper.baselines",
    "pac_wrap_paper.detectors",
)
PUBLIC = {name: f"pac_wrap.{name}" for name in names if name != "__version__"}
PUBLIC |= {
    f"{module}.{name}": f"{module}.{name}" for module in MODULES for name in import_module(module).__all__
}
# results are known by their own names, wherever they live
PUBLIC |= {
    name: f"pac_wrap.{module}.{name}"
    for module, name in re.findall(
        r"^   ((?:method|detectors|errors|tails)(?:\.[a-z_\d]+)*)\.(\w+)$",
        (Path(__file__).parents[1] / "api.md").read_text("utf-8"),
        re.M,
    )
}

KNOWN = PUBLIC | FOREIGN


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


class Commands(SphinxDirective):
    """A section for each command, with what its `--help` prints."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        os.environ |= {"COLUMNS": WIDTH, "NO_COLOR": "1", "TERM": "dumb"}
        sections: list[nodes.Node] = []
        for path in commands(typer.main.get_command(command_line)):
            told = CliRunner().invoke(
                command_line, [*path, "--help"], prog_name="pac-wrap", catch_exceptions=False
            )
            text = "\n".join(line.rstrip() for line in told.stdout.splitlines()).strip("\n")
            section = nodes.section(ids=["-".join(("pac-wrap", *path))], names=[])
            section += nodes.title("", " ".join(("pac-wrap", *path)))
            section += nodes.literal_block(text, text, language="text")
            sections.append(section)
        return sections


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Make a public name that stands in a page as code a link to its documentation."""
    for literal in list(doctree.findall(nodes.literal)):
        name = re.sub(r"\(.*\)$|^pac_wrap\.(?=\w+$)", "", literal.astext())
        if name in KNOWN and not isinstance(
            literal.parent, (nodes.reference, addnodes.pending_xref, nodes.title)
        ):
            target = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=KNOWN[name], refdoc=app.env.docname
            )
            literal.replace_self(target)
            target += literal


def classes_like_functions() -> set[str]:
    """Return the public names that another one differs from only in case, with a capital first."""
    lower = {name for name in PUBLIC.values() if name.lower() == name}
    return {name for name in PUBLIC.values() if name not in lower and name.lower() in lower}


def skip(app: Sphinx, what: str, name: str, member: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn adds to an estimator: it is documented there."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn.") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Add both to the application."""
    app.add_directive("commands", Commands)
    app.connect("doctree-read", link_names)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
