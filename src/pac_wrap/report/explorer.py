"""Other thresholds than the certificate's: its certified curve, as a table and for the script of a page."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, isinf
from typing import Any, Final

import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.curves.band import LEAST_DELTA, MOST_POINTS
from pac_wrap.method.curves.curve import Curve, CurveRequest, CurveSide, Rates, best
from pac_wrap.method.sampling import OF_DRAWS
from pac_wrap.report.numbers import ceiling, confidence, floored, told_apart
from pac_wrap.report.pictures import Window

# ceilings that the table shows, without scripts and in other formats
_CEILINGS: Final = (0.001, 0.01, 0.05, 0.1)
_USUAL: Final = 0.05  # a ceiling to begin with, where none was asked for
# where a certificate read off a curve has what each name stands for; its clauses are of each class
_PLACES: Final[dict[str, tuple[tuple[str | int, ...], ...]]] = {
    "threshold": (("overlap", "threshold"),),
    "rule": (("rule", "normal_below"), ("rule", "anomaly_from")),
} | {
    f"{name}{what}": tuple(("clauses", number, *path) for path in paths)
    for number, name in enumerate(("fpr", "fnr"))
    for what, paths in (
        ("", (("ceiling",), ("found_at", "rate"))),
        ("_errors", (("budget",),)),
        ("_score", (("threshold",),)),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Explorer:
    """The curve of the calibration scores, some choices among its thresholds, and how sure they are."""

    curve: Curve
    choices: tuple[dict[str, str], ...]
    sure: tuple[str, ...]
    ceilings: tuple[float, float]


def explorer_of(certificate: Certificate, normal: Scores | None, anomalous: Scores | None) -> Explorer | None:
    """Return the curve of the calibration scores; None without scores, or with too few for any choice.

    A curve is about independent draws, as many as were planned: windows of a series, several rows of a
    patient, and labels that were looked at as they came, have none.
    """
    asked, kind, drawn = certificate.guarantee, certificate.score_type, certificate.assumptions == OF_DRAWS
    if normal is None or anomalous is None or not (drawn and certificate.overlap.fixed_sizes):
        return None
    if not 0 < max(normal.size, anomalous.size) <= MOST_POINTS:
        return None
    deltas = max(asked.delta_fpr, LEAST_DELTA), max(asked.delta_fnr, LEAST_DELTA)
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", UpsideDownWarning)  # the report has its own words for it
        classes = (one.astype(kind, copy=False) for one in (normal, anomalous))
        curve = CurveRequest(*deltas).certify_scores(*classes)
    curve = replace(curve, provenance=certificate.provenance)
    choices = tuple(_choices(curve))
    if not choices:
        return None
    own = (
        asked_delta if one.certified is None else one.certified.delta
        for one, asked_delta in ((certificate.fpr, asked.delta_fpr), (certificate.fnr, asked.delta_fnr))
    )
    left = confidence(*deltas, *own)
    return Explorer(
        curve,
        choices,
        sure=(
            f"These bounds hold at every threshold at once: those of the FPR with confidence"
            f" {confidence(deltas[0])}, those of the FNR with {confidence(deltas[1])}, all with"
            f" {floored(curve.confidence)}. So the threshold that you choose, even after looking, is"
            " certified. For that they are a little higher than those of a threshold that a rule fixed"
            " beforehand.",
            "The promise at the top has deltas of its own. If you rely on both, on it and on a threshold"
            f" chosen here, or choose between them, all of them add up, which leaves {left}.",
        ),
        ceilings=(asked.max_fpr or _USUAL, asked.max_fnr or _USUAL),
    )


def _choices(curve: Curve) -> Iterator[dict[str, str]]:
    """Yield what some choices certify, each threshold once."""
    places, fpr, fnr = curve.steps()
    wanted: list[tuple[str, int | None]] = []
    if (np.maximum(fpr, fnr) < 1.0).any():
        wanted.append(("both bounds alike", _alike(fpr, fnr)))
    wanted += [(f"FPR at most {ceiling(rate)}", best(fpr, fnr, rate)) for rate in _CEILINGS]
    wanted += [(f"FNR at most {ceiling(rate)}", best(fnr, fpr, rate)) for rate in _CEILINGS]
    names: dict[int, list[str]] = {}
    for name, place in wanted:
        if place is not None:
            names.setdefault(place, []).append(name)
    texts = told_apart([float(places[place]) for place in names])
    for (place, reasons), text in zip(names.items(), texts, strict=True):
        bounds = {"fpr": _bound(fpr[place]), "fnr": _bound(fnr[place])}
        yield {"name": "; ".join(reasons), "threshold": text} | bounds


def _alike(fpr: Rates, fnr: Rates) -> int:
    """Return where the larger of both bounds is least."""
    return int(np.lexsort((fpr + fnr, np.maximum(fpr, fnr)))[0])


def _bound(rate: float) -> str:
    return ceiling(float(rate)) if rate < 1.0 else "not bounded"


def script_data(explorer: Explorer, window: Window, start: float | None = None) -> str:
    """Return what the script of a page needs, as JSON: all that `Curve.at` would give, step by step.

    It begins at a threshold, by default where both bounds are alike, and may stand in an element `script`.
    """
    curve = explorer.curve
    places, fpr, fnr = curve.steps()
    rules = None
    if curve.score_type != "float64":
        known = zip(places.tolist(), np.minimum(fpr, fnr).tolist(), strict=True)
        rules = [curve.at(place).rule.anomaly_from if rate < 1.0 else place for place, rate in known]
    if start is None or abs(start) == inf or rules is not None:
        start = float(places[_alike(fpr, fnr)])
    mark, texts = _texts(curve, places, fpr, fnr)
    data = {
        "normal": _side(curve.normal),
        "anomalous": _side(curve.anomalous),
        "places": places.tolist(),
        "rules": rules,
        "mark": mark,
        "texts": texts,
        "window": [window.low, window.high],
        "start": start,
        "ceilings": explorer.ceilings,
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _side(side: CurveSide) -> dict[str, Any]:
    """Return the steps of one class with the budget that each has in a certificate."""
    errors = side.budgets()
    scores = [side.scores[place] for place in np.searchsorted(side.ranks, errors)]
    return {
        "errors": errors,
        "bounds": side.bounds,
        "scores": [("inf" if score > 0 else "-inf") if isinf(score) else score for score in scores],
    }


def _texts(curve: Curve, places: Rates, fpr: Rates, fnr: Rates) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a mark, and certificates in which it stands before each name that is put for a number.

    One for each set of rates that are bounded: as its checksum is taken of, and as it is saved.
    """
    kinds = {
        "fpr,fnr": (fpr < 1.0) & (fnr < 1.0),
        "fpr": (fpr < 1.0) & (fnr >= 1.0),
        "fnr": (fpr >= 1.0) & (fnr < 1.0),
    }
    found = {
        name: curve.at(float(places[np.argmax(holds)])).to_json()
        for name, holds in kinds.items()
        if holds.any()
    }
    mark = "@"  # it stands nowhere else, whatever the names of tables are
    while any(mark in text for text in found.values()):
        mark += "@"
    return mark, {name: _marked(text, mark) for name, text in found.items()}


def _marked(text: str, mark: str) -> tuple[str, str]:
    content = json.loads(text)
    for name, paths in _PLACES.items():
        for path in paths:
            *above, last = path
            node = content
            for step in above:
                node = node[step] if isinstance(step, int) else node.get(step, {})
            if node.get(last) is not None:
                node[last] = f"{mark}{name}"
    del content["checksum"]
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return canonical, json.dumps(content | {"checksum": f"{mark}checksum"}, indent=2) + "\n"
