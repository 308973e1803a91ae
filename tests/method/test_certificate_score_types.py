"""One frame of scores with ties at 0.3, in every format and type: the same verdicts, or a refusal."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from pac_wrap import Certificate, PrecisionWarning, calibrate_labelled, evaluate
from pac_wrap.base.floats import ScoreType
from support.daskcluster import needs_dask
from support.shell import invoke, refused, succeeded
from support.slow import slow_but

SCORE = ["--score", "score"]
LABELLED = [*SCORE, "--label", "label"]
_RNG = np.random.default_rng(0)
LABELS = np.repeat([0, 1], [1000, 1500])
# ties of both classes at 0.3, which no binary number is, and float32 numbers that a double is needed for
SCORES = np.concatenate([_RNG.uniform(0.0, 0.25, 1000), _RNG.uniform(0.5, 1.0, 1500)]).astype(np.float32)
SCORES[:200] = SCORES[1000:2200] = np.float32(0.3)
SCORES[200:204] = [0.1, 0.7, -np.inf, np.inf]
SCORES[2200:2204] = [0.7, 0.1, -np.inf, np.inf]
# as few digits as tell a float32 from its neighbours, and all that the double has
SHORT, LONG = [str(score) for score in SCORES], [repr(float(score)) for score in SCORES]
JSON = {"inf": '"Infinity"', "-inf": '"-Infinity"'}


def rows(texts: list[str]) -> bytes:
    lines = [f"{text},{label}" for text, label in zip(texts, LABELS, strict=True)]
    return ("\n".join(["score,label", *lines]) + "\n").encode()


def objects(texts: list[str]) -> bytes:
    pairs = zip(texts, LABELS, strict=True)
    return "".join(f'{{"score":{JSON.get(text, text)},"label":{label}}}\n' for text, label in pairs).encode()


def parquet(path: Path, kind: str) -> None:
    columns = {"score": SCORES.astype(kind), "label": LABELS}
    with duckdb.connect() as connection:
        connection.register("columns", columns)
        connection.execute(f"COPY (SELECT * FROM columns) TO '{path}' (FORMAT parquet)")


def npz(path: Path) -> None:
    np.savez(path, score=SCORES, label=LABELS)


# how each file is written, and the type and values that its scores have
WRITERS: dict[str, tuple[Callable[[Path], Any], ScoreType, bool]] = {
    "narrow.parquet": (lambda path: parquet(path, "float32"), "float32", False),
    "narrow.npz": (npz, "float32", False),
    "wide.parquet": (lambda path: parquet(path, "float64"), "float64", False),
    "long.csv": (lambda path: path.write_bytes(rows(LONG)), "float64", False),
    "long.jsonl": (lambda path: path.write_bytes(objects(LONG)), "float64", False),
    "short.csv": (lambda path: path.write_bytes(rows(SHORT)), "float64", True),
    "short.csv.gz": (lambda path: path.write_bytes(gzip.compress(rows(SHORT))), "float64", True),
    "short.jsonl": (lambda path: path.write_bytes(objects(SHORT)), "float64", True),
}
# files of the same type and values have the same certificate (the first test), so one of each stands for all
DIFFERENT = ["narrow.parquet", "long.csv", "short.csv"]
OUTPUTS = ["out.csv", "out.csv.gz", "out.jsonl", "out.parquet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("types")
    for name, (write, _, _) in WRITERS.items():
        write(made / name)
        invoke("calibrate", made / name, *LABELLED, "-o", made / f"{name}.json")
    return made


def doubles(name: str) -> Any:
    """Return the scores of a file as the doubles that stand in it."""
    return np.array(list(map(float, SHORT))) if WRITERS[name][2] else SCORES.astype(np.float64)


def written(path: Path) -> list[int]:
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT verdict FROM '{path}'").fetchall()
    return [int(verdict) for (verdict,) in found]


def strict(text: str) -> list[dict[str, Any]]:
    """Read JSON lines as JSON defines them: without Infinity and NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_gives_the_certificate_of_its_scores_in_memory(name: str, folder: Path) -> None:
    certificate = Certificate.load(folder / f"{name}.json")
    assert certificate.score_type == WRITERS[name][1]
    values = SCORES if certificate.score_type == "float32" else doubles(name)
    assert certificate.bare.to_json() == calibrate_labelled(values, LABELS).to_json()


