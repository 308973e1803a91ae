"""The questions as a whole: printed numbers, what is refused, data before work, what is recorded."""

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pac_wrap.errors import DataError, InputError
from pac_wrap.tails.bounds import interval
from pac_wrap_paper import studies as experiments
from pac_wrap_paper.data.registry import ENTRIES, Entry, RemoteFile
from pac_wrap_paper.data.store import VARIABLE
from pac_wrap_paper.studies import QUESTIONS, printed, record, reproduce
from pac_wrap_paper.studies.charts import Interval
from pac_wrap_paper.studies.printed import Q1, Q1_TRIALS, Q3_MEANS, Q3_TRIALS, count_behind
from pac_wrap_paper.studies.study import Spread, Study
from support.datafolder import empty_cache, small_file
from support.examples import examples

DETECTORS = ("isolation forest", "LOF")


@pytest.fixture(scope="module")
def paper() -> str:
    folder = os.environ.get(VARIABLE)
    path = Path(folder).parent / "paper.tex" if folder else None
    if path is None or not path.is_file():
        pytest.skip("no paper.tex lies beside the folder that PAC_WRAP_DATA names")
    return re.sub(r"(?<!\\)%.*", "", path.read_text(encoding="utf-8"))


def table_in(paper: str, label: str) -> str:
    """Return the table of the paper with this label."""
    before = paper[: paper.index(rf"\label{{{label}}}")]
    return before[before.rindex(r"\begin{tabular}") : before.rindex(r"\end{tabular}")]


def intervals_in(text: str) -> list[Interval]:
    return [Interval(float(low), float(high)) for low, high in re.findall(r"\[([\d.]+), ([\d.]+)\]", text)]


def line_in(table: str, name: str) -> str:
    (line,) = (line for line in table.splitlines() if line.strip().startswith(f"{name} "))
    return line


def numbers_in(table: str, name: str) -> tuple[float, ...]:
    return tuple(map(float, re.findall(r"\d+\.\d+", line_in(table, name))))


@pytest.mark.parametrize(
    ("data", "label"), [("synthetic", "tab: delta_synth"), ("thyroid", "tab: delta_real")]
)
def test_the_printed_violation_intervals_of_q1_stand_in_the_paper(paper: str, data: str, label: str) -> None:
    found = intervals_in(table_in(paper, label))
    assert len(found) == 12
    for place, detector in enumerate(DETECTORS):
        column = found[place::2]
        assert Q1[data, detector, "FPR"] == tuple(column[:3])
        assert Q1[data, detector, "FNR"] == tuple(column[3:])


@pytest.mark.parametrize(
    ("label", "expected"),
    [("tab: comp", printed.Q2), ("tab: comp_ts", printed.NASA), ("tab: comp_smd", printed.SMD)],
)
def test_the_printed_rates_of_wrapped_detectors_stand_in_the_paper(
    paper: str, label: str, expected: dict[str, tuple[float, ...]]
) -> None:
    table = table_in(paper, label)
    heads = re.findall(r"\\text\{(F[NP]R)\}_\{\\text\{(\w\w)\}\}|(ERR)|(epsilon)", table)
    assert ["_".join(filter(None, head)).replace("epsilon", "eps") for head in heads] == list(printed.COLUMNS)
    assert {name: numbers_in(table, name) for name in expected} == expected
    assert len(re.findall(r"^\S+ +& 0\.", table, flags=re.MULTILINE)) == len(expected)


def test_a_row_as_meant_has_four_rates_interchanged_and_the_others_as_printed() -> None:
    row = tuple(map(float, range(8)))
    assert list(printed.as_meant(row).values()) == [1.0, 0.0, 2.0, 3.0, 5.0, 4.0, 6.0, 7.0]
    assert list(printed.as_meant(row)) == list(printed.COLUMNS)


def test_the_printed_numbers_of_q3_stand_in_the_paper(paper: str) -> None:
    means, violations = table_in(paper, "tab_cp_epsilon"), table_in(paper, "tab_cp_delta")
    assert {name: numbers_in(means, name) for name in Q3_MEANS} == Q3_MEANS
    found = {name: tuple(intervals_in(line_in(violations, name))) for name in Q3_MEANS}
    assert found == printed.Q3_VIOLATIONS


def test_the_printed_numbers_of_trials_and_sizes_stand_in_the_paper(paper: str) -> None:
    assert f"{Q1_TRIALS} independent Monte Carlo trials on both synthetic" in paper
    assert f"perform {Q3_TRIALS} independent Monte Carlo trials" in paper
    assert ", ".join(rf"{share * 100:.0f}\%" for share in printed.SHARES[:2]) in paper
    assert "865 images in class 0 and 170 images in class 1" in paper


@cache
def rounded(count: int, trials: int) -> Interval:
    low, high = interval(count, trials)
    return Interval(round(low, 3), round(high, 3))


@pytest.mark.parametrize("trials", [Q3_TRIALS, Q1_TRIALS])
@settings(max_examples=examples(15))
@given(count=st.integers(0, 240))
def test_the_count_behind_an_interval_is_the_middle_of_all_that_give_it(trials: int, count: int) -> None:
    shown = rounded(count, trials)
    near = range(max(0, count - 20), min(trials, count + 20))
    same = [other for other in near if rounded(other, trials) == shown]
    assert count_behind(shown, trials) == (same[0] + same[-1]) / 2
    assert same[0] <= count <= same[-1] <= same[0] + 10


