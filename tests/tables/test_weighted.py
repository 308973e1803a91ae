"""Weights in tables: the certificate of the same points in memory, whatever the format and the files."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from pac_wrap import Certificate, calibrate, calibrate_labelled
from support.shell import invoke, refused
from support.tables import empty_database

ROWS = 60_000
BOUND: dict[str, Any] = {"weight_bound": 3.0}


def columns() -> dict[str, Any]:
    random = np.random.default_rng(2)
    labels = (random.random(ROWS) < 0.2).astype(np.int64)
    scores = random.normal(3.0 * labels).round(3)
    return {"s": scores, "y": labels, "w": np.minimum(np.exp(scores / 3), 3.0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the same rows as one file of many row groups, as three files, and as others."""
    path = tmp_path_factory.mktemp("weights")
    with empty_database() as connection:
        connection.register("arrays", columns())
        connection.execute("CREATE TABLE given AS SELECT *, row_number() OVER () AS i FROM arrays")
        for name, options in (
            ("all.parquet", "FORMAT parquet, ROW_GROUP_SIZE 2048"),
            ("all.csv", "FORMAT csv"),
            ("all.jsonl", "FORMAT json"),
        ):
            connection.execute(f"COPY (SELECT s, y, w FROM given ORDER BY i) TO '{path / name}' ({options})")
        for part, (low, high) in enumerate(((0, 1), (1, 34_000), (34_000, ROWS))):
            rows = f"SELECT s, y, w FROM given WHERE i > {low} AND i <= {high} ORDER BY i"
            connection.execute(f"COPY ({rows}) TO '{path / f'part-{part}.parquet'}'")
    return path


@pytest.fixture(scope="module")
def expected() -> Certificate:
    given = columns()
    return calibrate_labelled(given["s"], given["y"], weights=given["w"], seed=4, **BOUND)


def made(path: Path, *tables: object, code: int = 0, **options: object) -> Certificate:
    words = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    done = invoke("calibrate", *tables, *NAMES, "--weight-bound", 3, "-o", path, *words)
    assert done.code == code, done.err
    return Certificate.load(path)


NAMES = ("--score", "s", "--label", "y", "--weight", "w")


@pytest.mark.parametrize("names", ["all.parquet", "all.csv", "all.jsonl", "part-*.parquet"])
def test_a_table_gives_what_memory_gives_and_is_verified(
    folder: Path, tmp_path: Path, expected: Certificate, names: str
) -> None:
    path = tmp_path / "certificate.json"
    found = made(path, folder / names, seed=4)
    assert found.bare.to_json() == expected.to_json()
    done = invoke("verify", path, folder / names, *NAMES)
    assert (done.code, done.err) == (0, "")
    assert "these scores, labels and weights, in this order, give this certificate" in done.out


def test_another_order_is_not_verified_and_the_reason_is_said(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    made(path, folder / "all.parquet")
    parts = [folder / f"part-{part}.parquet" for part in (2, 1, 0)]
    done = invoke("verify", path, *parts, *NAMES)
    assert done.code == 1
    assert "weights draw points in their order, which must be that of calibration" in done.out


def test_weights_of_one_class_from_memory_are_verified_by_a_table(folder: Path, tmp_path: Path) -> None:
    given, path = columns(), tmp_path / "certificate.json"
    mask = given["y"] == 1
    one = calibrate(given["s"][~mask], given["s"][mask], normal_weights=given["w"][~mask], seed=9, **BOUND)
    one.save(path)
    assert invoke("verify", path, folder / "all.parquet", *NAMES).code == 0


def test_without_a_seed_the_system_draws_one_and_verify_repeats_it(folder: Path, tmp_path: Path) -> None:
    paths = tmp_path / "one.json", tmp_path / "other.json"
    found = [made(path, folder / "all.parquet").weighting for path in paths]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].seed != found[1].seed
    assert not found[0].chosen
    for path in paths:
        assert invoke("verify", path, folder / "all.parquet", *NAMES).code == 0


@pytest.mark.parametrize("both", [True, False])
def test_measuring_the_points_that_were_drawn_from_proves_nothing(
    folder: Path, tmp_path: Path, both: bool
) -> None:
    """Without their weights, in any order; and other points prove something."""
    given, path = columns(), tmp_path / "certificate.json"
    if both:
        made(path, folder / "all.parquet", seed=4)
    else:
        mask = given["y"] == 1
        calibrate(given["s"][~mask], given["s"][mask], normal_weights=given["w"][~mask], **BOUND).save(path)
    words = ("--score", "s", "--label", "y")
    parts = [folder / f"part-{part}.parquet" for part in (2, 0, 1)]
    assert "so this is no evidence" in invoke("evaluate", path, *parts, *words).out
    other = tmp_path / "other.parquet"
    changed = "CASE WHEN s = (SELECT max(s) FROM given) THEN s + 1 ELSE s END AS s, y"
    table = f"WITH given AS (FROM '{folder / 'all.parquet'}') SELECT {changed} FROM given"
    duckdb.sql(f"COPY ({table}) TO '{other}' (FORMAT parquet)")
    assert "so this is no evidence" not in invoke("evaluate", path, other, *words).out
    assert "so this is no evidence" not in invoke("evaluate", path, parts[0], *words).out


