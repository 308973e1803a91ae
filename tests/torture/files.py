"""Files of scores: generated CSV, one frame in every format, and certificates that were tampered with."""

import gzip
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap import Certificate, PACWrapWarning, calibrate_labelled
from support.believable import outcome
from support.csv_readers import by_dask, by_decide, by_duckdb, by_spark, by_stream, cases, engine_cases
from support.resealed import mutants
from support.shell import invoke
from torture.record import Outcomes, UnavailableError

Cases = Callable[[range], Iterable[Any]]
_LABELLED: Final = ["--score", "score", "--label", "label"]
_INFINITIES: Final = {"inf": '"Infinity"', "-inf": '"-Infinity"'}


def csv_in_duckdb(random: np.random.Generator, folder: Path) -> Outcomes:
    """Read a hundred generated files with DuckDB."""
    return _compared(random, 100, lambda seeds: by_duckdb(seeds, folder))


def csv_in_a_stream(random: np.random.Generator, folder: Path) -> Outcomes:
    """Read a hundred generated files as streams."""
    return _compared(random, 100, by_stream)


def csv_decided(random: np.random.Generator, folder: Path) -> Outcomes:
    """Decide fifty generated files, from a file and from a stream."""
    form = str(random.choice(["csv", "jsonl"]))
    return _compared(random, 50, lambda seeds: by_decide(seeds, folder, form))


def csv_in_dask(random: np.random.Generator, folder: Path) -> Outcomes:
    """Read a hundred generated files with Dask."""
    _require("dask")
    return _compared(random, 100, lambda seeds: by_dask(seeds, folder), engine_cases)


def csv_in_spark(random: np.random.Generator, folder: Path) -> Outcomes:
    """Read two hundred generated files with Spark, in one job."""
    _require("pyspark")
    return _compared(random, 200, lambda seeds: by_spark(seeds, folder), engine_cases)


def tampered(random: np.random.Generator, folder: Path) -> Outcomes:
    """Load fifty certificates that were changed and sealed again."""
    found = mutants(seed=int(random.integers(1 << 31)), count=50)
    return Counter(outcome(what, text) for what, text in found)


def other_format(random: np.random.Generator, folder: Path) -> str:
    """Calibrate on scores in one format, decide and evaluate them in another, and evaluate the output."""
    kind = str(random.choice(["float32", "float64"]))
    size = int(random.integers(60, 400))
    labels = np.repeat([0, 1], [size, size])
    # few different values, so that thresholds stand on ties
    pool = random.normal(size=int(random.integers(2, 40))).astype(kind)
    scores = (random.choice(pool, 2 * size) + labels * random.choice(pool, 2 * size)).astype(kind)
    scores[random.integers(0, scores.size, 4)] = random.choice(
        np.array([np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38], dtype=kind), 4
    )
    order = [str(name) for name in random.permutation(sorted(_WRITERS))]
    first, second, output = folder / order[0], folder / order[1], folder / f"out{_output(random)}"
    made = _WRITERS[order[0]](first, scores, labels)
    given = _WRITERS[order[1]](second, scores, labels)
    saved = folder / "certificate.json"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        asked = ["--max-fpr", "0.2", "--max-fnr", "0.2"]
        done = invoke("calibrate", first, *_LABELLED, *asked, "-o", saved)
        assert done.code in (0, 1), done
        certificate = Certificate.load(saved)
        same = calibrate_labelled(made, labels, certificate.guarantee)
    assert same.bare.to_json() == certificate.bare.to_json(), (order, kind)
    done = invoke("decide", saved, second, "--score", "score", "-o", output, "-q")
    if done.code == 2:
        assert "cannot be decided: as float32" in done.err, (order, kind, done)
        return "refused: a float32 stands for numbers on both sides of a threshold"
    assert (done.code, done.err) == (0, ""), (order, kind, done)
    expected = certificate.thresholds.rule.verdicts(given.astype(certificate.score_type).astype(np.float64))
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT verdict FROM '{output}'").fetchall()
    assert [int(verdict) for (verdict,) in found] == expected.tolist(), (order, kind)
    shown = {invoke("evaluate", saved, table, *_LABELLED).out for table in (second, output)}
    assert len(shown) == 1, (order, kind, shown)
    return "the same verdicts"


def _compared(
    random: np.random.Generator, count: int, read: Callable[[range], int], made: Cases = cases
) -> Outcomes:
    start = int(random.integers(1 << 40))
    seeds = range(start, start + count)
    same = read(seeds)
    return {"the same rows": same, "refused": sum(1 for _ in made(seeds)) - same}


def _require(package: str) -> None:
    try:
        __import__(package)
    except ImportError:
        raise UnavailableError(f"{package} is not installed") from None


def _output(random: np.random.Generator) -> str:
    return str(random.choice([".csv", ".csv.gz", ".jsonl", ".parquet"]))


def _csv(path: Path, scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    texts = [str(score) for score in scores]
    lines = [f"{text},{label}" for text, label in zip(texts, labels, strict=True)]
    content = ("\n".join(["score,label", *lines]) + "\n").encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return np.array(list(map(float, texts)))


def _jsonl(path: Path, scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.float64]:
    texts = [str(score) for score in scores]
    lines = [
        f'{{"score": {_INFINITIES.get(text, text)}, "label": {label}}}\n'
        for text, label in zip(texts, labels, strict=True)
    ]
    assert all(json.loads(line) for line in lines)
    path.write_text("".join(lines), encoding="utf-8")
    return np.array(list(map(float, texts)))


def _parquet(path: Path, scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    with duckdb.connect() as connection:
        connection.register("columns", {"score": scores, "label": labels})
        connection.execute(f"COPY (SELECT * FROM columns) TO '{path}' (FORMAT parquet)")
    return scores


def _doubles(path: Path, scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    return _parquet(path, scores.astype(np.float64), labels)


def _npz(path: Path, scores: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    np.savez(path, score=scores, label=labels)
    return scores


Writer = Callable[[Path, NDArray[Any], NDArray[Any]], NDArray[Any]]
# each writes a file and returns the scores that stand in it
_WRITERS: Final[dict[str, Writer]] = {
    "a.csv": _csv,
    "b.csv.gz": _csv,
    "c.jsonl": _jsonl,
    "d.parquet": _parquet,
    "e.parquet": _doubles,
    "f.npz": _npz,
}
