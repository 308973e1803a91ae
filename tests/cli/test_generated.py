"""Generated tables: a command succeeds, rightly, or refuses in one sentence."""

import csv
import json
import re
import tempfile
import warnings
from collections.abc import Sequence
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pac_wrap import Certificate, UpsideDownWarning
from support.examples import examples
from support.shell import CERTIFICATE, Done, invoke, nothing_left, one_sentence

RULE = Certificate.load(CERTIFICATE)
Table = dict[str, list[Any]]

numbers = st.sampled_from([0.46, 1.935, 1.9350000000000003, 0.0, -0.0, 1e300, 5e-324]) | st.floats(
    allow_nan=False, allow_infinity=False
)
text = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=6)
names = st.sampled_from(["score", "label", "id", "Score", "verdict", "x y", "<b>", 'q"', "a,b", "0"]) | text
cells = st.one_of(
    numbers,
    st.integers(-5, 5),
    st.integers(-(2**62), 2**62),
    st.sampled_from([nan, inf, -inf]),
    st.none(),
    st.booleans(),
    text,
    st.sampled_from(["0", "1", "1.5", "nan", "NULL", "true", "2024-01-01", "1e5", "attack"]),
)
kinds = st.sampled_from(["numbers", "whole", "scores", "binary", "truths", "words", "anything"])


def column(kind: str, size: int) -> st.SearchStrategy[list[Any]]:
    drawn = {
        "numbers": numbers,
        "whole": st.integers(-5, 5),
        "scores": numbers | st.sampled_from([inf, -inf]),
        "binary": st.sampled_from([0, 1]),
        "truths": st.booleans(),
        "words": st.sampled_from(["attack", "normal"]),
        "anything": cells,
    }[kind]
    return st.lists(drawn, min_size=size, max_size=size)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Draw a table that often, but not always, has usable columns called score and label."""
    size = draw(st.integers(0, 30))
    table = {name: draw(column(draw(kinds), size)) for name in draw(st.lists(names, max_size=3, unique=True))}
    if draw(st.booleans()):
        table["score"] = draw(column(draw(st.sampled_from(["numbers", "scores", "whole", "anything"])), size))
    if draw(st.booleans()):
        table["label"] = draw(column(draw(st.sampled_from(["binary", "truths", "words", "anything"])), size))
    return dict(draw(st.permutations(list(table.items()))))


def save(table: Table, suffix: str, folder: Path) -> Path:
    path = folder / f"table{suffix}"
    rows = list(zip(*table.values(), strict=True))
    if suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([list(table), *rows])
    elif suffix == ".jsonl":
        lines = [json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows]
        path.write_text("".join(lines), encoding="utf-8")
    elif suffix == ".npz":
        with path.open("wb") as archive:
            # its members are files of an archive, so not every text can be a name
            columns: Any = {name.strip("/\\.") or "_": np.array(values) for name, values in table.items()}
            np.savez(archive, **columns)
    else:
        pq.write_table(pa.table({name: typed(values) for name, values in table.items()}), path)
    return path


def typed(values: Sequence[Any]) -> Any:
    """Return an Arrow array: of the values if they have one type, else of their texts."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


def run(*arguments: object) -> Done:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        return invoke(*arguments)


def usable(values: Sequence[Any]) -> bool:
    """Return whether these are numbers throughout, so that no format can take them for anything else."""
    return all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    ) and not any(isnan(value) for value in values)


formats = st.sampled_from([".csv", ".jsonl", ".parquet", ".npz"])


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(tables(), formats, st.sampled_from([None, "attack", "1", "true", "-1"]))
@example({"score": [inf, 1.0], "label": [0, 1]}, ".csv", None)
@example({"score": [1.0, nan], "label": [0, 1]}, ".jsonl", None)
def test_calibrate_succeeds_or_refuses_in_one_sentence(
    table: Table, suffix: str, anomaly: str | None
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, saved = save(table, suffix, folder), folder / "certificate.json"
        options = [] if anomaly is None else [f"--anomaly-label={anomaly}"]
        done = run("calibrate", path, "--score", "score", "--label", "label", *options, "-o", saved)
        if done.code == 2:
            one_sentence(done.err)
            assert done.out == ""
            assert list(folder.iterdir()) == [path]
        else:
            certificate = Certificate.load(saved)
            assert done.code == (1 if certificate.empty else 0)
            counts = f"{certificate.fpr.n:,} normal, {certificate.fnr.n:,} anomalous"
            assert re.fullmatch(f"pac-wrap: [0-9,]+ rows?: {counts} -> {re.escape(str(saved))}\n", done.err)
            assert certificate.fpr.n + certificate.fnr.n == len(table["score"])
            if anomaly is None and set(table["label"]) <= {0, 1}:
                assert certificate.fnr.n == sum(table["label"])


@pytest.mark.slow
@settings(max_examples=examples(60))
@given(tables(), formats, st.sampled_from([".csv", ".jsonl", ".parquet"]))
@example({"score": [inf, 1.0]}, ".csv", ".parquet")
@example({"score": [0.25, nan, 1.0, 3.0]}, ".parquet", ".csv")
@example({"score": [1.0], "Score": [2.0]}, ".parquet", ".parquet")
@example({"score": [], "id": []}, ".parquet", ".csv")
def test_decide_keeps_every_row_or_refuses_in_one_sentence(table: Table, suffix: str, target: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, output = save(table, suffix, folder), folder / f"out{target}"
        done = run("decide", CERTIFICATE, path, "--score", "score", "-o", output)
        assert done.out == ""
        if done.code != 0:
            assert done.code == 2, done
            one_sentence(done.err)
            assert list(folder.iterdir()) == [path]
            return
        assert sorted(folder.iterdir()) == sorted([path, output])
        with duckdb.connect() as connection:
            found = connection.execute(f"SELECT verdict FROM '{output}'").fetchall()
        assert len(found) == len(table["score"]) > 0
        if usable(table["score"]):
            scores = np.array(table["score"], dtype=float)
            assert [verdict for (verdict,) in found] == RULE.verdicts(scores).tolist()


@settings(max_examples=examples(30))
@given(st.lists(numbers | st.sampled_from([inf, -inf]), min_size=1, max_size=20), formats)
def test_numbers_are_never_refused(scores: list[float], suffix: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = save({"id": list(range(len(scores))), "score": scores}, suffix, Path(name))
        with nothing_left(Path(name)):
            done = run(
                "decide",
                CERTIFICATE,
                path,
                "--score",
                "score",
                "--on-missing",
                "stop",
                "--format",
                "csv",
                "-q",
            )
        assert (done.code, done.err) == (0, "")
        verdicts = [int(row["verdict"]) for row in csv.DictReader(done.out.splitlines())]
        assert verdicts == RULE.verdicts(scores).tolist()
