"""Spark gives the certificates, verdicts and scores that memory gives, to the last bit."""

import os
import sys
from collections.abc import Iterator
from math import inf, nan, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from pac_wrap import (
    Guarantee,
    MissingExtraError,
    PACWrap,
    PrecisionWarning,
    UpsideDownWarning,
    anomaly_scores,
)
from pac_wrap.engines import spark
from pac_wrap.method.calibrate import calibrate_labelled
from pac_wrap.ranks import counted
from pac_wrap.tables.sql import quote_name
from support import sparksession
from support.datafolder import needs
from support.pages import python_blocks
from support.strategies import RULES, refusal

pytestmark = [sparksession.quiet, pytest.mark.slow]
HOSTILE = "a.b `c` 'd' \"e\""
LOOSE = Guarantee(0.2, 0.2, 0.1, 0.1)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sparksession.session("local[2, 4]", tmp_path_factory.mktemp("spark")) as started:
        started.conf.set("spark.sql.shuffle.partitions", "4")
        yield started


@pytest.fixture(scope="module")
def labelled() -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    labels = (rng.random(3000) < 0.3).astype(np.int64)
    return rng.normal(size=3000) + 2.5 * labels, labels


def frame(session: Any, partitions: int | None = None, **columns: Any) -> Any:
    """Make a frame, cut into so many partitions of neighbouring rows."""
    import pyarrow as pa

    kept = {name: pa.array(values, from_pandas=False) for name, values in columns.items()}
    whole = session.createDataFrame(pa.table(kept))
    first = quote_name(next(iter(kept)), "spark")
    return whole if partitions is None else whole.repartitionByRange(partitions, first)


@pytest.mark.parametrize("options", RULES.values(), ids=[*RULES])
def test_every_rule_is_the_one_of_memory(options: dict[str, Any], session: Any, labelled: Any) -> None:
    scores, labels = labelled
    df = frame(session, 3, score=scores, label=labels)
    assert spark.calibrate(df, **options).to_json() == calibrate_labelled(scores, labels, **options).to_json()


TIED = np.array([-inf, -1.0, -0.0, 0.0, 5e-324, 1.0, nextafter(1.0, 2.0), inf] * 40)


@pytest.mark.parametrize(
    ("scores", "partitions"),
    [
        (TIED, 1),
        (TIED, 50),
        (np.linspace(-1, 1, 320).astype(np.float32), 2),
        (np.repeat(np.arange(2**53, 2**53 + 8), 40), 2),
        (np.arange(320) > 170, 2),
    ],
    ids=["one partition", "many, mostly empty", "float32", "large integers", "booleans"],
)
def test_ties_infinities_and_narrow_types_change_nothing(session: Any, scores: Any, partitions: int) -> None:
    labels = np.arange(scores.size) % 8 > 4
    df = frame(session, partitions, score=scores, label=labels)
    whole = calibrate_labelled(scores, labels, LOOSE)
    assert spark.calibrate(df, LOOSE).to_json() == whole.to_json()


def test_float32_is_rounded_to_wherever_scores_come_from(session: Any) -> None:
    scores = np.linspace(-1, 1, 320).astype(np.float32)
    scores[100:220] = np.float32(0.3)
    labels = np.arange(320) > 150
    narrow = frame(session, 3, score=scores, label=labels)
    certificate = spark.calibrate(narrow, LOOSE)
    assert certificate.to_json() == calibrate_labelled(scores, labels, LOOSE).to_json()
    assert certificate.score_type == "float32"
    verdicts = certificate.thresholds.rule.verdicts(scores).tolist()
    short = [float(str(score)) for score in scores]
    for df in (narrow, frame(session, 3, score=short, label=labels)):
        found = spark.decide(df, certificate).collect()
        assert [row.verdict for row in found] == verdicts
    wide = calibrate_labelled(short, labels, LOOSE)
    with pytest.warns(PrecisionWarning, match=r"holds float32 scores, but the certificate needs float64"):
        spark.decide(narrow, wide)


