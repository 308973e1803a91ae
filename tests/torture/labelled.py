"""Groups, kinds, curves, monitors and labels as they come: generated tables, and tampered files.

Every source must give the same file or refuse; thresholds, bounds and evidence are counted again by hand.
"""

import csv
import json
import random as plain
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from math import comb, inf, isinf, isnan, log, nan, nextafter, sqrt
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np
import pandas as pd
from scipy.special import betaincc, gammaln, logsumexp
from scipy.stats import beta

from pac_wrap import (
    Certificate,
    Curve,
    GroupCertificate,
    Guarantee,
    InputError,
    LabelUntil,
    Monitor,
    PACWrapError,
    PACWrapWarning,
    calibrate,
    calibrate_labelled,
    certify_curve,
    certify_curve_chunks,
    certify_curve_labelled,
)
from support.by_hand import alarm_from, budget, clear_below, drawn
from support.resealed import NUMBERS, OTHERS, TEXTS, sealed
from support.shell import invoke
from torture.record import Outcomes

Rows = list[tuple[float, Any, Any]]
Source = Callable[[], str]

# texts that a reader may take for something else; `plain` keeps a column of them from being read as numbers
_TEXTS: Final = [
    "plain", "it's", "a\\b", "%s", " ", "x,y", 'say "hi"', "\u00e9", "7", "7.0", "NULL", "nan", "x" * 300,
    "\x1b[31m", "\u202e", None,
]  # fmt: skip  # a row is one line
_COLUMNS: Final = ["--score", "score", "--label", "label"]
_CUTS: Final = 4
# how a monitor goes on
_WAYS: Final = {
    "text": "resumed from text",
    "file": "resumed from its file",
    "interrupted": "interrupted and begun again",
    "named again": "a part that came twice refused",
}


def groups(random: np.random.Generator, folder: Path) -> Outcomes:
    """Certify generated groups from every source, and tamper with the file."""
    rows, ceiling, delta = _table(random), float(random.choice([0.1, 0.2, 0.5])), 0.1
    together, pool = bool(random.integers(2)), bool(random.integers(2))
    asked = Guarantee(ceiling, ceiling, delta, delta)
    words = ["--group", "name", *["--together"] * together, *["--pool"] * pool]
    options = {"together": together, "pool": pool}
    found = _from_everywhere(random, rows, folder, asked, words, "by", options)
    if found is None:
        return {"refused by every source": 1}
    certificate = GroupCertificate.from_json(found)
    _check_groups(certificate, rows, ceiling, delta)
    outcomes = _tampered(random, found, GroupCertificate.from_json, _check_alone)
    return outcomes + Counter({"the same certificate from every source": 1})


def kinds(random: np.random.Generator, folder: Path) -> Outcomes:
    """Certify generated kinds from every source, and tamper with the file."""
    rows, ceiling, delta = _table(random), float(random.choice([0.1, 0.2, 0.5])), 0.1
    found = _from_everywhere(
        random, rows, folder, Guarantee(ceiling, ceiling, delta, delta), ["--kind", "name"], "kinds", {}
    )
    if found is None:
        return {"refused by every source": 1}
    certificate = Certificate.from_json(found)
    names = {name for _, _, name in rows}
    for label, pick, edge in (
        (0, max, certificate.thresholds.alarm_from),
        (1, min, certificate.thresholds.clear_below),
    ):
        counted = [
            (alarm_from, clear_below)[label](scores, budget(len(scores), ceiling, delta))
            for scores in (_own(rows, label, name) for name in names)
            if scores
        ]
        assert edge == (pick(counted) if counted else (inf, -inf)[label]), (label, edge, counted)
    outcomes = _tampered(random, found, Certificate.from_json, _check_kinds)
    return outcomes + Counter({"the same certificate from every source": 1})


