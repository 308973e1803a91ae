"""Dask gives the certificates, verdicts and scores that memory gives, to the last bit."""

import pickle
import sys
from collections.abc import Iterator
from itertools import pairwise
from math import inf, nan, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest

from pac_wrap import Certificate, Guarantee, MissingExtraError, PACWrap, UpsideDownWarning, anomaly_scores
from pac_wrap.detectors.scores import UnfittedError
from pac_wrap.engines import dask as engine
from pac_wrap.engines.dask import partitions_of
from pac_wrap.method.calibrate import calibrate_labelled
from pac_wrap.method.rule import Thresholds
from support.daskcluster import current, needs_dask
from support.datafolder import needs
from support.pages import python_blocks
from support.pieces import certificate_of
from support.strategies import RULES, every_rule, refusal

dd = needs_dask()
pd = pytest.importorskip("pandas")
dask = pytest.importorskip("dask")
LOOSE = Guarantee(0.2, 0.2, 0.1, 0.1)
TIED = np.array([-inf, -1.0, -0.0, 0.0, 5e-324, 1.0, nextafter(1.0, 2.0), inf] * 40)


@pytest.fixture
def client(workers: Any) -> Iterator[Any]:
    """Let the processes of a cluster do the work, to which everything is sent; else threads of this do it."""
    with current(workers) as started:
        yield started


@pytest.fixture(scope="module")
def labelled() -> Any:
    rng = np.random.default_rng(3)
    label = (rng.random(3000) < 0.3).astype(np.int64)
    return pd.DataFrame({"score": rng.normal(size=3000) + 2.5 * label, "label": label})


def cut(frame: Any, *places: int) -> Any:
    """Return a Dask frame cut at these rows; a place named twice gives an empty partition."""
    ends = [0, *places, len(frame)]
    pieces = [frame.iloc[start:end] for start, end in pairwise(ends)]
    return put_together(pieces, frame)


def put_together(pieces: list[Any], like: Any) -> Any:
    # else Dask makes texts of all objects
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_map(lambda piece: piece, pieces, meta=like.iloc[:0])


def in_memory(frame: Any, *arguments: Any, **options: Any) -> str:
    scores, labels = frame.score.to_numpy(), frame.label.to_numpy()
    made: Certificate = calibrate_labelled(scores, labels, *arguments, **options)
    return made.to_json()


@every_rule
def test_every_rule_is_the_one_of_memory(options: dict[str, Any], labelled: Any) -> None:
    df = cut(labelled, 0, 700, 700, 2999)
    assert engine.calibrate(df, **options).to_json() == in_memory(labelled, **options)


def test_worker_processes_find_the_rule_of_memory(client: Any, labelled: Any) -> None:
    for options in (RULES["two thresholds if needed"], RULES["raise"]):
        df = cut(labelled, 0, 700, 700, 2999)
        assert engine.calibrate(df, **options).to_json() == in_memory(labelled, **options)


@pytest.mark.parametrize(
    ("scores", "partitions"),
    [
        (TIED, 1),
        (TIED, 2),
        (TIED, 50),
        (np.linspace(-1, 1, 320).astype(np.float32), 20),
        (np.repeat(np.arange(2**53, 2**53 + 8), 40), 20),
        (np.arange(320) > 170, 20),
    ],
    ids=["at once", "ties", "ties of many", "float32", "large integers", "booleans"],
)
def test_ties_and_narrow_types_change_nothing(scores: Any, partitions: int) -> None:
    frame = pd.DataFrame({"score": scores, "label": np.arange(scores.size) % 8 > 4})
    df = dd.from_pandas(frame, npartitions=partitions, sort=False)
    assert df.npartitions == partitions
    assert engine.calibrate(df, LOOSE).to_json() == in_memory(frame, LOOSE)


@pytest.mark.parametrize(
    ("score", "label"),
    [
        ("Float64", "Int8"),
        ("double[pyarrow]", "bool[pyarrow]"),
        ("object", "object"),
        ("category", "category"),
        ("Float64", "boolean"),
    ],
)
def test_nullable_and_arrow_columns_are_those_of_numpy(labelled: Any, score: str, label: str) -> None:
    df = cut(
        labelled.astype({"label": bool} if "bool" in label else {}).astype({"score": score, "label": label}),
        9,
    )
    assert engine.calibrate(df).to_json() == in_memory(labelled)