def test_labels_may_be_texts_and_columns_may_have_any_name(session: Any, labelled: Any) -> None:
    scores, labels = labelled
    names = np.array(["ok", "fault"])[labels]
    df = frame(session, 2, **{HOSTILE: scores, "la bel.": names, "other": labels})
    certificate = spark.calibrate(df, score=HOSTILE, label="la bel.", anomaly_label="fault")
    assert certificate == calibrate_labelled(scores, names, anomaly_label="fault")
    decided = spark.decide(df, certificate, score=HOSTILE)
    assert decided.columns == [HOSTILE, "la bel.", "other", "verdict", "prediction_set"]
    assert sum(row.verdict for row in decided.collect()) == int(certificate.verdicts(scores).sum())


def test_decimals_are_the_nearest_doubles(session: Any, labelled: Any) -> None:
    cents = (labelled[0] * 100).astype(np.int64)
    df = frame(session, cents=cents, label=labelled[1])
    df = df.selectExpr("CAST(CAST(cents AS DECIMAL(12, 2)) / 100 AS DECIMAL(12, 2)) AS score", "label")
    assert spark.calibrate(df) == calibrate_labelled(cents / 100, labelled[1])


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note every frame that reaches the driver, with its rows."""
    noted: list[Any] = []
    fetch = spark.fetched

    def watched(df: Any) -> Any:
        rows = fetch(df)
        noted.append((df, rows))
        return rows

    monkeypatch.setattr(spark, "fetched", watched)
    return noted


def test_rows_stay_in_spark_and_little_reaches_the_driver(
    session: Any, labelled: Any, fetched: list[Any]
) -> None:
    for times in (20, 80):
        scores, labels = (np.tile(column, times) for column in labelled)
        scores = scores + np.random.default_rng(times).normal(0, 0.01, scores.size)
        fetched.clear()
        found = spark.calibrate(frame(session, score=scores, label=labels).repartition(20))
        assert found.to_json() == calibrate_labelled(scores, labels).to_json()
        assert len(fetched) <= 3
        for df, _ in fetched:
            assert "Python" not in df._jdf.queryExecution().toString()
        # the first rows; and at most so many that are listed, however many there are
        assert max(rows.nbytes for _, rows in fetched) < 4e6
    assert counted._FEW * 9.25 < 4e6


@pytest.mark.parametrize("share", [0.3, 0.97])
def test_a_score_that_most_rows_share_is_not_listed(session: Any, share: float, fetched: list[Any]) -> None:
    df = session.range(0, 400_000, 1, 4).selectExpr(
        f"IF(rand(1) < {share}, 0.5D, rand(2) + 0.2D * (id % 2)) AS score", "id % 2 AS label"
    )
    rows = df.toArrow()
    whole = calibrate_labelled(rows.column("score").to_numpy(), rows.column("label").to_numpy())
    fetched.clear()
    assert spark.calibrate(df).to_json() == whole.to_json()
    assert sum(rows.num_rows for _, rows in fetched[1:]) < 40_000


def test_a_rare_class_that_no_sample_shows(session: Any) -> None:
    df = session.range(0, 300_000, 1, 4).selectExpr(
        "id * 1.0D AS score", "IF(id % 100000 = 7, 'rare', 'usual') AS text", "id % 100000 = 7 AS label"
    )
    scores = np.arange(300_000.0)
    labels = scores % 100_000 == 7
    whole = calibrate_labelled(scores, labels).to_json()
    assert spark.calibrate(df).to_json() == whole
    # the labels of anomalies, or of normal points, are found out late
    assert spark.calibrate(df, label="text", anomaly_label="rare").to_json() == whole
    turned = calibrate_labelled(-scores, ~labels).to_json()
    df = df.selectExpr("-score AS score", "NOT label AS label", "text")
    assert spark.calibrate(df, label="text", anomaly_label="usual").to_json() == turned


def test_a_frame_that_changes_between_two_jobs_is_refused(session: Any) -> None:
    """Scores that are later each time leave the cells in which they were counted before."""
    from pyspark.sql.functions import expr

    df = session.range(0, 20_000, 1, 4).withColumn("label", expr("id % 2"))
    changing = df.withColumn("score", expr("id + unix_micros(current_timestamp())"))
    assert "scores changed between two passes" in refusal(lambda: spark.calibrate(changing))


@pytest.mark.parametrize("order", ["label", "label DESC", "score", "score DESC", "abs(score)"])
def test_first_rows_unlike_the_others_cost_rounds_and_nothing_else(
    session: Any, labelled: Any, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "_FIRST", 300)
    monkeypatch.setattr(spark, "_POINTS", 200)
    frame(session, score=labelled[0], label=labelled[1]).createOrReplaceTempView("ordered")
    df = session.sql(f"SELECT * FROM ordered ORDER BY {order}").cache()
    for overlap in ("abstain", "raise"):
        whole = calibrate_labelled(*labelled, overlap=overlap)
        assert spark.calibrate(df, overlap=overlap).to_json() == whole.to_json()


def generated(seed: int) -> tuple[Any, Any]:
    """Return scores and labels with ties, atoms, infinities and tiny numbers; a class may be empty."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice([1, 2, 7, 60, 700]))
    scores = rng.choice(
        [
            rng.normal(size=size),
            rng.normal(size=size).round(1),
            rng.choice(TIED, size),
            rng.standard_cauchy(size) * 10.0 ** rng.integers(-310, 300),
        ]
    )
    return scores, (rng.random(size) < rng.choice([0.0, 0.1, 0.5, 1.0])).astype(np.int64)


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.filterwarnings("ignore::pac_wrap.errors.UpsideDownWarning")
def test_generated_scores_with_and_without_ansi_mode(session: Any, ansi: str) -> None:
    before = session.conf.get("spark.sql.ansi.enabled")
    session.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for seed in range(12):
            scores, labels = generated(seed)
            options = [*RULES.values()][seed % len(RULES)]
            df = frame(session, score=scores, label=labels)
            whole = calibrate_labelled(scores, labels, **options)
            assert spark.calibrate(df, **options).to_json() == whole.to_json(), seed
    finally:
        session.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.parametrize("few", [4, 200])
