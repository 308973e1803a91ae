"""Imports run in one direction, folder by folder, and the house stays as small as it was planned."""

from pathlib import Path

import pytest

from pac_wrap.base.arguments import check_rate
from support.house import (
    ADDRESS,
    AIMS,
    EXCEPTIONS,
    MAIN,
    ORDER,
    PLACE,
    ROOT,
    files,
    folder_of,
    imported,
    longest_chain,
    measured,
    module_of,
    most_checked,
    table_of,
    traced,
    walked,
    with_map,
    wrong_ways,
)


def test_every_folder_has_its_place() -> None:
    assert {folder_of(module_of(path)) for path in files()} == {*PLACE, ADDRESS, MAIN}


def test_there_is_something_to_check() -> None:
    assert imported(ROOT / "method/certificate.py") >= {"base.codec", "version"}
    assert imported(ROOT / "base/text.py") == set()


def test_a_folder_imports_only_the_folders_above_it() -> None:
    assert wrong_ways() == []
    assert len(ORDER) <= 14


@pytest.mark.parametrize(
    ("statement", "reached"),
    [
        ("import pac_wrap.base.codec", {"base.codec"}),
        ("import pac_wrap", {ADDRESS}),
        ("from pac_wrap.base.codec import decode, encode", {"base.codec"}),
        ("from pac_wrap.base import codec", {"base.codec"}),
        ("from pac_wrap import PACWrap, __version__", {"detectors.estimator", "version"}),
        ("from .base import codec", {"base.codec"}),
        ("from .base.codec import decode", {"base.codec"}),
        ("def late():\n    from pac_wrap.base import codec", {"base.codec"}),
        ("if TYPE_CHECKING:\n    from pac_wrap.base import codec", {"base.codec"}),
        ("import numpy.typing, pac_wrapper", set()),
    ],
)
def test_every_form_of_import_is_seen(tmp_path: Path, statement: str, reached: set[str]) -> None:
    for name in (f"{ADDRESS}.py", "base/codec.py", "version.py", "detectors/estimator.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"))
    (tmp_path / "module.py").write_text(statement)
    assert imported(tmp_path / "module.py", tmp_path) == reached


def test_a_chain_passes_over_imports_for_types(tmp_path: Path) -> None:
    (tmp_path / f"{ADDRESS}.py").write_text("")
    (tmp_path / "one.py").write_text("if TYPE_CHECKING:\n    from pac_wrap import two\n")
    (tmp_path / "two.py").write_text("from pac_wrap import one, three\n")
    (tmp_path / "three.py").write_text("")
    assert imported(tmp_path / "one.py", tmp_path) == {"two"}
    assert imported(tmp_path / "one.py", tmp_path, types=False) == set()
    assert len(longest_chain(tmp_path)) == 2


def test_a_wrong_way_is_found(tmp_path: Path) -> None:
    (tmp_path / f"{ADDRESS}.py").write_text("")
    for folder in ("ranks", "method"):
        (tmp_path / folder).mkdir()
    (tmp_path / "ranks/passes.py").write_text("from ..method import promise\nfrom . import other\n")
    (tmp_path / "ranks/other.py").write_text("")
    (tmp_path / "method/promise.py").write_text("from pac_wrap.ranks.passes import name\n")
    assert wrong_ways(tmp_path) == [("ranks.passes", "method.promise")]


def test_the_map_of_the_house_is_drawn_from_the_folders() -> None:
    page = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert with_map(page) == page, "run make house HOUSE_ARGS=--write"


def test_the_house_stays_within_its_aims() -> None:
    found = measured()
    print(*table_of(found), sep="\n")
    over = {name: number for name, number in found.items() if number > AIMS[name].ceiling}
    assert not over, f"larger than before (docs/decisions/0012-layout.md): {over}"
    assert AIMS.keys() == found.keys()


def test_no_ceiling_is_below_its_budget() -> None:
    """Where the budget is reached it is the ceiling, and stays it."""
    assert all(budget is None or budget <= ceiling for budget, ceiling in AIMS.values())


def test_calls_and_checks_are_counted() -> None:
    steps = traced(lambda: check_rate("a", 0.25) + check_rate("b", 0.25) + check_rate("c", 0.5))
    assert walked(steps) == ["base/arguments.py"]
    assert most_checked(steps) == 2
    assert [step.function for step in steps].count("check_rate") == 3


def test_every_exception_from_the_order_is_still_made() -> None:
    made = {(module_of(path), other) for path in files() for other in imported(path)}
    assert set(EXCEPTIONS) <= made