@pytest.mark.parametrize("kind", ["object", "str", "string[pyarrow]", "category"])
def test_labels_may_be_texts(labelled: Any, kind: str) -> None:
    names = np.array(["ok", "fault"], dtype=object)[labelled.label]
    df = cut(labelled.assign(label=pd.Series(names).astype(kind)), 1000)
    assert engine.calibrate(df, anomaly_label="fault").to_json() == in_memory(labelled)


def test_the_current_scheduler_is_used_and_receives_little_whatever_the_rows(labelled: Any) -> None:
    received: list[int] = []

    def noted(graph: Any, keys: Any, **options: Any) -> Any:
        answer = dask.get(graph, keys)
        received.append(len(pickle.dumps(answer)))
        return answer

    with dask.config.set(scheduler=noted):
        engine.calibrate(cut(labelled, 1000))
        few, received[:] = list(received), []
        engine.calibrate(dd.from_pandas(pd.concat([labelled] * 30), npartitions=60, sort=False))
    assert len(few) > 1
    assert max(few) < 1_100_000
    # a guess, and one pass: its counters, and no more keys than fit into 2 MB
    assert len(received) == 2
    assert received[0] < 1000 < max(few) < received[1] < 1_100_000 + 2**21


def test_only_two_columns_are_read_and_the_partitions_keep_their_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 20)), columns=[f"x{i}" for i in range(20)])
    frame["label"] = np.arange(100) % 2
    for number in range(30):
        frame.loc[5, "x3"] = nan if number in (17, 20) else 0.5
        frame.to_parquet(tmp_path / f"{number:02}.parquet")
    df = dd.read_parquet(tmp_path)
    df = df.assign(score=df.x3 + 1)
    assert refusal(lambda: engine.calibrate(df)) == (
        "scores must not be empty or NaN, got 1 of 100 in partition 17, 2 in 2 partitions;"
        " drop those rows or make the detector score them"
    )
    keys, graph = partitions_of(df[["score", "label"]])
    assert len(keys) == 30
    assert dask.get(graph, keys[17]).columns.to_list() == ["score", "label"]
    assert not any(f"x{i}'" in repr(task) for task in graph.values() for i in range(4, 20))


def test_missing_scores_and_labels_are_counted_and_the_partition_is_named(labelled: Any) -> None:
    for kind, missing in (("float64", nan), ("Float64", pd.NA), ("double[pyarrow]", None), ("object", None)):
        frame = labelled.astype({"score": kind})
        frame.loc[[2001, 2500], "score"] = missing
        message = refusal(engine.calibrate, cut(frame, 1000, 1000, 2000))
        assert message.startswith("scores must not be empty or NaN, got 2 of 1,000 in partition 3;")
    for kind, missing in (("float64", nan), ("Int64", pd.NA), ("int64[pyarrow]", None), ("object", None)):
        frame = labelled.astype({"label": kind})
        frame.loc[[1001, 2500], "label"] = missing
        assert refusal(engine.calibrate, cut(frame, 1000, 2000)) == (
            "labels of partition 1 must not be missing, got 1 of 1,000; drop those rows"
        )


def test_types_that_differ_between_partitions_are_refused_by_the_partition(
    client: Any, labelled: Any
) -> None:
    pieces = [labelled, labelled.astype({"label": float}), labelled.astype({"score": str})]
    df = put_together(pieces, labelled)
    message = refusal(lambda: engine.calibrate(df))
    assert message.startswith("scores of partition 2 must be real numbers, got dtype object")
    certificate = calibrate_labelled(labelled.score, labelled.label)
    message = refusal(lambda: engine.decide(df, certificate).verdict.sum().compute())
    assert message.startswith("column 'score' must be real numbers")


def test_a_csv_whose_columns_change_their_type_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for name, cell in (("a", 0.5), ("b", "x")):
        pd.DataFrame({"score": [cell] * 5, "label": [0] * 5}).to_csv(tmp_path / f"{name}.csv", index=False)
    message = refusal(lambda: engine.calibrate(dd.read_csv(tmp_path / "*.csv")))
    assert message.startswith("the partitions cannot be read: Mismatched dtypes found in")
    assert "\n" not in message


