"""The tree drawn in errors.py is the real one, and texts reach the user whole."""

import builtins
import pkgutil
import re
from contextlib import suppress
from importlib import import_module
from types import ModuleType

import pytest
from sklearn.exceptions import NotFittedError

import pac_wrap
from pac_wrap import errors
from pac_wrap.detectors.scores import UnfittedError
from pac_wrap.errors import PACWrapError, PACWrapWarning

LINE = re.compile(r"^(?P<branch>[├└]── )?(?P<name>\w+)\s*(?:\((?P<note>[^)]*)\))?")


def drawn() -> dict[str, tuple[str | None, str | None]]:
    """Return parent and note of every name in the tree of the docstring."""
    tree: dict[str, tuple[str | None, str | None]] = {}
    root = None
    for line in (errors.__doc__ or "").splitlines()[1:]:
        if match := LINE.match(line):
            if match["branch"] is None:
                root = match["name"]
            tree[match["name"]] = (root if match["branch"] else None, match["note"])
    return tree


def kind_of(name: str) -> type[Exception]:
    """Return the error or warning of this name; one of them needs scikit-learn, and lives beside it."""
    found: type[Exception] = UnfittedError if name == "UnfittedError" else getattr(errors, name)
    return found


def modules() -> list[ModuleType]:
    found = []
    for module in pkgutil.walk_packages(pac_wrap.__path__, "pac_wrap."):
        if not module.name.endswith("__main__"):
            # a module may need a package that is optional and not there
            with suppress(ImportError):
                found.append(import_module(module.name))
    return found


def descendants(kind: type) -> set[type]:
    children: list[type] = kind.__subclasses__()
    return {kind}.union(*(descendants(child) for child in children))


def test_the_tree_can_be_read() -> None:
    assert drawn()["InputError"] == ("PACWrapError", "ValueError")
    assert drawn()["PACWrapWarning"] == (None, "UserWarning")
    assert drawn()["OverlapWarning"] == ("PACWrapWarning", None)


def test_every_drawn_name_has_the_drawn_parents_and_no_others() -> None:
    for name, (parent, note) in drawn().items():
        kind = kind_of(name)
        bases = set(kind.__bases__)
        expected: set[type] = set() if parent is None else {getattr(errors, parent)}
        if note is not None and note.startswith("also scikit-learn's NotFittedError"):
            expected.add(NotFittedError)
        elif note is not None:
            expected.add(getattr(builtins, note))
        assert bases == (expected or {Exception}), name


def test_nothing_undrawn_grew_on_the_tree() -> None:
    assert {"pac_wrap.errors", "pac_wrap.detectors.scores"} <= {module.__name__ for module in modules()}
    grown = descendants(PACWrapError) | descendants(PACWrapWarning)
    ours = {kind.__name__ for kind in grown if kind.__module__.startswith("pac_wrap")}
    assert ours == set(drawn())


@pytest.mark.parametrize("name", drawn())
def test_texts_and_docstrings_are_kept(name: str) -> None:
    kind = kind_of(name)
    assert str(kind("what, why, what to do")) == "what, why, what to do"
    assert kind.__doc__


def test_an_unfitted_error_is_caught_under_each_of_its_names() -> None:
    for kind in (UnfittedError, PACWrapError, NotFittedError, ValueError, AttributeError):
        with pytest.raises(kind):
            raise UnfittedError("not yet")