def curves(random: np.random.Generator, folder: Path) -> Outcomes:
    """Certify a generated curve from every source, choose from it by hand, and tamper with the file."""
    deltas = [float(one) for one in random.choice([0.05, 0.1, 0.3], 2)]
    low, high = drawn(random, int(random.integers(1, 45))), drawn(random, int(random.integers(1, 45)), 2.0)
    rows: Rows = [(score, label, None) for label, own in ((0, low), (1, high)) for score in own]
    rows = [rows[place] for place in random.permutation(len(rows))]
    _spoil(random, rows)
    scores, labels, _ = _columns(rows)
    cuts = _cut(random, len(rows))
    chunks = [(scores[start:end], labels[start:end]) for start, end in cuts]
    words = ["--delta-fpr", deltas[0], "--delta-fnr", deltas[1]]

    def by_file(name: str) -> str:
        path, saved = _written(folder / name, rows), folder / f"{name}.curve"
        done = invoke("curve", path, *_COLUMNS, *words, "-o", saved)
        return _saved(done, saved, Curve)

    def by_dask() -> str:
        from pac_wrap.engines import dask as engine

        return engine.certify_curve(_frame(random, rows), *deltas).bare.to_json()

    name = str(random.choice(["a.csv", "b.parquet", "c.npz"]))
    sources: dict[str, Source] = {
        "memory": lambda: certify_curve_labelled(scores, labels, *deltas).bare.to_json(),
        "chunks": lambda: certify_curve_chunks(lambda: chunks, *deltas).bare.to_json(),
        name: lambda: by_file(name),
        "Dask": by_dask,
    }
    found = _agreed(sources)
    if found is None:
        return {"refused by every source": 1}
    curve = Curve.from_json(found)
    assert curve == certify_curve(low, high, *deltas).bare
    _check_curve(curve)
    _check_choice(random, curve, low, high)
    outcomes = _tampered(random, found, Curve.from_json, _check_curve)
    return outcomes + Counter({"the same curve from every source": 1})


def monitors(random: np.random.Generator, folder: Path) -> Outcomes:
    """Monitor a random stream with interruptions, count the evidence by hand, and tamper with the state."""
    certificate, curve = _monitored(int(random.integers(4)))
    alpha = float(random.choice([0.01, 0.2, 0.5]))
    shift = float(random.choice([0.0, 0.0, 0.7, 1.5]))
    size = int(random.integers(1, 300))
    truth = (random.random(size) < random.choice([0.0, 0.3, 1.0])).astype(float)
    scores = np.round(random.normal(2.5 * truth + shift), 2)
    labels = np.where(random.random(size) < random.choice([0.0, 0.5, 1.0]), truth, nan)
    scores[random.random(size) < 0.02] = nan
    whole, resumed = Monitor(certificate, curve, alpha), Monitor(certificate, curve, alpha)
    path, outcomes = folder / "state.json", Counter[str]()
    for number, (start, end) in enumerate(_cut(random, size)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PACWrapWarning)
            verdicts = certificate.verdicts(scores[start:end])
        part = {"labels": labels[start:end], "scores": scores[start:end], "id": f"part {number}"}
        whole.update(verdicts, **part)
        way = str(random.choice(sorted(_WAYS)))
        if way == "text":
            resumed = Monitor(certificate, curve, alpha).resumed(resumed.to_json())
            resumed.update(verdicts, **part)
        else:
            resumed.save(path)
            before = path.read_bytes()
            if way == "interrupted":
                with suppress(KeyboardInterrupt), Monitor(certificate, curve, alpha).on(path) as other:
                    other.update(verdicts, **part)
                    raise KeyboardInterrupt
                assert path.read_bytes() == before
            with Monitor(certificate, curve, alpha).on(path) as resumed:
                resumed.update(verdicts, **part)
            if way == "named again":
                with suppress(InputError), Monitor(certificate, curve, alpha).on(path) as other:
                    other.update(verdicts, **part)
                    raise AssertionError("a part was counted twice")
            assert path.read_text() == resumed.to_json()
        assert resumed.to_json() == whole.to_json(), way
        outcomes[f"the same state, {_WAYS[way]}"] += 1
    _check_monitor(whole, certificate, scores, labels)
    state = whole.to_json()
    fresh = Monitor(certificate, curve, alpha)
    return outcomes + _tampered(random, state, fresh.resumed, _check_state)


