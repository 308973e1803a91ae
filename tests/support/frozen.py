"""What certificates said before their file changed: golden/frozen.csv, a row for each promise.

`PYTHONPATH=tests python -m support.frozen` prints the table; only what was never there may be added to it.
"""

import csv
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from pac_wrap import (
    KL,
    Abstain,
    Algorithm1,
    Certificate,
    ChiSquared,
    Curve,
    DensityRatio,
    GroupCertificate,
    Guarantee,
    Hold,
    LabelNoise,
    LabelUntil,
    Raise,
    TotalVariation,
    calibrate,
    calibrate_classes,
    calibrate_labelled,
    certify_curve,
    recalibrate,
)
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.series.points import calibrate_points, window_points
from support import recipes
from support.shell import GOLDEN

TABLE: Final = GOLDEN / "frozen.csv"
NAMES: Final = (
    *("case", "of", "kind", "n", "digest", "threshold", "beyond", "rate", "level", "errors", "asked"),
    *("ceiling", "delta", "regime", "normal_below", "anomaly_from", "score_type", "confidence"),
)
Row = dict[str, str]


def rows_of(case: str, result: Any) -> Iterator[Row]:
    """Yield what a result says: the one place that knows how a certificate is read."""
    if isinstance(result, Curve):
        for name, certificate in _on(result):
            yield from rows_of(f"{case}, {name}", certificate)
        return
    if isinstance(result, GroupCertificate):
        for group in result.groups:
            yield from rows_of(f"{case}, group {group}", result.certificates[group])
        if result.pool is not None:
            yield from rows_of(f"{case}, pool", result.pool)
        return
    ends = (None, None, None) if not hasattr(result, "rule") else _ends(result)
    for of, kind, clause in _clauses(result):
        yield _row(case, of, kind, *clause, *ends, result.score_type, result.confidence)


def _ends(result: Any) -> tuple[str, float, float]:
    return result.regime.value, result.rule.normal_below, result.rule.anomaly_from


def _clauses(result: Any) -> Iterator[tuple[str, str | None, tuple[Any, ...]]]:
    """Yield each clause: of whom, and what `NAMES` has from n to delta."""
    for one in result.clauses:
        budget, asked, made = one.budget, one.asked, one.certified
        spent = (None,) * 3 if budget is None else (budget.rate, budget.delta, budget.errors)
        promised = (None,) * 2 if made is None else (made.ceiling, made.delta)
        ceiling = None if asked is None else asked.ceiling
        found = one.n, one.digest, one.threshold, one.beyond, *spent, ceiling, *promised
        yield one.of.label, one.of.kind, found


def _on(curve: Curve) -> Iterator[tuple[str, Certificate]]:
    """Yield certificates of thresholds on a curve."""
    yield "balanced", curve.balanced()
    yield "cheapest", curve.cheapest(1.0, 10.0, 0.1)
    yield "fpr 0.1", curve.choose(max_fpr=0.1)
    for place in (-0.5, 0.75, 1.5):
        yield f"at {place}", curve.at(place)


def _row(*values: object) -> Row:
    texts = ("" if value is None else str(value) for value in values)
    return dict(zip(NAMES, texts, strict=True))


def _typed(name: str, types: str = "float64") -> tuple[Any, Any]:
    kinds = (types.split() * 2)[:2]
    normal, anomalous = (
        list(scores) if kind == "list" else np.array(scores, dtype=kind)
        for scores, kind in zip(recipes.sample(name), kinds, strict=True)
    )
    return normal, anomalous


def _plain(name: str, asked: Guarantee, overlap: Any = None, types: str = "float64") -> Certificate:
    made: Certificate = calibrate(*_typed(name, types), asked, overlap=overlap)
    return made


