"""The page about the paper's experiments: built from committed results, which a run today gives again."""

import csv
import json
import re
from io import StringIO
from pathlib import Path

import pytest

from pac_wrap.method.promise import Guarantee
from pac_wrap.validation import exact_violation
from pac_wrap_paper.rendering import csv_text
from pac_wrap_paper.studies import QUESTIONS, reproduce, shift
from pac_wrap_paper.studies.printed import Q1
from pac_wrap_paper.studies.q1 import LEVEL
from pac_wrap_paper.studies.scored import thyroid_population
from support.datafolder import needs

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "results"
# other versions of NumPy or scikit-learn may move a score across a threshold, but not many
CLOSE = 0.01


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(text)))


def committed(name: str) -> list[dict[str, str]]:
    return read((RESULTS / name).read_text(encoding="utf-8"))


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) is not None


def test_the_pages_are_what_the_results_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "reproduction")
    from build import ADBENCH, PAGE, README, SERIES, build_adbench, build_page, with_adbench, with_units

    remedy = "run docs/reproduction/build.py"
    assert PAGE.read_text(encoding="utf-8") == build_page(RESULTS), remedy
    assert ADBENCH.read_text(encoding="utf-8") == build_adbench(RESULTS), remedy
    text = README.read_text(encoding="utf-8")
    assert text == with_adbench(text, RESULTS), remedy
    guide = SERIES.read_text(encoding="utf-8")
    assert guide == with_units(guide, RESULTS), remedy


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_there_with_its_record(question: str) -> None:
    made = json.loads((RESULTS / f"{question}.json").read_text(encoding="utf-8"))
    assert made["command"] == f"pac-wrap reproduce {question} --seed 0"
    assert set(made["versions"]) >= {"pac-wrap-ad", "python", "numpy", "scipy", "scikit-learn"}
    page = (RESULTS / f"{question}.md").read_text(encoding="utf-8")
    for picture in re.findall(r"\]\(([\w.-]+\.svg)\)", page):
        assert (RESULTS / picture).stat().st_size > 0
    assert list(RESULTS.glob(f"{question}-*.csv"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "data"), [("q3", ("usps", "mnist")), ("q4", ()), ("shift", ())], ids=["q3", "q4", "shift"]
)
def test_a_full_run_gives_the_committed_rows_again(
    question: str, data: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(*data)
    # the other shifts are computed in the same way, each from a million scores
    monkeypatch.setattr(shift, "GAMMAS", shift.GAMMAS[:2])
    for table in reproduce(question).tables:
        found, kept = read(csv_text(table)), committed(f"{question}-{table.name}.csv")
        if question == "shift":
            kept = [row for row in kept if float(row["gamma"]) <= shift.GAMMAS[-1]]
        assert len(found) == len(kept) > 0
        for row, old in zip(found, kept, strict=True):
            assert list(row) == list(old)
            for head, value in row.items():
                if is_number(value):
                    of = float(row[f"{head.removesuffix(' count')} n"]) if head.endswith(" count") else 1.0
                    assert float(value) == pytest.approx(float(old[head]), abs=CLOSE * of, rel=0.05), head
                else:
                    assert value == old[head], head


@pytest.mark.slow
def test_the_committed_rows_of_thyroid_follow_from_the_data() -> None:
    needs("thyroid")
    rows = [row for row in committed("q1-violations.csv") if row["data"] == "thyroid"]
    assert len(rows) == len([key for key in Q1 if key[0] == "thyroid"]) * 3
    for row in rows:
        population = thyroid_population(row["detector"], seed=0)
        n = int(row["n"])
        sizes = (n, n)
        exact = exact_violation(population.normal, population.anomalous, sizes, Guarantee(LEVEL, LEVEL))
        assert float(row["exact"]) == pytest.approx(getattr(exact, row["rate"].lower()), abs=0.002)
        assert float(row["simulated low"]) < LEVEL