def labels_as_they_come(random: np.random.Generator, folder: Path) -> Outcomes:
    """Add labels one by one and in batches, and monitor verdicts whose labels are late, wrong or repeated."""
    if random.integers(2):
        return _until(random)
    return _reviewed(random, folder)


# ---- tables from every source


def _table(random: np.random.Generator) -> Rows:
    """Return scores and labels of up to six groups or kinds, in random order, now and then spoiled."""
    names: list[Any] = [int(one) for one in random.permutation(9)]
    if random.integers(2):
        names = ["plain", *(_TEXTS[place] for place in random.permutation(np.arange(1, len(_TEXTS))))]
    rows: Rows = []
    for name in names[: int(random.integers(1, 7))]:
        for label, most in ((0, 60), (1, 60)):
            size = int(random.integers(0, most)) if random.random() < 0.8 else 0
            rows += [(score, label, name) for score in drawn(random, size, 4.0 * label)]
    rows = [rows[place] for place in random.permutation(len(rows))]
    _spoil(random, rows)
    return rows


def _spoil(random: np.random.Generator, rows: Rows) -> None:
    """Put a fault into one row of every fourth table: no score, no label, or one that is neither 0 nor 1."""
    if rows and random.random() < 0.25:
        place = int(random.integers(len(rows)))
        score, label, name = rows[place]
        rows[place] = [(nan, label, name), (score, 2, name), (score, None, name)][int(random.integers(3))]


def _from_everywhere(
    random: np.random.Generator,
    rows: Rows,
    folder: Path,
    asked: Guarantee,
    words: list[str],
    as_what: str,
    options: dict[str, Any],
) -> str | None:
    """Return the file that every source gives, without its origin, or None if every source refuses."""
    scores, labels, names = _columns(rows)
    promise = ["--max-fpr", asked.max_fpr, "--max-fnr", asked.max_fnr]
    promise += ["--delta-fpr", asked.delta_fpr, "--delta-fnr", asked.delta_fnr]
    kind: Any = GroupCertificate if as_what == "by" else Certificate

    def by_file(name: str) -> str:
        path, saved = _written(folder / name, rows), folder / f"{name}.json"
        done = invoke("calibrate", path, *_COLUMNS, *words, *promise, "-o", saved)
        return _saved(done, saved, kind)

    def by_dask() -> str:
        from pac_wrap.engines import dask as engine

        given = {as_what: "name", **options}
        return str(engine.calibrate(_frame(random, rows), asked, **given).bare.to_json())

    def by_memory() -> str:
        given = {as_what: names, **options}
        return str(calibrate_labelled(scores, labels, asked, **given).bare.to_json())

    # a CSV has texts only
    texts = any(isinstance(one, str) for one in names)
    name = str(random.choice(["a.csv", "b.parquet"] if texts else ["b.parquet"]))
    sources: dict[str, Source] = {
        "memory": by_memory,
        name: lambda: by_file(name),
        "Dask": by_dask,
    }
    return _agreed(sources)


def _agreed(sources: dict[str, Source]) -> str | None:
    """Return what all sources give, or None if all refuse in a printable sentence."""
    found: dict[str, str | None] = {}
    said: dict[str, str] = {}
    for name, source in sources.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PACWrapWarning)
            try:
                found[name] = source()
            except PACWrapError as error:
                found[name], said[name] = None, _sentence(error)
    assert len(set(found.values())) == 1, (found, said)
    return found["memory"]


def _sentence(error: PACWrapError) -> str:
    """Return what a refusal says, in one printable sentence."""
    said = str(error)
    assert said.isprintable(), said
    assert 0 < len(said) <= 2100, said
    return said


def _saved(done: Any, path: Path, kind: Any) -> str:
    """Return the file that a command wrote, without its origin; a refusal is raised and leaves no file."""
    if done.code == 2:
        assert not path.exists()
        assert "Traceback" not in done.err
        raise InputError(done.err.splitlines()[-1])
    assert done.code in (0, 1), done
    return str(kind.load(path).bare.to_json())


