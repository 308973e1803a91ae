"""Results for programs: what a command shows as a table, as JSON with every digit and names that stay.

Infinities are the texts "inf" and "-inf", as in a certificate; what is no number, or not there, is null.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from math import isinf, isnan
from typing import Any

from pac_wrap.base.floats import float_below
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certificates.verify import Verification
from pac_wrap.method.comparison import Contender, confidence_of
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.measure import GroupMeasured
from pac_wrap.method.kinds.part import Measured
from pac_wrap.method.metrics import Metrics, Rate
from pac_wrap.method.planning.plan import TOLERATED, Pilot, needed, stopping
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.robust.noise import NEW_LABELS
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.report.planner import CEILINGS, CHANCES, POWER, SHARES
from pac_wrap.report.subject import error_rates
from pac_wrap.tails.binomial import cdf
from pac_wrap.tails.bounds import Budget, achievable_rate, min_samples

Record = dict[str, Any]


def as_json(value: Any) -> str:
    """Return a record, or a dataclass, as strict JSON text that ends a line.

    >>> as_json({"rate": float("nan"), "score": float("-inf")})
    '{\\n  "rate": null,\\n  "score": "-inf"\\n}\\n'
    """
    return json.dumps(_plain(value), indent=2, allow_nan=False) + "\n"


def evaluation(certificate: Certificate, metrics: Metrics, calibrated: bool) -> Record:
    """Return the measured rates, what was promised of them, and which ceilings are significantly exceeded."""
    rates = _rates(metrics)
    sides = error_rates(certificate, metrics)
    for side in sides:
        rates[side.name.lower()]["ceiling"] = side.certified if side.kept else None
    over = [side.name for side in sides if side.exceeded]
    found = {"rates": rates, "exceeded": over, "calibration_scores": calibrated}
    return found | _assumed(certificate.guarantee)


def _assumed(asked: Guarantee) -> Record:
    """Return what the comparison with ceilings assumes of the new labels, where they may be wrong."""
    return {} if asked.label_noise is None else {"assumes": NEW_LABELS}


def _rates(metrics: Metrics) -> Record:
    return {field.name: _rate(getattr(metrics, field.name)) for field in fields(metrics)}


def by_kind(measured: Sequence[Measured]) -> Record:
    """Return the measured rates of every kind, and the names of those that significantly exceed a ceiling."""
    kinds = [
        {"kind": one.name, "ceiling": one.ceiling, "rate": _rate(one.rate), "abstained": _rate(one.abstained)}
        for one in measured
    ]
    return {"kinds": kinds, "exceeded": [one.name for one in measured if one.exceeded]}


def by_group(certificate: GroupCertificate, measured: GroupMeasured) -> Record:
    """Return the measured rates over all groups and in each, and what significantly exceeds its ceiling."""
    groups = [{"group": one} | _rates(measured.of_place(place)) for place, one in enumerate(measured.groups)]
    over = [{"group": group, "rate": rate} for group, rate in measured.exceeded]
    found = {"rates": _rates(measured.together), "groups": groups, "unseen": measured.unseen}
    return found | {"exceeded": over} | _assumed(certificate.asked)


def verification(found: Verification) -> Record:
    """Return whether a certificate is what its scores give, and where they differ."""
    return {"verified": bool(found), "differences": found.differences, "digested": found.digested}


def comparison(contenders: Sequence[Contender], guarantee: Guarantee) -> Record:
    """Return what each detector certifies at every threshold, the best first."""
    found = []
    for one in contenders:
        record = {"score": one.name, "auc": one.auc}
        if len(guarantee.promises) == 2:
            record |= {"abstained": one.abstained, "common_ceiling": one.common_ceiling}
        if guarantee.max_fpr is not None:
            record["fnr_at_max_fpr"] = one.fnr_at(guarantee.max_fpr)
        if guarantee.max_fnr is not None:
            record["fpr_at_max_fnr"] = one.fpr_at(guarantee.max_fnr)
        found.append(record)
    names = ("max_fpr", "max_fnr", "delta_fpr", "delta_fnr")
    asked = {name: getattr(guarantee, name) for name in names}
    return {"asked": asked, "confidence": float_below(confidence_of(contenders)), "contenders": found}


def labels_needed(guarantee: Guarantee) -> list[Record]:
    """Return the labels that each promise needs, for a few numbers of tolerated errors."""
    return [
        _asked(one) | {"needed": [_need(one, errors) for errors in TOLERATED]} for one in guarantee.promises
    ]


def least_rates(labels: int, delta: float) -> Record:
    """Return the smallest rates that so many labels of one class certify."""
    rates = [
        {"errors": errors, "rate": achievable_rate(labels, delta, errors)}
        for errors in TOLERATED
        if errors <= labels
    ]
    return {"labels": labels, "delta": delta, "rates": rates}


def affordable(normal: int | None, anomalous: int | None, delta: float, asked: Iterable[float]) -> Record:
    """Return which ceilings so many labels of each class keep, and how many errors each tolerates."""
    ceilings = sorted({*CEILINGS, *asked})
    found: Record = {"delta": delta}
    for name, n in (("normal", normal), ("anomalous", anomalous)):
        if n is not None:
            budgets = [Budget.of(n, rate, delta) for rate in ceilings]
            found[name] = {
                "labels": n,
                "least": achievable_rate(n, delta) if n else None,
                "ceilings": [
                    {"ceiling": one.rate, "errors": one.errors, "missing": one.missing} for one in budgets
                ],
            }
    return found


def forecast(pilot: Pilot, guarantee: Guarantee) -> Record:
    """Return how many fresh labels make a promise likely, as a pilot sample has it."""
    sides = []
    for promise, counted in zip(guarantee.promises, (pilot.normal, pilot.anomalous), strict=True):
        found = zip(CHANCES, needed(promise, CHANCES, counted.within), strict=True)
        sides.append(
            _asked(promise)
            | {"errors": counted.errors, "n": counted.n, "chance": counted.below(promise.at_calibration)}
            | {"needed": [{"chance": chance, "needed": need} for chance, need in found]}
        )
    return {"threshold": pilot.threshold, "sides": sides}


def sequential(guarantee: Guarantee, looks: Looks, rates: Sequence[float] | None) -> Record:
    """Return when labels that are looked at as they come are likely to suffice."""
    sides = []
    for promise in guarantee.promises:
        runs = []
        for rate in rates or [share * promise.at_calibration for share in SHARES]:
            found = stopping(promise, looks, rate)
            runs.append(
                {
                    "true_rate": rate,
                    "median": found.quantile(0.5),
                    "nine_in_ten": found.quantile(0.9),
                    "expected": found.expected,
                    "success": found.success,
                    "all_at_once": needed(promise, [POWER], partial(cdf, p=rate))[0],
                }
            )
        sides.append(_asked(promise) | {"local_delta": looks.local(promise), "runs": runs})
    return {"every": looks.every, "up_to": looks.up_to, "sides": sides}


def _asked(promise: Promise) -> Record:
    return {
        "class": promise.of.label,
        "rate": promise.name,
        "ceiling": promise.ceiling,
        "delta": promise.delta,
    } | ({} if promise.room is None else {"room": promise.room, "at_calibration": promise.at_calibration})


def _need(promise: Promise, errors: int) -> Record:
    return {"errors": errors, "labels": min_samples(promise.at_calibration, promise.delta, errors)}


def _rate(rate: Rate) -> Record:
    return {"count": rate.count, "n": rate.n, "value": rate.value, "low": rate.low, "high": rate.high}


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and isnan(value):
        return None
    if isinstance(value, float) and isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