def _kept() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the cases of golden/calibrations.json."""
    kept = json.loads((GOLDEN / "calibrations.json").read_text(encoding="ascii"))
    for number, case in enumerate(kept["cases"]):
        word, options = case["strategy"]["overlap"], case["strategy"]["options"]
        overlap = {"abstain": "abstain_always"}.get(word, word) if not options else Algorithm1(**options)
        made = partial(_plain, case["sample"], Guarantee(*case["asked"]), overlap, case["types"])
        yield f"{number}: {case['sample']}, {word}", made


def _golden() -> Certificate:
    with (GOLDEN / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = [(float(row["score"]), int(row["label"])) for row in csv.DictReader(file)]
    scores, labels = zip(*rows, strict=True)
    return calibrate_labelled(scores, labels, Guarantee(0.1, 0.1, 0.1, 0.1))


def _columns(*names: str, types: str = "float64") -> tuple[Any, Any, Any]:
    """Return scores, labels and groups of several samples, row by row mixed in a fixed way."""
    parts = [(_typed(name, types), name) for name in names]
    scores = np.concatenate([one for pair, _ in parts for one in pair])
    labels = np.concatenate([np.repeat([0, 1], [low.size, high.size]) for (low, high), _ in parts])
    groups = np.concatenate([np.repeat(name, low.size + high.size) for (low, high), name in parts])
    mixed = np.argsort(np.array(list(recipes.drawn(scores.size, 7))), kind="stable")
    return scores[mixed], labels[mixed], groups[mixed]


def _grouped(names: tuple[str, ...], asked: Guarantee, **options: Any) -> GroupCertificate:
    scores, labels, groups = _columns(*names, types=options.pop("types", "float64"))
    return calibrate_labelled(scores, labels, asked, by=groups, **options)


def _by_kind(asked: Guarantee, overlap: Any = None, *, normal: bool = False, types: str = "float64") -> Any:
    near, touching, uneven = (_typed(name, types) for name in ("coarse", "coarse overlapping", "coarse few"))
    low: Any = {"day": near[0], "night": touching[0]} if normal else near[0]
    return calibrate(low, {"b": near[1], "a": touching[1], "c d": uneven[1]}, asked, overlap=overlap)


def _weighted(name: str, overlap: Any, *, intervals: bool = False) -> Certificate:
    normal, anomalous = _typed(name)
    weights = np.array(recipes.flat(normal.size, 90, 0, 2))
    given: Any = (weights * 0.75, weights) if intervals else weights
    asked = Guarantee(0.2, 0.2, 0.1, 0.1)
    return calibrate(
        normal, anomalous, asked, overlap=overlap, normal_weights=given, weight_bound=2.0, seed=5
    )


def _series(length: int, every: int, overlap: Any) -> Certificate:
    labels = np.tile(np.repeat([0, 1], [60, 30]), 100)
    scores = np.array(recipes.bell(labels.size, 91)) + 5 * labels
    points = window_points(scores, labels, length=length, every=every)
    return calibrate_points(points, Guarantee(0.1, 0.1, 0.1, 0.1), overlap=overlap)


def _again(times: int, *, ledger: bool) -> Certificate:
    scores, labels, _ = _columns("near", "uneven")
    found = _plain("near", Guarantee(0.2, 0.2), Hold("fnr"))
    for _ in range(times):
        found = recalibrate(found, scores, labels, ledger=ledger)
    return found


def _until(threshold: float | None) -> Certificate:
    scores, labels, _ = _columns("far")
    until = LabelUntil(Guarantee(0.1, 0.1), 20, 400, threshold)
    for start in range(0, scores.size, 100):
        if not until.done:
            until.add(scores[start : start + 100], labels[start : start + 100])
    assert until.certificate is not None
    return until.certificate


def _classes(ceilings: Any, **options: Any) -> Any:
    labels = np.arange(600) % 3
    scores = np.array(recipes.bell(1800, 92)).reshape(600, 3) + 3 * np.eye(3)[labels]
    return calibrate_classes(scores, labels, ceilings, **options)


def _curve(name: str, types: str = "float64", **options: Any) -> Curve:
    return certify_curve(*_typed(name, types), **options)


_USUAL = ("far", "near", "uneven", "touching", "same", "tied", "58 and 59", "59 and 59", "mixed", "coarse")


def _strategies() -> Iterator[tuple[str, Callable[[], Any]]]:
    strategies = {
        "abstain": Abstain(position=0.25),
        "hold_fnr_if_needed": Hold("fnr", always=False),
        "hold_fpr_if_needed": Hold("fpr", always=False),
        "raise": Raise(),
        "raise to 0.2": Raise(highest=0.2),
        "looks": Looks(20, 400),
        "looks at 1.0": Looks(50, 1000, 1.0),
        "algorithm1": Algorithm1(step=0.05),
    }
    for word, strategy in strategies.items():
        for name in _USUAL:
            types = "float32" if name == "coarse" else "float64"
            yield (
                f"{word}, {name}, as usual",
                partial(_plain, name, Guarantee(), strategy, types),
            )
        yield f"{word}, near, uneven ceilings", partial(_plain, "near", Guarantee(0.02, 0.3, 0.1), strategy)
        yield (
            f"{word}, near, confidence",
            partial(_plain, "near", Guarantee(0.1, 0.2, confidence=0.9), strategy),
        )
    for word in ("abstain", "hold_fnr", "hold_fpr", "looks"):
        overlap = Looks(20, 400) if word == "looks" else word
        yield f"{word}, FPR alone", partial(_plain, "uneven", Guarantee(0.05, None), overlap)
        yield f"{word}, FNR alone", partial(_plain, "uneven", Guarantee(None, 0.05), overlap)


def _robust() -> Iterator[tuple[str, Callable[[], Any]]]:
    shifts = (TotalVariation(0.02), DensityRatio(1.5), KL(0.01), ChiSquared(0.05))
    for shift in shifts:
        yield f"shift {shift}", partial(_plain, "near", Guarantee(0.2, 0.2, shift=shift))
        held = Guarantee(0.2, 0.2, shift=(shift, None))
        yield f"shift {shift} of normal points, hold", partial(_plain, "near", held, Hold("fnr"))
    noise = Guarantee(0.2, 0.2, label_noise=LabelNoise(0.02))
    yield "noise", partial(_plain, "uneven", noise)
    yield (
        "noise and shift",
        partial(
            _plain, "uneven", Guarantee(0.3, 0.3, label_noise=LabelNoise(0.02), shift=TotalVariation(0.05))
        ),
    )
    for overlap in ("abstain", "hold_fnr"):
        for name in ("near", "far", "touching"):
            yield f"weights, {name}, {overlap}", partial(_weighted, name, overlap)
    yield "weights in intervals", partial(_weighted, "near", "abstain", intervals=True)


def _parts() -> Iterator[tuple[str, Callable[[], Any]]]:
    guarantees = {
        "one ceiling": Guarantee(0.2, 0.3),
        "a ceiling for each": Guarantee(0.1, {"a": 0.2, "b": 0.1, "c d": 0.3}),
        "one without": Guarantee(0.1, {"a": None, "b": 0.1, "c d": 0.3}),
        "and one for all": Guarantee(0.1, {"a": 0.5, "b": 0.1, "c d": 0.3, None: 0.15}),
        "confidence": Guarantee(0.2, 0.3, confidence=0.9),
        "FNR alone": Guarantee(None, {"a": 0.4, "b": 0.1, "c d": 0.3}),
        "too few": Guarantee(0.05, {"a": 0.4, "b": 0.1, "c d": 0.01}),
    }
    for word, asked in guarantees.items():
        for overlap in ("abstain", "abstain_always", "hold_fnr", "hold_fpr"):
            if word == "FNR alone" and overlap == "hold_fpr":
                continue
            yield f"kinds, {word}, {overlap}", partial(_by_kind, asked, overlap)
    for overlap in ("abstain", "hold_fnr", "hold_fpr"):
        both = Guarantee({"day": 0.1, "night": 0.3}, {"a": 0.5, "b": 0.1, "c d": 0.3})
        yield f"kinds of both, {overlap}", partial(_by_kind, both, overlap, normal=True)
        yield (
            f"kinds of both, float32, {overlap}",
            partial(_by_kind, both, overlap, normal=True, types="float32"),
        )
    groups = ("far", "near", "touching", "same", "30 anomalies", "58 and 58", "no anomalies", "tied")
    for overlap in ("abstain", "hold_fnr", "hold_fpr_if_needed", "raise", "algorithm1"):
        for together in (False, True):
            word = f"groups, {overlap}{', together' if together else ''}"
            yield word, partial(_grouped, groups, Guarantee(0.1, 0.2), overlap=overlap, together=together)
    for together in (False, True):
        word = f"groups, pool{', together' if together else ''}"
        yield word, partial(_grouped, groups, Guarantee(0.1, 0.2), pool=True, together=together)
    yield "groups, float32", partial(_grouped, ("coarse", "coarse few"), Guarantee(0.1, 0.2), types="float32")
    yield "groups, FPR alone", partial(_grouped, groups, Guarantee(0.1, None))
    yield "classes", partial(_classes, {0: 0.02, 1: 0.05, 2: 0.1})
    yield "classes, one without", partial(_classes, {0: None, 1: 0.05, 2: 0.001}, confidence=0.9)
    yield "classes, severities", partial(_classes, {0: 0.1, 1: 0.1}, severities=[0, 1, 2])


def _others() -> Iterator[tuple[str, Callable[[], Any]]]:
    for name, types in (("near", "float64"), ("uneven", "float64"), ("coarse", "float16")):
        yield f"curve, {name}", partial(_curve, name, types)
        yield f"curve, {name}, tops", partial(_curve, name, types, delta_fpr=0.1, top_fpr=0.4, top_fnr=0.7)
    for overlap in ("abstain", "hold_fnr"):
        yield f"series of steps, {overlap}", partial(_series, 1, 7, overlap)
        yield f"series of windows, {overlap}", partial(_series, 5, 20, overlap)
    for times in (1, 3):
        yield f"followed {times} times", partial(_again, times, ledger=True)
    yield "followed, own delta", partial(_again, 1, ledger=False)
    yield "labelled until done", partial(_until, None)
    yield "labelled until done at 2.5", partial(_until, 2.5)


CASES: Final[dict[str, Callable[[], Any]]] = {
    "golden/certificate.json": _golden,
    **dict(_kept()),
    **dict(_strategies()),
    **dict(_robust()),
    **dict(_parts()),
    **dict(_others()),
}


def rows(case: str) -> list[Row]:
    """Return what the certificates of a case say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(rows_of(case, CASES[case]()))


def main() -> None:
    """Print the table of all cases."""
    writer = csv.DictWriter(sys.stdout, NAMES, lineterminator="\n")
    writer.writeheader()
    for case in CASES:
        writer.writerows(rows(case))


if __name__ == "__main__":
    main()