def _columns(rows: Rows) -> tuple[Any, Any, Any]:
    labels = [nan if label is None else label for _, label, _ in rows]
    names = np.array([None] * len(rows), dtype=object)
    names[:] = [name for _, _, name in rows]
    return np.array([score for score, _, _ in rows], dtype=float), np.array(labels), names


def _frame(random: np.random.Generator, rows: Rows) -> Any:
    import dask
    import dask.dataframe as dd

    dask.config.set(scheduler="synchronous")
    scores, labels, names = _columns(rows)
    if all(isinstance(name, int) for name in names):
        names = names.astype(np.int64)
    frame = pd.DataFrame({"score": scores, "label": labels, "name": names})
    return dd.from_pandas(frame, npartitions=int(random.integers(1, 4)))


def _written(path: Path, rows: Rows) -> Path:
    """Write rows as CSV, Parquet or NumPy's archive, and return the path."""
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as text:
            writer = csv.writer(text)
            writer.writerow(["score", "label", "name"])
            writer.writerows(
                (repr(score), "" if label is None else label, name) for score, label, name in rows
            )
        return path
    scores, labels, names = _columns(rows)
    if path.suffix == ".npz":
        np.savez(path, score=scores, label=labels)
        return path
    whole = all(isinstance(name, int) for name in names)
    with duckdb.connect() as connection:
        column = "BIGINT" if whole else "VARCHAR"
        connection.execute(f"CREATE TABLE made (score DOUBLE, label INTEGER, name {column})")
        if rows:
            connection.executemany("INSERT INTO made VALUES (?, ?, ?)", [list(row) for row in rows])
        connection.execute(f"COPY made TO '{path}' (FORMAT parquet)")
    return path


def _cut(random: np.random.Generator, size: int) -> list[tuple[int, int]]:
    """Return the parts of random places that cut so many rows."""
    ends = sorted({0, size, *random.integers(0, size + 1, int(random.integers(0, _CUTS))).tolist()})
    return list(pairwise(ends)) or [(0, size)]


def _own(rows: Rows, label: int, name: Any) -> list[float]:
    return [score for score, of, group in rows if of == label and group == name]


# ---- what must be true of a file


def _tampered(
    random: np.random.Generator, text: str, load: Callable[[str], Any], check: Callable[[Any], None]
) -> Counter[str]:
    """Change values anywhere in a file and make its checksum fit; what still loads must not be false."""
    outcomes: Counter[str] = Counter()
    for _ in range(10):
        rng = plain.Random(int(random.integers(1 << 40)))
        content = json.loads(text)
        for _ in range(rng.choice((1, 1, 2))):
            _change(rng, content)
        changed = sealed(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PACWrapWarning)
                found = load(changed)
        except PACWrapError as error:
            _sentence(error)
            outcomes["tampered file: refused"] += 1
            continue
        assert str(found).replace("\n", "").isprintable()
        assert load(found.to_json()).to_json() == found.to_json()
        check(found)
        outcomes["tampered file: nothing in it is false"] += 1
    return outcomes


def _change(rng: plain.Random, node: Any) -> None:
    """Replace one value, at any depth, by one near it or by any other."""
    while True:
        places = [*node] if isinstance(node, dict) else [*range(len(node))]
        place = rng.choice([one for one in places if one != "checksum"])
        value = node[place]
        if not (isinstance(value, dict | list) and value) or rng.random() < 0.1:
            break
        node = value
    near: list[Any] = [value]
    if type(value) is int:
        near = [value + 1, value - 1, 2 * value, float(value)]
    elif type(value) is float:
        near = [nextafter(value, inf), nextafter(value, -inf), value * 1.01, -value]
    elif type(value) is str:
        near = [f"{value}0", value[:-1], value.upper(), "0" * 16]
    elsewhere = node[rng.choice(places)]
    node[place] = json.loads(
        json.dumps(rng.choice(rng.choice([near, near, [elsewhere], NUMBERS, TEXTS, OTHERS])))
    )


