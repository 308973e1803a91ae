"""Traffic in Spark and Dask gets the certificate that it gets in memory, byte for byte."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pac_wrap import Guarantee
from pac_wrap.engines import dask as by_dask
from pac_wrap.engines import spark as by_spark
from support import sparksession
from support.daskcluster import needs_dask
from support.strategies import refusal
from support.traffic import PROMISES, in_memory, spelled, traffic

dd = needs_dask()
pd = pytest.importorskip("pandas")
COLUMNS: dict[str, Any] = {"score": "s", "review": "r"}
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")


@pytest.mark.parametrize("way", ["numbers", "booleans", "texts"])
@pytest.mark.parametrize(("parts", "kind"), [(1, np.float64), (9, np.float64), (9, np.float32)])
def test_dask_gives_the_certificate_of_memory(way: str, parts: int, kind: Any) -> None:
    scores, reviews = traffic(kind=kind)
    frame = dd.from_pandas(pd.DataFrame({"s": scores, "r": spelled(reviews, way)}), npartitions=parts)
    for name, promise in PROMISES.items():
        assert by_dask.calibrate(frame, promise, **COLUMNS).to_json() == in_memory(scores, reviews, name)
    without = by_dask.calibrate(frame, PROMISES["alarms"], score="s")
    assert without.to_json() == in_memory(scores, None, "alarms")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sparksession.session("local[2, 4]", tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.mark.slow
@sparksession.quiet
@pytest.mark.parametrize(("way", "kind"), [("numbers", np.float64), ("texts", np.float32)])
def test_spark_gives_the_certificate_of_memory(spark: Any, way: str, kind: Any) -> None:
    scores, reviews = traffic(kind=kind)
    frame = spark.createDataFrame(pd.DataFrame({"s": scores, "r": spelled(reviews, way)}))
    for name, promise in PROMISES.items():
        assert by_spark.calibrate(frame, promise, **COLUMNS).to_json() == in_memory(scores, reviews, name)


@pytest.mark.parametrize(
    "engine", ["dask", pytest.param("spark", marks=[pytest.mark.slow, sparksession.quiet])]
)
def test_what_is_wrong_with_traffic_is_one_sentence(engine: str, request: pytest.FixtureRequest) -> None:
    def refused(scores: list[float], reviews: list[Any]) -> str:
        rows = pd.DataFrame({"s": scores, "r": reviews})
        if engine == "dask":
            return refusal(lambda: by_dask.calibrate(dd.from_pandas(rows, npartitions=1), asked, **COLUMNS))
        frame = request.getfixturevalue("spark").createDataFrame(rows)
        return refusal(lambda: by_spark.calibrate(frame, asked, **COLUMNS))

    asked = Guarantee(max_false_alarms=0.01)
    assert refused([1.0, 2.0], ["1", "maybe"]) == (
        "column 'r' must be 1 (right), 0 (wrong) or empty (not reviewed), got 'maybe'; fix those rows"
    )
    assert refused([1.0, np.nan], [1.0, 0.0]) == (
        "column 's' is empty or NaN in 1 reviewed row; give each a score, or drop the review"
    )