def every_printed_interval() -> Iterator[tuple[Interval, int]]:
    yield from ((one, Q1_TRIALS) for column in Q1.values() for one in column)
    yield from ((one, Q3_TRIALS) for pair in printed.Q3_VIOLATIONS.values() for one in pair)


def test_every_printed_interval_is_the_exact_one_of_some_count() -> None:
    for shown, trials in every_printed_interval():
        assert rounded(int(count_behind(shown, trials)), trials) == shown


def test_an_interval_of_no_count_has_the_nearest_one_behind_it() -> None:
    exact = rounded(50, 1000)
    wider = Interval(exact.low, round(exact.high + 0.001, 3))
    assert wider not in [rounded(count, 1000) for count in range(100)]
    assert abs(count_behind(wider, 1000) - 50) <= 1


def test_a_spread_is_the_mean_with_both_ends() -> None:
    assert Spread.over([0.4, 0.1, 0.1]) == Spread(0.2, 0.1, 0.4)
    assert Spread.over([0.3]) == Spread(0.3, 0.3, 0.3)


@pytest.mark.parametrize(
    ("name", "hint"), [("q9", ""), ("shfit", "; did you mean shift?"), ("", ""), ("all", "")]
)
def test_an_unknown_question_lists_the_known_ones(name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        reproduce(name)
    known = str(caught.value)
    assert known.startswith(f"there is no question {name!r}; the questions are {', '.join(QUESTIONS)}")
    assert {"q1", "q2", "q3", "q4", "shift"} <= set(QUESTIONS)
    assert known.endswith(hint)
    assert ("did you mean" in known) == bool(hint)


@pytest.mark.parametrize(("option", "value"), [("trials", 0), ("trials", -1), ("trials", 2.5), ("seed", -1)])
def test_a_number_that_cannot_be_is_refused_before_any_work(
    option: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = watch(monkeypatch, "q4")
    with pytest.raises(InputError, match=rf"^{option} must be .*, got {value}"):
        reproduce("q4", **{option: value})
    assert ran == []


def watch(monkeypatch: pytest.MonkeyPatch, question: str) -> list[dict[str, Any]]:
    """Replace the work on a question by a note of what it was asked for."""
    asked: list[dict[str, Any]] = []

    def run(**options: Any) -> Study:
        asked.append(options)
        return Study(question, "", (), (), (), ())

    monkeypatch.setattr(experiments.module_of(question), "run", run)
    return asked


@pytest.mark.parametrize("question", QUESTIONS)
def test_all_files_of_a_question_are_fetched_and_then_it_runs(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, fetched = watch(monkeypatch, question), list[str]()

    def fetch(file: RemoteFile) -> None:
        assert asked == []
        fetched.append(file.name)

    monkeypatch.setattr(experiments, "fetch", fetch)
    assert reproduce(question, seed=3, quick=True).question == question
    assert fetched == [file.name for name in QUESTIONS[question] for file in ENTRIES[name].files]
    assert [(options["seed"], options["quick"], "trials" in options) for options in asked] == [
        (3, True, False)
    ]


def test_the_number_of_trials_reaches_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = watch(monkeypatch, "shift")
    reproduce("shift", trials=7)
    assert (asked[0]["seed"], asked[0]["quick"], asked[0]["trials"]) == (0, False, 7)


@pytest.mark.parametrize("question", ["q1", "q2", "q3"])
def test_without_its_last_data_set_and_a_network_a_question_does_not_start(
    question: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pooch")
    cache = empty_cache(tmp_path, monkeypatch)
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv(VARIABLE, str(own))
    here, missing = small_file("http://127.0.0.1:9/here.csv"), small_file()
    (own / "here.csv").write_bytes(b"a,class\n1,0\n2,1\n")
    *others, last = QUESTIONS[question]
    files = {**dict.fromkeys(others, here), last: missing}
    entries = {name: Entry((file,), 2, 1, 1, "", "none", "") for name, file in files.items()}
    monkeypatch.setattr(experiments, "ENTRIES", entries)
    ran = watch(monkeypatch, question)
    with pytest.raises(
        DataError, match=r"^cannot download http://127\.0\.0\.1:9/small\.csv: the server cannot"
    ):
        reproduce(question)
    assert ran == []
    assert not list(cache.rglob("small.csv"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_record_names_the_command_the_versions_and_the_hashes(question: str) -> None:
    made = record(question, seed=4, trials=9, quick=True)
    assert made["command"] == f"pac-wrap reproduce {question} --seed 4 --trials 9 --quick"
    assert record(question)["command"] == f"pac-wrap reproduce {question} --seed 0"
    files = [file for name in QUESTIONS[question] for file in ENTRIES[name].files]
    assert made["data"] == {file.name: file.sha256 for file in files}
    versions = made["versions"]
    assert isinstance(versions, dict)
    assert {"pac-wrap-ad", "python", "numpy", "scipy", "scikit-learn"} <= set(versions)
    assert all(re.match(r"\d+\.\d+", version) for version in versions.values())


@pytest.mark.parametrize("question", ["q4", "shift"])
def test_one_trial_and_another_seed_still_give_whole_sentences(question: str) -> None:
    study = reproduce(question, seed=7, trials=1, quick=True)
    assert study.findings
    for sentence in (*study.setting, *study.findings):
        assert sentence.endswith("."), sentence
        assert not re.search(r"\b(nan|inf|None)\b", sentence), sentence