def test_rounds_of_every_kind(session: Any, labelled: Any, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_POINTS", 100)
    monkeypatch.setattr(spark, "_FIRST", 100)
    monkeypatch.setattr(counted, "_FEW", few)
    monkeypatch.setattr(counted, "_CELLS", 12)
    df = frame(session, 3, score=labelled[0], label=labelled[1]).cache()
    for overlap in ("abstain", "raise"):
        whole = calibrate_labelled(*labelled, overlap=overlap)
        assert spark.calibrate(df, overlap=overlap).to_json() == whole.to_json()


def test_no_rows_at_all(session: Any) -> None:
    empty = frame(session, score=[0.5], label=[1]).where("score > 1")
    assert "both empty" in refusal(lambda: spark.calibrate(empty))
    nothing = session.createDataFrame([], "score double, label int")
    assert "both empty" in refusal(lambda: spark.calibrate(nothing))


def test_missing_scores_and_labels_are_counted(session: Any) -> None:
    ids = np.arange(400)
    scores: list[float | None] = [float(i) for i in ids]
    scores[310], scores[320], scores[330] = None, nan, None
    df = frame(session, 4, id=ids, score=scores, label=ids % 2)
    message = refusal(lambda: spark.calibrate(df))
    assert message.startswith("scores must not be empty or NaN, got 3 of 400; drop those rows or make")
    df = df.selectExpr("id * 1.0D AS score", "IF(id < 5 OR id > 398, NULL, label) AS label")
    message = refusal(lambda: spark.calibrate(df))
    assert message == "labels must not be missing, got 6 of 400; drop those rows"
    none = df.selectExpr("CAST(NULL AS DOUBLE) AS score", "CAST(NULL AS INT) AS label")
    assert "labels must not be missing, got 400 of 400" in refusal(lambda: spark.calibrate(none))


@pytest.mark.parametrize("anomaly_label", ['it\'s \\b "q" \u00e9\n', "", "%"])
def test_labels_may_be_any_text(session: Any, labelled: Any, anomaly_label: str) -> None:
    names = np.array(["\\n", anomaly_label], dtype=object)[labelled[1]]
    df = frame(session, score=labelled[0], label=names)
    certificate = spark.calibrate(df, anomaly_label=anomaly_label)
    assert certificate == calibrate_labelled(labelled[0], names, anomaly_label=anomaly_label)


@pytest.mark.parametrize("kind", ["TINYINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(9, 3)", "BOOLEAN"])
def test_labels_may_be_numbers_of_any_type(session: Any, labelled: Any, kind: str) -> None:
    df = frame(session, score=labelled[0], y=labelled[1]).selectExpr("score", f"CAST(y AS {kind}) AS label")
    whole = calibrate_labelled(*labelled)
    assert spark.calibrate(df) == whole
    assert spark.calibrate(df, anomaly_label=True) == whole
    if kind not in ("TINYINT", "BOOLEAN"):
        turned = df.selectExpr("score", f"CAST(IF(label = 1, 5, 300) AS {kind}) AS label")
        assert spark.calibrate(turned, anomaly_label=5) == whole
        three = turned.selectExpr("score", f"CAST(IF(score > 1, 7, label) AS {kind}) AS label")
        said = refusal(lambda: spark.calibrate(three, anomaly_label=5))
        assert said.startswith("labels must be 5 (anomalous) or one other value (normal), got ")


def test_wrong_columns_are_refused_in_one_sentence(session: Any) -> None:
    import pandas

    df = frame(session, score=[0.1, 0.9], label=[0, 1], text=["a", "b"], list=[[1], [2]])
    for action, sentence in (
        (lambda: spark.calibrate(df, score="scor"), "there is no column 'scor'; did you mean 'score'?"),
        (lambda: spark.calibrate(df, label="y"), "there is no column 'y'; the columns are score, label,"),
        (
            lambda: spark.calibrate(df, score="text"),
            "column 'text' must hold numbers, but its type is string",
        ),
        (lambda: spark.calibrate(df, label="list"), "column 'list' must hold labels: numbers, booleans or"),
        (lambda: spark.calibrate(df, label="score"), "column 'score' cannot be both the score and the label"),
        (lambda: spark.calibrate(df, label="text"), "labels must be 0 (normal) or 1 (anomalous), got '"),
        (lambda: spark.calibrate({}), "df must be a DataFrame of Spark, got builtins dict"),
        (
            lambda: spark.calibrate(pandas.DataFrame()),
            "df must be a DataFrame of Spark, got pandas DataFrame",
        ),
        (lambda: spark.calibrate(df.selectExpr("*", "score")), "there are two columns named 'score'"),
    ):
        message = refusal(action)
        assert message.startswith(sentence)
        assert "\n" not in message


def test_upside_down_scores_are_warned_about(session: Any, labelled: Any) -> None:
    df = frame(session, score=-labelled[0], label=labelled[1])
    with pytest.warns(UpsideDownWarning, match=r"AUC 0\.0"):
        spark.calibrate(df)


@pytest.mark.parametrize("options", RULES.values(), ids=[*RULES])
def test_verdicts_are_those_of_memory_beside_every_threshold(options: dict[str, Any], session: Any) -> None:
    certificate = calibrate_labelled(TIED + np.repeat([0, 1], 160) / 3, np.repeat([0, 1], 160), **options)
    ends = certificate.rule.normal_below, certificate.rule.anomaly_from
    near = [beside for end in ends for beside in (nextafter(end, -inf), end, nextafter(end, inf))]
    scores = np.array([*near, *TIED[:8], -5e-324, 1.7976931348623157e308])
    df = frame(
        session,
        id=np.arange(scores.size + 2),
        score=[*scores.tolist(), nan, None],
        text=["x"] * (scores.size + 2),
    )
    decided = spark.decide(df, certificate)
    assert decided.dtypes[-2:] == [("verdict", "tinyint"), ("prediction_set", "string")]
    assert "Python" not in decided._jdf.queryExecution().toString()
    rows = decided.orderBy("id").collect()
    texts = {(True, False): "{0}", (False, True): "{1}", (True, True): "{0,1}", (False, False): "{}"}
    sets = [texts[bool(zero), bool(one)] for zero, one in certificate.prediction_sets(scores)]
    assert [row.verdict for row in rows] == [*certificate.verdicts(scores), -1, -1]
    assert [row.prediction_set for row in rows] == [*sets, "{0,1}", "{0,1}"]


def test_verdicts_can_be_filtered_in_a_file_whose_statistics_leave_out_nan(
    session: Any, labelled: Any, tmp_path: Path
) -> None:
    certificate = calibrate_labelled(*labelled)
    scores = np.append(labelled[0], [nan, nan])
    frame(session, score=scores).write.parquet(str(tmp_path / "scores"))
    decided = spark.decide(session.read.parquet(str(tmp_path / "scores")), certificate)
    verdicts = certificate.verdicts(labelled[0])
    for verdict in (0, 1, -1):
        expected = int((verdicts == verdict).sum()) + 2 * (verdict == -1)
        assert decided.where(f"verdict = {verdict}").count() == expected


def test_columns_that_would_be_replaced_are_refused(session: Any, labelled: Any) -> None:
    certificate = calibrate_labelled(*labelled)
    df = frame(session, score=[0.5], Verdict=[1])
    assert "there is a column 'Verdict' already" in refusal(lambda: spark.decide(df, certificate))
    assert "there is a column 'score' already" in refusal(lambda: spark.score(df, len))
    text = df.selectExpr("'a' AS score")
    assert "must hold numbers, but its type is string" in refusal(lambda: spark.decide(text, certificate))


def rows_of(session: Any, X: Any, partitions: int, **columns: Any) -> Any:
    features = {f"x{i}": column for i, column in enumerate(X.T)}
    return frame(session, partitions, id=np.arange(len(X)), **features, **columns)


def test_scores_are_those_of_memory_and_other_columns_stay(session: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3))
    df = rows_of(session, X, 3, text=["t"] * 200).selectExpr("*", "array(id) AS list", "now() AS at")
    features = ["x0", "x1", "x2"]
    detectors: list[Any] = [
        IsolationForest(random_state=0, n_estimators=20).fit(X),
        LocalOutlierFactor(novelty=True).fit(X),
        PACWrap(IsolationForest(random_state=0, n_estimators=20), random_state=0).fit(
            X, rng.random(200) < 0.2
        ),
        lambda table: table[:, 0] - table[:, 2],
    ]
    for detector in detectors:
        scored = spark.score(df, detector, features=features, score="s.")
        assert scored.dtypes == [*df.dtypes, ("s.", "double")]
        wrapped = isinstance(detector, PACWrap)
        expected = detector.decision_function(X) if wrapped else anomaly_scores(detector, X)
        np.testing.assert_array_equal([row["s."] for row in scored.orderBy("id").collect()], expected)