# every source, every format that is written, and every certificate in the quick run
PAIRS = [
    pytest.param(made_of, source, marks=[pytest.mark.slow] * ((i + j) % 3 != 0))
    for i, made_of in enumerate(DIFFERENT)
    for j, source in enumerate(WRITERS)
]


@pytest.mark.parametrize(("made_of", "source"), PAIRS)
def test_verdicts_do_not_depend_on_the_format(
    made_of: str, source: str, folder: Path, tmp_path: Path
) -> None:
    saved = folder / f"{made_of}.json"
    certificate = Certificate.load(saved)
    # spread over the pairs, so that every format is written from every other
    output = tmp_path / OUTPUTS[(DIFFERENT.index(made_of) + list(WRITERS).index(source)) % len(OUTPUTS)]
    arguments = ["decide", saved, folder / source, *SCORE, "-o", output]
    if WRITERS[made_of][2] and WRITERS[source][1] == "float32":
        # 0.3 was the threshold, and the file cannot tell 0.3 from 0.30000001
        sentence = refused(tmp_path, *arguments)
        assert sentence.startswith("1,400 scores of column 'score' cannot be decided: as float32 they are")
        assert sentence.endswith("use float64 scores, as at calibration, or calibrate on float32 scores")
        assert refused(tmp_path, "evaluate", saved, folder / source, *LABELLED) == sentence
        return
    succeeded(*arguments)
    expected = certificate.verdicts(doubles(source))
    if certificate.score_type == "float32":
        assert expected.tolist() == certificate.thresholds.rule.verdicts(SCORES).tolist()
    assert written(output) == expected.tolist()
    # our own output, and the source itself, are worth what NumPy says
    metrics = evaluate(expected, LABELS)
    for table in (output, folder / source):
        shown = invoke("evaluate", saved, table, *LABELLED).out
        assert f"{metrics.fpr.value:.4f}" in shown
        assert f"{metrics.fnr.value:.4f}" in shown
        assert f"{metrics.ambiguity.value:.4f}" in shown


@pytest.mark.parametrize("made_of", slow_but(1, DIFFERENT))
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("source", slow_but(2, ["long.csv", "short.jsonl", "long.jsonl", "short.csv"]))
def test_verdicts_of_a_stream_are_those_of_a_file(made_of: str, source: str, form: str, folder: Path) -> None:
    saved = folder / f"{made_of}.json"
    content = (folder / source).read_bytes()
    out = succeeded("decide", saved, "-", *SCORE, "--format", form, stdin=content)
    found = strict(out) if form == "jsonl" else list(csv.DictReader(io.StringIO(out)))
    expected = Certificate.load(saved).verdicts(doubles(source))
    assert [int(row["verdict"]) for row in found] == expected.tolist()
    assert [float(row["score"]) for row in found] == doubles(source).tolist()


@pytest.mark.parametrize("source", slow_but(3, reversed(WRITERS)))
def test_a_certificate_is_verified_by_any_text_of_its_scores(source: str, folder: Path) -> None:
    saved = folder / "narrow.parquet.json"
    assert succeeded("verify", saved, folder / source, *LABELLED).startswith("verified: ")


def test_the_output_of_decide_is_worth_what_was_promised(folder: Path, tmp_path: Path) -> None:
    """The tie at 0.3 was written as 0.3, which lies below it: an FNR of .8 where .05 was promised."""
    saved, output = folder / "narrow.parquet.json", tmp_path / "v.csv"
    succeeded("decide", saved, folder / "narrow.parquet", *SCORE, "-o", output)
    assert "0.30000001192092896," in output.read_text()
    assert "\n0.3," not in output.read_text()
    verdicts = np.array(written(output))
    assert evaluate(verdicts, LABELS).fnr.value <= 0.05
    shown = invoke("evaluate", saved, output, *LABELLED)
    assert shown.code == 0, shown
    flipped = invoke("evaluate", saved, folder / "short.csv", *LABELLED)
    assert flipped.out == shown.out