def _check_groups(certificate: GroupCertificate, rows: Rows, ceiling: float, delta: float) -> None:
    """Compare the thresholds of all groups, and of the pool, with those counted by hand."""
    names = {name for _, _, name in rows}
    assert set(certificate.certificates) == names
    shares = (delta, delta) if certificate.shares is None else certificate.shares
    few = set()
    for name in names:
        own = [_own(rows, label, name) for label in (0, 1)]
        most = [budget(len(own[label]), ceiling, shares[label]) for label in (0, 1)]
        found = certificate.certificates[name].thresholds
        assert found.alarm_from == alarm_from(own[0], most[0]), (name, found)
        assert found.clear_below == clear_below(own[1], most[1]), (name, found)
        few |= {name} if None in most else set()
    if certificate.pool is not None:
        own = [[score for name in few for score in _own(rows, label, name)] for label in (0, 1)]
        most = [budget(len(own[label]), ceiling, shares[label]) for label in (0, 1)]
        found = certificate.pool.thresholds
        assert (found.alarm_from, found.clear_below) == (
            alarm_from(own[0], most[0]),
            clear_below(own[1], most[1]),
        )


def _check_alone(certificate: GroupCertificate) -> None:
    """Check every group of a file against itself: budgets, and shares that hold together."""
    asked, shares = certificate.asked, certificate.shares
    together = [1.0, 1.0]
    for one in [*certificate.certificates.values(), *([certificate.pool] if certificate.pool else [])]:
        _check_budgets(one)
        _check_rule(one)
    if shares is not None and certificate.pool is None:
        for one in certificate.certificates.values():
            for side, clause in enumerate((one.fpr, one.fnr)):
                if clause.budget is not None and clause.budget.errors is not None:
                    together[side] *= clause.budget.confidence
        for side, most in enumerate((asked.delta_fpr, asked.delta_fnr)):
            assert together[side] >= 1.0 - most - 1e-9


def _check_kinds(certificate: Certificate) -> None:
    """Check every clause of a certificate against itself, and the rule against the binding clauses."""
    _check_budgets(certificate)
    _check_rule(certificate)


def _check_budgets(certificate: Certificate) -> None:
    for clause in certificate.clauses:
        if clause.budget is not None and clause.n <= 200:
            assert clause.budget.errors == budget(clause.n, clause.budget.rate, clause.budget.delta), clause


def _check_rule(certificate: Certificate) -> None:
    """Check that one threshold lies between the two where they separate, and that two keep both else."""
    low, high, rule = certificate.thresholds.alarm_from, certificate.thresholds.clear_below, certificate.rule
    if low is None or high is None:
        return
    if low <= high and low < inf:
        assert rule.single, certificate
        assert low <= rule.anomaly_from <= high, certificate
    else:
        assert rule.anomaly_from >= low, certificate
        assert rule.normal_below <= high, certificate


# ---- curves


def _check_curve(curve: Curve) -> None:
    """Check the bounds of both classes: each is Clopper and Pearson's, and all hold together."""
    for side in (curve.normal, curve.anomalous):
        if not side.n or side.n > 100 or side.top is not None:
            continue
        exact = beta.isf(side.level, np.array(side.ranks) + 1.0, side.n - np.array(side.ranks))
        assert np.allclose(side.bounds, exact, rtol=1e-6, atol=1e-10), side
        failing = 1.0 - _within(side.n, side.ranks, side.bounds)
        assert side.delta * 0.999 <= failing <= side.delta * (1.0 + 1e-9), (failing, side)


def _within(n: int, ranks: Sequence[int], bounds: Sequence[float]) -> float:
    """Return the chance that more than r of n uniform numbers keep the bound of each rank r: eq. (35)."""
    ways = np.array([[comb(n - k, j) for j in range(n + 1)] for k in range(n + 1)], dtype=float)
    more = np.arange(n + 1)
    mass, done = np.zeros(n + 1), 0.0
    mass[0] = 1.0
    for rank, bound in zip(ranks, bounds, strict=True):
        share = (bound - done) / (1.0 - done)
        after = np.zeros(n + 1)
        for k in np.flatnonzero(mass):
            rest = n - k - more[: n - k + 1]
            after[k:] += mass[k] * ways[k, : n - k + 1] * share ** more[: n - k + 1] * (1.0 - share) ** rest
        after[: rank + 1] = 0.0
        mass, done = after, bound
    return float(mass.sum())


