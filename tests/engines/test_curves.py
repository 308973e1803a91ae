"""Files, Dask and Spark give the curve that memory gives, to the last bit; so do their certificates."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import certify_curve
from pac_wrap.tables.calibrate import certify_curve as of_files
from support import sparksession
from support.daskcluster import needs_dask

RNG = np.random.default_rng(11)
SIZES = (7_000, 900)
# ties, both zeros and infinities, and more points than ranks
SCORES = np.concatenate([RNG.normal(0, 1, SIZES[0]).round(2), RNG.normal(2, 1, SIZES[1])])
SCORES[[0, 1, 2, -1]] = -inf, -0.0, inf, inf
LABELS = np.repeat([0, 1], SIZES)
ORDER = RNG.permutation(SCORES.size)
TOPS: list[dict[str, Any]] = [{}, {"top_fpr": 0.1, "top_fnr": 0.4}]


@cache
def made(*tops: tuple[str, float]) -> str:
    return certify_curve(SCORES[LABELS == 0], SCORES[LABELS == 1], 0.05, 0.1, **dict(tops)).to_json()


def expected(tops: dict[str, Any]) -> str:
    return made(*tops.items())


@pytest.fixture
def frame() -> Any:
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"s": SCORES, "y": LABELS}).iloc[ORDER].reset_index(drop=True)


@pytest.mark.parametrize("tops", TOPS)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_give_the_curve_of_memory(
    tmp_path: Path, frame: Any, ending: str, tops: dict[str, Any]
) -> None:
    for number, (start, end) in enumerate(pairwise([0, 10, 4_000, len(frame)])):
        part, path = frame.iloc[start:end], tmp_path / f"part{number}.{ending}"
        part.to_parquet(path) if ending == "parquet" else part.to_csv(path, index=False)
    found = of_files(str(tmp_path / f"*.{ending}"), 0.05, 0.1, score="s", label="y", **tops)
    assert found.bare.to_json() == expected(tops)


@pytest.mark.parametrize("tops", TOPS)
def test_dask_gives_the_curve_of_memory(frame: Any, tops: dict[str, Any]) -> None:
    from pac_wrap.engines import dask as engine

    parts = needs_dask().from_pandas(frame, npartitions=4)
    found = engine.certify_curve(parts, 0.05, 0.1, score="s", label="y", **tops)
    assert found.to_json() == expected(tops)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with sparksession.session("local[2, 4]", tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.mark.slow
@sparksession.quiet
def test_spark_gives_the_curve_of_memory(session: Any, frame: Any, tmp_path: Path) -> None:
    from pac_wrap.engines import spark as engine
    from pac_wrap.engines.files import EngineFiles
    from pac_wrap.method.curves.curve import CurveRequest

    path = tmp_path / "scores.parquet"
    frame.to_parquet(path)
    df = session.read.parquet(str(path)).repartition(3)
    for tops in TOPS:
        made = engine.certify_curve(df, 0.05, 0.1, score="s", label="y", **tops)
        assert made.to_json() == expected(tops)
    found = EngineFiles("spark", [path], "read_parquet").certify(CurveRequest(0.05, 0.1), ("s", "y"), None)
    assert found.bare.to_json() == expected({})