def test_a_file_of_doubles_that_overflow_is_rounded_too(tmp_path: Path) -> None:
    narrow = np.array([0, 1, 2, np.inf, -np.inf, 3.4028235e38], dtype=np.float32).repeat(100)
    labels = (narrow > 1.5).astype(int)
    saved, table = tmp_path / "c.json", tmp_path / "t.csv"
    calibrate_labelled(narrow, labels).save(saved)
    wide = [{"inf": "1e39", "-inf": "-1e300"}.get(text, text) for text in map(str, narrow)]
    table.write_text("score,label\n" + "".join(f"{s},{y}\n" for s, y in zip(wide, labels, strict=True)))
    assert succeeded("verify", saved, table, *LABELLED).startswith("verified: ")


@pytest.mark.parametrize("name", slow_but(2, ["narrow.parquet", "short.jsonl", "wide.parquet", "short.csv"]))
def test_dask_gives_the_same_certificate(name: str, folder: Path, tmp_path: Path) -> None:
    needs_dask()
    saved = tmp_path / "c.json"
    invoke("calibrate", folder / name, *LABELLED, "--engine", "dask", "-o", saved)
    assert Certificate.load(saved).bare == Certificate.load(folder / f"{name}.json").bare


@pytest.mark.parametrize(
    ("second", "kind"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        pytest.param("int64", "float64", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("engine", ["duckdb", "dask"])
def test_files_of_several_types_are_doubles(engine: str, second: str, kind: str, tmp_path: Path) -> None:
    if engine == "dask":
        needs_dask()
    with duckdb.connect() as connection:
        for name, values in (("a", SCORES[:1200]), ("b", np.rint(SCORES[1200:2200] * 100).astype(second))):
            first = 0 if name == "a" else 1200
            connection.register(name, {"score": values, "label": LABELS[first : first + values.size]})
            connection.execute(f"COPY (SELECT * FROM {name}) TO '{tmp_path}/{name}.parquet' (FORMAT parquet)")
    saved = tmp_path / "c.json"
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    invoke("calibrate", *files, *LABELLED, "--engine", engine, "-o", saved)
    whole = np.concatenate([SCORES[:1200].astype(float), np.rint(SCORES[1200:2200] * 100)]).astype(kind)
    assert Certificate.load(saved).bare.to_json() == calibrate_labelled(whole, LABELS[:2200]).to_json()


@pytest.mark.parametrize("kind", slow_but(2, ["float32", "float64", "Float32", "float[pyarrow]", "Float64"]))
def test_dask_frames_of_any_type(kind: str) -> None:
    frames = needs_dask()
    frame = pd.DataFrame({"score": SCORES, "label": LABELS})
    from pac_wrap.engines import dask as engine

    cut = frames.from_pandas(frame.astype({"score": kind}), npartitions=3)
    certificate = engine.calibrate(cut)
    narrow = kind in ("float32", "Float32", "float[pyarrow]")
    values = SCORES if narrow else SCORES.astype(np.float64)
    assert certificate.to_json() == calibrate_labelled(values, LABELS).to_json()
    found = engine.decide(cut, certificate).compute().verdict.to_list()
    assert found == certificate.thresholds.rule.verdicts(SCORES).tolist()
    short = frames.from_pandas(frame.assign(score=[float(text) for text in SHORT]), npartitions=2)
    if narrow:
        assert engine.decide(short, certificate).compute().verdict.to_list() == found
    else:
        with pytest.warns(
            PrecisionWarning, match=r"column 'score' holds float32 scores, but the certificate"
        ):
            engine.decide(cut.astype({"score": "float32"}), engine.calibrate(short))


def test_a_narrow_file_far_from_the_thresholds_is_decided(tmp_path: Path) -> None:
    saved = tmp_path / "c.json"
    calibrate_labelled([float(text) for text in SHORT], LABELS).save(saved)
    np.save(tmp_path / "s.npy", np.array([0.25, 0.31], dtype=np.float32))
    out = succeeded("decide", saved, tmp_path / "s.npy", *SCORE, "--format", "jsonl")
    assert [row["verdict"] for row in strict(out)] == [0, 1]


def test_two_bytes_are_told_from_four(tmp_path: Path) -> None:
    halves, saved = SCORES.astype(np.float16), tmp_path / "c.json"
    np.savez(tmp_path / "t.npz", score=halves, label=LABELS)
    invoke("calibrate", tmp_path / "t.npz", *LABELLED, "-o", saved)
    assert Certificate.load(saved).bare.to_json() == calibrate_labelled(halves, LABELS).to_json()
    assert Certificate.load(saved).score_type == "float16"


@pytest.fixture
def infinite(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT * FROM (VALUES ('inf'::DOUBLE, 'nan'::FLOAT, 'Infinity', 1),"
            " ('-inf', '-inf', 'NaN', 0), (0.5, NULL, NULL, 0)) t(score, other, text, label))"
            f" TO '{path}' (FORMAT parquet)"
        )
    return path


def test_infinities_are_texts_in_json(infinite: Path, folder: Path, tmp_path: Path) -> None:
    saved, output = folder / "wide.parquet.json", tmp_path / "v.jsonl"
    succeeded("decide", saved, infinite, *SCORE, "-o", output)
    found = strict(output.read_text())
    assert [row["score"] for row in found] == ["Infinity", "-Infinity", 0.5]
    assert [row["other"] for row in found] == ["NaN", "-Infinity", None]
    assert [row["text"] for row in found] == ["Infinity", "NaN", None]
    verdicts = Certificate.load(saved).verdicts([np.inf, -np.inf, 0.5])
    assert [row["verdict"] for row in found] == verdicts.tolist()
    assert "0.0000" in invoke("evaluate", saved, output, *LABELLED).out


@pytest.mark.parametrize("first", ["Infinity", '"Infinity"', '"inf"'])
def test_infinities_in_json_are_read_and_written_as_texts(first: str, folder: Path, tmp_path: Path) -> None:
    content = (
        f'{{"score": {first}, "note": "Infinity, NaN \\"-Infinity"}}\n'
        '{"score": -Infinity, "note": [NaN, 1]}\n{"score": 0.5, "note": 1}\n'
    ).encode()
    file = tmp_path / "t.jsonl"
    file.write_bytes(content)
    saved = folder / "wide.parquet.json"
    verdicts = Certificate.load(saved).verdicts([np.inf, -np.inf, 0.5]).tolist()
    streamed = strict(succeeded("decide", saved, "-", *SCORE, "--format", "jsonl", stdin=content))
    assert streamed[1] == {
        "score": "-Infinity",
        "note": ["NaN", 1],
        "verdict": verdicts[1],
        "prediction_set": "{0}",
    }
    assert streamed[0]["note"] == 'Infinity, NaN "-Infinity'
    read = [
        json.loads(line)
        for line in succeeded("decide", saved, file, *SCORE, "--format", "jsonl").splitlines()
    ]
    for found in (streamed, read):
        assert [float(row["score"]) for row in found] == [np.inf, -np.inf, 0.5]
        assert [isinstance(row["score"], str) for row in found] == [True, True, False]
        assert [row["verdict"] for row in found] == verdicts


def test_infinities_of_a_csv_are_texts_in_json(folder: Path, tmp_path: Path) -> None:
    content = b"score\ninf\n-INF\nInfinity\n0.5\n"
    (tmp_path / "t.csv").write_bytes(content)
    saved = folder / "wide.parquet.json"
    streamed = strict(succeeded("decide", saved, "-", *SCORE, "--format", "jsonl", stdin=content))
    assert [row["score"] for row in streamed] == ["Infinity", "-Infinity", "Infinity", 0.5]
    assert strict(succeeded("decide", saved, tmp_path / "t.csv", *SCORE, "--format", "jsonl")) == streamed