def _check_choice(random: np.random.Generator, curve: Curve, low: list[float], high: list[float]) -> None:
    """Compare bounds at thresholds, and the chosen threshold, with errors counted by hand."""

    def bounds(at: float) -> tuple[float, float]:
        errors = sum(score >= at for score in low), sum(score < at for score in high)
        sides = zip((curve.normal, curve.anomalous), errors, strict=True)
        fpr, fnr = (
            next((bound for rank, bound in zip(side.ranks, side.bounds, strict=True) if rank >= count), 1.0)
            for side, count in sides
        )
        return fpr, fnr

    edges = [edge for score in {*low, *high} for edge in (score, nextafter(score, inf)) if not isinf(edge)]
    for at in random.choice(edges or [0.0], 5).tolist():
        assert (float(curve.fpr(at)), float(curve.fnr(at))) == bounds(at)
        if min(bounds(at)) < 1.0:
            certificate = curve.at(at)
            assert _certified(certificate) == bounds(at)
            assert certificate.verdicts([at, nextafter(at, -inf)]).tolist() == [1, 0]
            assert certificate == Certificate.from_json(certificate.to_json())
    ceiling = float(random.choice([0.2, 0.5, 0.8, 0.95]))
    best = min((bounds(at)[1] for at in edges if bounds(at)[0] <= ceiling), default=None)
    try:
        chosen = _certified(curve.choose(max_fpr=ceiling))
    except InputError:
        assert best is None, (best, ceiling)
    else:
        assert chosen[0] <= ceiling
        assert chosen[1] == best, (chosen, best, ceiling)


def _certified(certificate: Certificate) -> tuple[float, float]:
    kept = [clause.budget for clause in (certificate.fpr, certificate.fnr)]
    fpr, fnr = (1.0 if one is None else one.rate for one in kept)
    return fpr, fnr


# ---- monitors