def test_a_detector_that_knows_the_names_of_its_features_finds_them(session: Any) -> None:
    import pandas as pd

    X = pd.DataFrame(np.random.default_rng(1).normal(size=(100, 3)), columns=["x2", "x 0", "x.1"])
    detector = IsolationForest(random_state=0, n_estimators=20).fit(X)
    df = frame(session, 2, id=np.arange(100), **{name: X[name].to_numpy() for name in sorted(X)})
    rows = spark.score(df, detector).orderBy("id").collect()
    np.testing.assert_array_equal([row.score for row in rows], anomaly_scores(detector, X))


def test_features_are_all_numbers_or_refused(session: Any) -> None:
    X = np.random.default_rng(1).normal(size=(100, 2))
    df = rows_of(session, X, 2).drop("id")
    first = spark.score(df, lambda table: table.sum(axis=1)).agg({"score": "sum"}).collect()[0][0]
    assert first == pytest.approx(X.sum())
    detector = IsolationForest(n_estimators=5).fit(X)
    labelled = df.selectExpr("*", "1 AS label")
    assert refusal(lambda: spark.score(labelled, detector)) == (
        "the detector was fitted on 2 features, got 3: x0, x1, label; name its columns with features"
    )
    assert "no column holds numbers" in refusal(lambda: spark.score(df.selectExpr("'a' AS a"), len))
    assert "there is no column 'y'" in refusal(lambda: spark.score(df, detector, features=["x0", "y"]))


