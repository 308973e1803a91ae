"""A Spark Connect server in a process of its own: certificates are those of memory, without Python on it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate, certify_curve
from pac_wrap.method.calibrate import calibrate_labelled
from support import sparksession
from support.patience import LIMIT

pytestmark = pytest.mark.slow
SIZE = 60_000
# the same scores in Spark's words and in NumPy's, all of them exact
ROWS = (
    "CAST(pmod(id * 7919, 10007) AS DOUBLE) / 4096 + IF(id % 9 = 0, 2, 0) AS `the.score`",
    "IF(id % 9 = 0, 'fault', 'ok') AS label",
    "IF(id % 9 = 0, IF(id % 2 = 0, 'it''s', 'b\\\\'), NULL) AS kind",
    "CAST(id % 2 AS DOUBLE) AS real",
)
CEILINGS = {"it's": 0.1, "b\\": 0.2}
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from pac_wrap import Guarantee, InputError
from pac_wrap.engines import spark
session = SparkSession.builder.remote(f"sc://127.0.0.1:{sys.argv[1]}").getOrCreate()
assert "connect" in type(session).__module__
size, rows, ceilings = json.loads(sys.argv[2])
df = session.range(0, size, 1, 5).selectExpr(*rows)
options = {"score": "the.score", "anomaly_label": "fault"}
found = {"curve": spark.certify_curve(df, **options).to_json()}
for ansi in ("true", "false"):
    session.conf.set("spark.sql.ansi.enabled", ansi)
    for overlap in ("abstain", "raise", "hold_fnr"):
        made = spark.calibrate(df, Guarantee(0.02, 0.1), overlap=overlap, **options)
        found[f"{overlap} {ansi}"] = made.to_json()
    made = spark.calibrate(df, Guarantee(0.02, ceilings), kinds="kind", **options)
    found[f"kinds {ansi}"] = made.to_json()
try:
    spark.calibrate(df, kinds="real", **options)
except InputError as error:
    found["refused"] = str(error)
certificate = spark.calibrate(df, **options)
decided = spark.decide(df, certificate, score="the.score").groupBy("verdict").count().collect()
found["verdicts"] = {row["verdict"]: row["count"] for row in decided}
session.stop()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    for package in ("grpc", "grpc_status", "zstandard"):
        reason = f'{package} is not installed (pip install "pac-wrap-ad[connect]")'
        pytest.importorskip(package, reason=reason)
    folder, number = tmp_path_factory.mktemp("connect"), sparksession.free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": number,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.ui.enabled": "false",
    }
    arguments = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    with sparksession.started(
        folder,
        "connect",
        "org.apache.spark.deploy.SparkSubmit",
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--master",
        "local[2]",
        *arguments,
        "spark-internal",
    ) as server:
        sparksession.wait_for_port(number, server)
        yield number


@pytest.mark.filterwarnings("ignore::pac_wrap.LabelWarning")  # evenly spaced scores break off
def test_certificates_curves_and_verdicts_through_connect(port: int, tmp_path: Path) -> None:
    # in a process of its own, since one that has a Spark of the other kind takes no other
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CLIENT, str(port), json.dumps([SIZE, ROWS, CEILINGS])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    ids = np.arange(SIZE)
    scores = ids * 7919 % 10007 / 4096 + np.where(ids % 9 == 0, 2, 0)
    labels = np.where(ids % 9 == 0, "fault", "ok").astype(object)
    for overlap in ("abstain", "raise", "hold_fnr"):
        whole = calibrate_labelled(
            scores, labels, Guarantee(0.02, 0.1), overlap=overlap, anomaly_label="fault"
        )
        for ansi in ("true", "false"):
            assert found[f"{overlap} {ansi}"] == whole.to_json()
    faults = {name: scores[(ids % 9 == 0) & (ids % 2 == odd)] for odd, name in enumerate(CEILINGS)}
    by_kind = calibrate(scores[ids % 9 > 0], faults, Guarantee(0.02, CEILINGS))
    assert found["kinds true"] == found["kinds false"] == by_kind.to_json()
    assert found["refused"] == (
        "column 'real' must hold kinds: texts, whole numbers, dates or booleans, but its type is double;"
        " convert it to text"
    )
    assert found["curve"] == certify_curve(scores[ids % 9 > 0], scores[ids % 9 == 0]).to_json()
    verdicts = calibrate_labelled(scores, labels, anomaly_label="fault").verdicts(scores)
    expected = dict(zip(*np.unique(verdicts, return_counts=True), strict=True))
    assert found["verdicts"] == {str(verdict): count for verdict, count in expected.items()}