def test_a_report_shows_those_that_survived(folder: Path, tmp_path: Path, expected: Certificate) -> None:
    report = tmp_path / "report.html"
    found = made(tmp_path / "certificate.json", folder / "all.parquet", seed=4, report=report)
    assert found.bare == expected
    assert "drawn from" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (
            "3.5",
            "column 'w' must hold a weight from 0 to 3 in every row, got '3.5' in row 3; clip it at",
        ),
        ("-0.5", "got '-0.5' in row 3; fix that row"),
        ("", "got none in row 3; fix that row"),
        ("nan", "in row 3; fix that row"),
        ("heavy", "got 'heavy' in row 3; fix that row"),
        ("inf", "in row 3; clip it at the bound"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_wrong_weight_is_refused_with_its_row(tmp_path: Path, kind: str, weight: str, words: str) -> None:
    table = tmp_path / f"table.{kind}"
    rows = [("0.1", "0", "1"), ("0.2", "0", "2"), ("0.3", "1", weight), ("0.4", "1", "9")]
    if kind == "csv":
        table.write_text("s,y,w\n" + "\n".join(map(",".join, rows)))
    else:
        table.write_text("\n".join(f'{{"s": {s}, "y": {y}, "w": "{w}"}}' for s, y, w in rows))
    assert words in refused(tmp_path, "calibrate", table, *NAMES, "--weight-bound", 3)


def test_a_wrong_score_or_label_is_refused_though_its_row_does_not_survive(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    for row, words in (
        ("x,0,0", "must hold numbers"),
        (",0,0", "must not be empty"),
        ("1,2,0", "must be 0/1"),
    ):
        table.write_text(f"s,y,w\n0.5,0,1\n{row}\n0.7,1,1\n")
        assert words in refused(tmp_path, "calibrate", table, *NAMES, "--weight-bound", 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--weight", "w"), "--weight needs --weight-bound"),
        (("--weight-bound", 3), "--weight-bound works only with --weight"),
        (("--weight", "w", "--weight-bound", 0), "--weight-bound must be a number above 0"),
        (("--weight", "s", "--weight-bound", 3), "column 's' cannot be the weight as well"),
        (("--weight", "v", "--weight-bound", 3), "there is no column 'v'"),
        (("--weight", "w", "--weight-bound", 3, "--engine", "spark"), "and Spark has no order"),
        (("--weight", "w", "--weight-bound", 3, "--engine", "dask"), "and Dask has no order"),
        (("--weight", "w", "--weight-bound", 3, "--group", "g"), "--weight does not work with --group"),
        (("--weight", "w", "--weight-bound", 3, "--kind", "g"), "--weight does not work with --kind"),
        (("--weight", "w", "--weight-bound", 3, "--time", "g"), "--weight does not work with --time"),
        (("--weight", "w", "--weight-bound", 3, "--label-noise", "0.01"), "change the share of wrong labels"),
        (("--seed", 3), "--seed works only with --hold-out"),
    ],
)
def test_options_that_promise_nothing_are_refused(
    folder: Path, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    assert words in refused(
        tmp_path, "calibrate", folder / "part-0.parquet", "--score", "s", "--label", "y", *options
    )


def test_verify_wants_weights_exactly_where_there_are_some(folder: Path, tmp_path: Path) -> None:
    given, path = columns(), tmp_path / "certificate.json"
    table = folder / "all.parquet"
    calibrate_labelled(given["s"], given["y"]).save(path)
    assert "made without weights; remove --weight" in refused(tmp_path, "verify", path, table, *NAMES)
    calibrate_labelled(given["s"], given["y"], weights=given["w"], **BOUND).save(path)
    assert "name their column with --weight" in refused(tmp_path, "verify", path, table, *NAMES[:4])
    pair = 0.9 * given["w"], given["w"]
    calibrate_labelled(given["s"], given["y"], weights=pair, **BOUND).save(path)
    assert "are intervals, which no column can hold" in refused(tmp_path, "verify", path, table, *NAMES)