def test_no_rows_at_all(labelled: Any) -> None:
    empty = cut(labelled.iloc[:0], 0, 0)
    assert "both empty" in refusal(lambda: engine.calibrate(empty))
    decided = engine.decide(empty, calibrate_labelled(labelled.score, labelled.label)).compute()
    assert decided.dtypes[["verdict", "prediction_set"]].astype(str).to_list() == ["int8", "string"]


def test_what_is_no_dask_frame_or_lacks_a_column_is_refused_in_one_sentence(labelled: Any) -> None:
    df = dd.from_pandas(labelled.assign(text="a", Verdict=1), npartitions=2)
    certificate = calibrate_labelled(labelled.score, labelled.label)
    forest = IsolationForest(n_estimators=2).fit(np.zeros((4, 3)))
    twice = dd.from_pandas(labelled.set_axis(["score", "score"], axis=1), npartitions=1)
    for action, sentence in (
        (
            lambda: engine.calibrate(labelled),
            "df must be a DataFrame of dask.dataframe, got pandas DataFrame;",
        ),
        (
            lambda: engine.calibrate(df.to_delayed()[0]),
            "df must be a DataFrame of dask.dataframe, got dask Delayed",
        ),
        (
            lambda: engine.decide(df.score, certificate),
            "df must be a DataFrame of dask.dataframe, got dask Series",
        ),
        (
            lambda: engine.score([[1.0]], forest),
            "df must be a DataFrame of dask.dataframe, got builtins list",
        ),
        (
            lambda: engine.calibrate(df, score="scor"),
            "there is no column 'scor'; did you mean 'score'? the columns",
        ),
        (
            lambda: engine.calibrate(df, label="y"),
            "there is no column 'y'; the columns are score, label, text,",
        ),
        (
            lambda: engine.calibrate(df, label="score"),
            "column 'score' cannot be both the score and the label",
        ),
        (lambda: engine.calibrate(df, score="text"), "column 'text' must hold numbers, but its type is "),
        (lambda: engine.calibrate(twice, label="score"), "there are two columns named 'score'"),
        (lambda: engine.decide(df, certificate), "there is a column 'Verdict' already; rename it or drop it"),
        (lambda: engine.score(df, forest), "there is a column 'score' already"),
        (
            lambda: engine.score(df, forest, features=["score", "label"], score="s"),
            "the detector was fitted on 3 features, got 2: score, label; name its columns with features",
        ),
        (
            lambda: engine.score(df[["text"]], len),
            "the detector was fitted on some features, got 0: no column holds numbers;",
        ),
        (lambda: engine.calibrate(df, anomaly_label="fault"), "labels of partition 0 must be 'fault'"),
    ):
        assert refusal(action).startswith(sentence)


def test_scores_that_are_upside_down_are_warned_about(labelled: Any) -> None:
    with pytest.warns(UpsideDownWarning, match=r"AUC 0\.0"):
        engine.calibrate(cut(labelled.assign(score=-labelled.score), 50))


@pytest.mark.parametrize(
    "rule",
    [
        Thresholds(0.7, 0.3),
        Thresholds(0.3, 0.7),
        Thresholds(0.5, 0.5),
        Thresholds(inf, -inf),
        Thresholds(0.5, None),
        Thresholds(None, 0.5),
        Thresholds(inf, None),
    ],
    ids=str,
)
def test_verdicts_are_those_of_memory_and_missing_scores_are_abstained(rule: Thresholds) -> None:
    known = [-inf, -0.0, 0.3, nextafter(0.3, 0), 0.5, 0.7, nextafter(0.7, 0), inf]
    certificate = certificate_of(rule)
    texts = {(True, True): "{0,1}", (True, False): "{0}", (False, True): "{1}", (False, False): "{}"}
    sets = [texts[possible[0], possible[1]] for possible in rule.prediction_sets(known).tolist()]
    for kind in ("float64", "Float64", "double[pyarrow]"):
        frame = pd.Series([*known, None], index=[7] * 9, dtype=kind).to_frame("s")
        decided = engine.decide(cut(frame, 0, 5), certificate, score="s")
        assert decided.dtypes.astype(str).to_list()[1:] == ["int8", "string"]
        found = decided.compute()
        assert found.dtypes.to_list() == decided.dtypes.to_list()
        assert found.index.to_list() == [7] * 9
        assert found.verdict.to_list() == [*rule.rule.verdicts(known), -1]
        assert found.prediction_set.to_list() == [*sets, "{0,1}"]