@pytest.mark.filterwarnings("ignore::pac_wrap.errors.OverlapWarning")
def test_real_data_from_features_to_verdicts(session: Any) -> None:
    needs("thyroid")
    from pac_wrap_paper.data import load

    data = load("thyroid")
    X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
    wrap = PACWrap(IsolationForest(random_state=0), random_state=0).fit(X, y)
    features = [f"x{i}" for i in range(X.shape[1])]
    scored = spark.score(rows_of(session, X, 4, label=y), wrap, features=features).cache()
    certificate = spark.calibrate(scored, LOOSE)
    scores = wrap.decision_function(X)
    assert certificate.to_json() == calibrate_labelled(scores, y, LOOSE).to_json()
    rows = spark.decide(scored, certificate).orderBy("id").select("verdict").collect()
    np.testing.assert_array_equal([row.verdict for row in rows], certificate.verdicts(scores))


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_job_changes_nothing(
    session: Any, labelled: Any, tmp_path: Path
) -> None:
    whole = calibrate_labelled(*labelled).to_json()
    df = frame(session, 4, score=labelled[0], label=labelled[1])
    folder = str(tmp_path)

    def mortal(batches: Iterator[Any]) -> Iterator[Any]:
        import signal

        from pyspark import TaskContext

        number = TaskContext.get().partitionId()
        yield next(batches)
        if number in (1, 2) and not os.path.exists(mark := f"{folder}/{number}"):
            open(mark, "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    assert spark.calibrate(df.mapInArrow(mortal, df.schema)).to_json() == whole
    assert sorted(os.listdir(folder)) == ["1", "2"]


def test_what_spark_itself_refuses_is_not_ours(session: Any) -> None:
    from pyspark.errors import PySparkException

    df = session.range(10).selectExpr("assert_true(id < 5) AS nothing", "id AS score", "id % 2 AS label")
    with pytest.raises(PySparkException, match="is not true"):
        spark.calibrate(df.where("nothing IS NULL"))


def test_without_pyspark_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r'is not installed; run pip install "pac-wrap-ad\[spark\]"$'):
        spark.calibrate(object())


def test_the_example_of_the_page_on_scale(session: Any, labelled: Any) -> None:
    scores, labels = labelled
    detector = LocalOutlierFactor(novelty=True).fit(scores.reshape(-1, 1))
    (example,) = [
        block for block in python_blocks("docs/guide/cluster.md") if "engines import spark" in block
    ]
    names = {
        "df": frame(session, 3, score=scores, label=labels),
        "detector": detector,
        "Guarantee": Guarantee,
    }
    exec(example, names)
    expected = calibrate_labelled(scores, labels, Guarantee(max_fpr=0.01, max_fnr=0.05))
    assert names["certificate"] == expected
    assert names["decided"].columns == ["score", "label", "verdict", "prediction_set"]
    assert names["scored"].columns == ["score", "rescored"]
    assert names["scored"].count() == scores.size