def _monitored(number: int) -> tuple[Certificate, Curve | None]:
    """Return one of four certificates, with a curve or without."""
    random = np.random.default_rng(number)
    normal, anomalous = random.normal(size=200), random.normal((1.0, 4.0)[number % 2], 1.0, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        overlap = "abstain" if number < 2 else "hold_fnr"
        found = calibrate(normal, anomalous, Guarantee(0.1, 0.1), overlap=overlap)
        return found, certify_curve(normal, anomalous) if number % 2 else None


def _check_monitor(monitor: Monitor, certificate: Certificate, scores: Any, labels: Any) -> None:
    """Count the evidence of both promises by hand: eqs. (81) to (83), after every label."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        verdicts = certificate.verdicts(scores)
    for name, label, wrong in (("FPR", 0, 1), ("FNR", 1, 0)):
        chosen = (labels == label) & ~np.isnan(scores)
        watch = next((one for one in monitor.watches if one.name == name), None)
        if watch is None:
            continue
        assert watch.ceiling is not None
        heights = _evidence((verdicts[chosen] == wrong).astype(int), watch.ceiling)
        assert abs(watch.log_evidence - heights[-1]) < 1e-6 * max(1.0, abs(heights[-1])), (name, heights[-1])
        over = np.flatnonzero(heights[1:] >= -log(watch.alpha))
        alarm = next((one for one in monitor.alarms if one.watch == name), None)
        if abs(heights + log(watch.alpha)).min() > 1e-6:
            assert (alarm is not None) == bool(over.size), name
            if alarm is not None:
                assert alarm.row == np.flatnonzero(chosen)[over[0]] + 1


def _evidence(errors: Any, ceiling: float) -> Any:
    """Return the logarithm of the evidence before any point and after each: eqs. (81) to (83)."""
    n, odds = errors.size, ceiling / (1.0 - ceiling)
    count = max(1, min(24, int(log(max(0.95 / 0.05 / odds, 1.0)) / log(sqrt(2.0)))))
    apart = max(sqrt(2.0), (19.0 / odds) ** (1.0 / count))
    raised = odds * apart ** np.arange(1, count + 1)
    rates = raised / (1.0 + raised)
    starts = [0]
    while starts[-1] < n:
        starts.append(starts[-1] + max(32, starts[-1] // 128))
    ones = np.r_[0, np.cumsum(errors)]
    found = []
    for m in range(n + 1):
        placed = [start for start in starts if start < m]
        weights = [1.0 / ((j + 1) * (j + 2)) for j in range(len(placed))]
        terms = [log(1.0 - sum(weights))]
        for start, weight in zip(placed, weights, strict=True):
            k, rest = ones[m] - ones[start], (m - start) - (ones[m] - ones[start])
            paths = k * np.log(rates / ceiling) + rest * np.log((1.0 - rates) / (1.0 - ceiling))
            terms.append(log(weight) + logsumexp(paths) - log(count))
        k = float(ones[m])
        whole = (
            gammaln(k + 1) + gammaln(m - k + 1) - gammaln(m + 2) + log(betaincc(k + 1, m - k + 1, ceiling))
        )
        whole -= log(1.0 - ceiling) + k * log(ceiling) + (m - k) * log(1.0 - ceiling)
        found.append(np.logaddexp(logsumexp(terms), whole) - log(2.0))
    return np.array(found)


def _check_state(monitor: Monitor) -> None:
    """Go on with a state that was tampered with and believed: nothing may fail, and nothing may be lost."""
    before = monitor.rows
    monitor.update([1, 0, -1], [0, 1, nan], scores=[9.0, -9.0, 0.0])
    assert monitor.rows == before + 3
    assert all(isinstance(one.log_evidence, float) and not isnan(one.log_evidence) for one in monitor.watches)


# ---- labels as they come


def _until(random: np.random.Generator) -> Outcomes:
    """Add labels one by one and in batches, with batches that are refused in between."""
    ceiling, every, most = float(random.choice([0.1, 0.3])), int(random.integers(1, 30)), 120
    threshold = None if random.integers(2) else 1.5
    asked = Guarantee(ceiling, ceiling, 0.1, 0.1)
    single, parts = (LabelUntil(asked, every, most, threshold) for _ in range(2))
    size = int(random.integers(1, 300))
    truth = random.integers(0, 2, size)
    scores = np.round(random.normal(float(random.choice([1.0, 3.0, 6.0])) * truth), 1)
    bad: list[tuple[Any, Any]] = [([nan], [0]), ([1.0], [2]), ([1.0, 2.0], [0]), (["a"], [1])]
    refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        for score, label in zip(scores.tolist(), truth.tolist(), strict=True):
            if single.done:
                break
            single.add([score], [label])
        for start, end in _cut(random, size):
            if parts.done:
                break
            if random.integers(2):
                before = str(parts)
                with suppress(InputError):
                    parts.add(*bad[int(random.integers(len(bad)))])
                    raise AssertionError("a batch that should be refused was taken")
                assert str(parts) == before
                refused += 1
            parts.add(scores[start:end], truth[start:end])
        assert (str(single), single.labels) == (str(parts), parts.labels)
        if not all(single.labels):
            return {"the same labels, one by one and in batches": 1, "bad batch refused": refused}
        found, same = single.certificate, parts.certificate
    outcomes = {"the same labels, one by one and in batches": 1}
    if found is None or same is None:
        assert found is same
        return outcomes
    assert found.bare.to_json() == same.bare.to_json()
    taken = [scores[:size][truth == label][:count].tolist() for label, count in enumerate(single.labels)]
    for label, clause in enumerate((found.fpr, found.fnr)):
        _check_looks(clause, taken[label], every, most, label)
    return outcomes | ({"bad batch refused": refused} if refused else {})


def _check_looks(clause: Any, own: list[float], every: int, most: int, label: int) -> None:
    """Count the budget of the latest look by hand, and the chance that any look fails: eqs. (38) to (40)."""
    looks = list(range(every, most + 1, every))
    local = None if clause.budget is None else clause.budget.delta
    if local is None or not looks:
        return
    rate = clause.budget.rate
    budgets = [budget(n, rate, local) for n in looks]
    failing, mass, before = 0.0, {0: 1.0}, 0
    for n, allowed in zip(looks, budgets, strict=True):
        m, before, after = n - before, n, Counter[int]()
        for count, weight in mass.items():
            for more in range(m + 1):
                after[count + more] += weight * comb(m, more) * rate**more * (1.0 - rate) ** (m - more)
        mass = dict(after)
        if allowed is not None:
            failing += sum(weight for count, weight in mass.items() if count <= allowed)
            mass = {count: weight for count, weight in mass.items() if count > allowed}
    assert failing <= 0.1 * (1.0 + 1e-9), failing
    reached = [allowed for n, allowed in zip(looks, budgets, strict=True) if n <= clause.n]
    last = reached[-1] if reached else None
    assert clause.budget.errors == last, (clause, reached)
    assert clause.threshold == (alarm_from, clear_below)[label](own[: clause.n], last), clause


def _reviewed(random: np.random.Generator, folder: Path) -> Outcomes:
    """Monitor verdicts from a pipe or a file, with labels that are late, contradictory or malformed."""
    number = int(random.integers(4))
    certificate, _ = _monitored(number)
    saved, state = folder / "certificate.json", folder / "state.json"
    certificate.save(saved)
    expected, outcomes = Monitor(certificate, alpha=0.2), Counter[str]()
    used: set[tuple[str, bool]] = set()
    for part in range(int(random.integers(1, 4))):
        size = int(random.integers(1, 80))
        scores = np.round(random.normal(size=size), 3)
        labels: list[str] = [str(one) for one in random.choice(["0", "1", ""], size)]
        place = int(random.integers(size)) if random.random() < 0.3 else None
        if place is not None:
            labels[place] = str(random.choice(["2", "0.5", "yes?", "1;0", "\x1b"]))
        late = bool(random.integers(2))
        # late labels have names of their own
        name = f"part {part - int(random.integers(4) == 0)}"
        again = (name, late) in used
        used.add((name, late))
        text = "score,label\n" + "".join(
            f"{score},{label}\n" for score, label in zip(scores, labels, strict=True)
        )
        before = state.read_bytes() if state.exists() else None
        if random.integers(2):
            table, stdin = "-", text.encode()
        else:
            table, stdin = str(folder / "rows.csv"), None
            Path(table).write_text(text, encoding="utf-8")
        words = ["monitor", saved, table, *_COLUMNS, "--state", state, "--alpha", "0.2", "--id", name]
        done = invoke(*words, *["--late"] * late, stdin=stdin)
        assert "Traceback" not in done.err
        taken = size if place is None else place
        if again:
            assert done.code == 2, done
            assert before == state.read_bytes()
            outcomes["part that came before: refused, the state stays"] += 1
            break
        if place is not None:
            assert done.code == 2, done
            outcomes["malformed label: refused"] += 1
            if stdin is None:
                assert (state.read_bytes() if state.exists() else None) == before
            else:
                _feed(expected, certificate, scores[:taken], labels[:taken], name, late)
                # without a row before the malformed one nothing is saved
                rows = json.loads(state.read_text())["rows"] if state.exists() else 0
                assert rows in (expected.rows, expected.rows - taken)
            break
        assert done.code in (0, 1), done
        _feed(expected, certificate, scores, labels, name, late)
        assert state.read_text() == expected.to_json()
        outcomes["late, missing and contradictory labels: the state of a monitor in memory"] += 1
    return outcomes


def _feed(
    monitor: Monitor, certificate: Certificate, scores: Any, labels: list[str], name: str, late: bool
) -> None:
    given = [float(label) if label else nan for label in labels]
    monitor.update(certificate.verdicts(scores), given, scores=scores, id=name, late=late)