def test_real_data_from_the_detector_to_the_verdicts(client: Any) -> None:
    needs("thyroid")
    from pac_wrap_paper.data import load

    data = load("thyroid")
    names = [f"x{i}" for i in range(data.X.shape[1])]
    frame = pd.DataFrame(data.X, columns=names)
    forest = IsolationForest(random_state=0).fit(frame[: len(frame) // 2])
    held = frame[len(frame) // 2 :].assign(id="p", label=data.y[len(frame) // 2 :])
    df = cut(held, 0, 1000, 3000)
    scored = engine.score(df, forest)
    assert scored.dtypes["score"] == np.float64
    scores = anomaly_scores(forest, held[names])
    assert scored.score.compute().tolist() == scores.tolist()
    certificate = engine.calibrate(scored, LOOSE)
    assert certificate.to_json() == calibrate_labelled(scores, held.label, LOOSE).to_json()
    verdicts = engine.decide(scored, certificate).verdict.compute()
    assert verdicts.to_list() == certificate.verdicts(scores).tolist()


def test_a_wrapped_detector_scores_as_its_wrapper_does(labelled: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 2)) + 3.0 * (np.arange(600) % 3 == 0)[:, np.newaxis]
    wrap = PACWrap(IsolationForest(n_estimators=20, random_state=0), random_state=0)
    frame = pd.DataFrame({"b": X[:, 1], "name": "x", "a": X[:, 0]})
    wrap.fit(frame[["a", "b"]], np.arange(600) % 3 == 0)
    scored = engine.score(cut(frame, 200, 200), wrap).compute()
    assert scored.score.to_list() == wrap.decision_function(frame[["a", "b"]]).tolist()
    assert scored.columns.to_list() == ["b", "name", "a", "score"]
    plain = IsolationForest(n_estimators=20, random_state=0).fit(X)
    nullable = frame.astype({"a": "Float64", "b": "double[pyarrow]"})
    for one in (frame, nullable):
        scored = engine.score(cut(one, 200), plain, features=["a", "b"], score="s").compute()
        assert scored.s.to_list() == anomaly_scores(plain, X).tolist()
    scored = engine.score(cut(frame[["name", "a"]], 200), np.ravel).compute()
    assert scored.score.to_list() == X[:, 0].tolist()
    scored = engine.score(cut(labelled.rename(columns={"score": "x"}), 200), lambda X: X.reshape(-1, 11))
    assert "cannot score these rows" in refusal(lambda: engine.calibrate(scored))
    with pytest.raises(UnfittedError, match="not fitted"):
        engine.score(cut(frame, 200), IsolationForest()).compute()


def test_without_dask_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, labelled: Any
) -> None:
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(
        MissingExtraError, match=r'^dask is not installed; run pip install "pac-wrap-ad\[dask\]"$'
    ):
        engine.calibrate(labelled)


def test_the_example_of_the_page_on_scale(client: Any, labelled: Any) -> None:
    detector = IsolationForest(n_estimators=20, random_state=0).fit(labelled[["score"]])
    example, *_ = [
        block for block in python_blocks("docs/guide/cluster.md") if "engines import dask" in block
    ]
    names = {"df": cut(labelled, 1000), "detector": detector, "Guarantee": Guarantee}
    exec(example, names)
    assert names["certificate"].to_json() == in_memory(labelled, Guarantee(max_fpr=0.01, max_fnr=0.05))
    assert list(names["decided"].columns) == ["score", "label", "verdict", "prediction_set"]
    scored = names["scored"].compute()
    assert scored.rescored.to_numpy().tolist() == anomaly_scores(detector, labelled[["score"]]).tolist()
