"""Links to other documentation that need no network: the names we use, and where each is explained."""

import zlib
from pathlib import Path

PYTHON, NUMPY = "https://docs.python.org/3/", "https://numpy.org/doc/stable/"
SCIPY, SKLEARN = "https://docs.scipy.org/doc/scipy/", "https://scikit-learn.org/stable/"
TYPES = "library/stdtypes.html#"
ENTRIES = {
    "python": (
        PYTHON,
        {
            **{
                f"{name} py:class": f"{TYPES}{name}"
                for name in ("str", "tuple", "list", "dict", "set", "bytes")
            },
            **{
                f"{name} py:class": f"library/functions.html#{name}"
                for name in ("int", "float", "bool", "object")
            },
            **{
                f"{name} std:term": f"glossary.html#term-{name}"
                for name in ("sequence", "iterable", "generator")
            },
            "callable py:function": "library/functions.html#callable",
            "bltin-boolean-values std:label": f"{TYPES}boolean-type-bool",
            **{f"{name} py:data": f"library/constants.html#{name}" for name in ("None", "True", "False")},
        },
    ),
    "numpy": (
        NUMPY,
        {
            "array_like std:term": "glossary.html#term-array_like",
            **{
                f"numpy.{name} py:class": f"reference/{page}.html#numpy.{name}"
                for name, page in {
                    "ndarray": "generated/numpy.ndarray",
                    "random.Generator": "random/generator",
                    "random.RandomState": "random/legacy",
                }.items()
            },
        },
    ),
    "scipy": (SCIPY, {"scipy.special py:module": "reference/special.html"}),
    "sklearn": (
        SKLEARN,
        {
            f"sklearn.{name} py:class": f"modules/generated/sklearn.{name}.html"
            for name in (
                "base.BaseEstimator",
                "ensemble.IsolationForest",
                "frozen.FrozenEstimator",
                "model_selection.GridSearchCV",
                "model_selection.StratifiedKFold",
                "pipeline.make_pipeline",
            )
        },
    ),
}
# what a page calls by its last name alone
FOREIGN = {entry.split()[0].rpartition(".")[2]: entry.split()[0] for entry in ENTRIES["sklearn"][1]}


def write(folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory of each project, and return what intersphinx takes."""
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for project, (address, entries) in ENTRIES.items():
        file = folder / f"{project}.inv"
        lines = "".join(f"{entry} 1 {page} -\n" for entry, page in entries.items())
        head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
        rest = "# The remainder of this file is compressed using zlib.\n"
        file.write_bytes((head + rest).encode() + zlib.compress(lines.encode()))
        mapping[project] = (address, str(file))
    return mapping
