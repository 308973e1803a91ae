"""Reports of every regime and strategy, for the tests of what is said and of what a browser shows."""

import warnings
from functools import cache
from typing import Any

import numpy as np

from pac_wrap.errors import UpsideDownWarning, VacuousWarning
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.metrics import evaluate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.raising import Algorithm1
from pac_wrap.report.account import Account, Table, account_of
from pac_wrap.report.pictures import curve_of
from pac_wrap.report.render import as_json, html, markdown
from pac_wrap.report.sentences import Origin, Report

HOSTILE = "<script>alert(1)</script>"
FOREIGN = Origin(
    ("a|b`c`.csv", 'x" onload="alert(2)\n# heading', "<img src=x onerror=alert(3)>"), HOSTILE, "[a](b)*_&amp;"
)
_ONE_SIDED = Guarantee(max_fpr=0.1, max_fnr=None)
_CASES: dict[str, dict[str, Any]] = {
    "separated": {},
    "always": {"overlap": "abstain_always"},
    "raised": {"apart": 2.0, "held_out": 2.0, "overlap": "raise"},
    "overlapping": {"apart": 2.0, "held_out": 2.0},
    "relaxed": {
        "apart": 2.0,
        "held_out": 2.0,
        "overlap": "algorithm1",
        "source": FOREIGN,
        "detector": HOSTILE,
    },
    "hold_fnr": {"apart": 2.0, "overlap": "hold_fnr"},
    "hold_fpr": {"apart": 2.0, "overlap": "hold_fpr"},
    "fpr": {"guarantee": _ONE_SIDED},
    "fnr": {"guarantee": Guarantee(max_fpr=None, max_fnr=0.1)},
    "vacuous": {"n": 10},
    "vacuous_fpr": {"n": 10, "n_anomalous": 200},
    "vacuous_fnr": {"n": 200, "n_anomalous": 10},
    "vacuous_one_sided": {"n": 10, "guarantee": _ONE_SIDED},
    "vacuous_hold_fnr": {"n": 10, "overlap": "hold_fnr"},
    "vacuous_hold_fpr": {"n": 10, "overlap": "hold_fpr"},
    "nothing": {"n": 1, "overlap": "algorithm1"},
    "few": {"n": 12, "overlap": "algorithm1"},
    "nothing_overlapping": {"apart": 1.0, "overlap": Algorithm1(relax_delta=True)},
    "uncorrected": {"apart": 2.0, "overlap": Algorithm1(correction=None)},
    "less_confident": {"apart": 3.4, "overlap": Algorithm1(relax_delta=True)},
    "careless": {"guarantee": Guarantee(delta_fpr=0.6, delta_fnr=0.6)},
    "upside_down": {"apart": -2.0},
    "shifted": {"held_out": 0.5},
    "untested": {"held_out": None},
}
NAMES = tuple(_CASES)
FIGURE_COLOURS = ("text", "muted", "faint", "normal", "anomalous")


def to_html(given: Report) -> str:
    """Return a report as one HTML page."""
    return html(account_of(given))


def to_markdown(given: Report) -> str:
    """Return a report as Markdown."""
    return markdown(account_of(given))


def to_json(given: Report) -> str:
    """Return a report as programs read it."""
    return as_json(account_of(given))


def table_of(account: Account, key: str) -> Table:
    """Return the table that programs find under a key."""
    items = (item for section in account.sections for item in section.items)
    return next(item for item in items if isinstance(item, Table) and item.key == key)


def curve_for(given: Report) -> Curve | None:
    """Return the curve of a report's scores, if it has one."""
    return curve_of(given.certificate, given.normal, given.anomalous)


@cache
def report(name: str) -> Report:
    """Return the report of that name."""
    return make(**_CASES[name])


@cache
def page(name: str) -> str:
    """Return the report of that name as HTML, made once."""
    return to_html(report(name))


def make(
    apart: float = 5.0,
    n: int = 300,
    n_anomalous: int | None = None,
    guarantee: Guarantee | None = None,
    *,
    source: Origin | None = None,
    detector: str | None = None,
    held_out: float | None = 0.0,
    **options: Any,
) -> Report:
    """Return a report on Gaussian scores; `held_out` says where held-out anomalies lie, None that none do."""
    random = np.random.default_rng(7)
    normal, anomalous = (
        random.normal(0, 1, n),
        random.normal(apart, 1, n if n_anomalous is None else n_anomalous),
    )
    with warnings.catch_warnings():
        for kind in (UpsideDownWarning, VacuousWarning):
            warnings.simplefilter("ignore", kind)
        certificate = calibrate(normal, anomalous, guarantee, **options)
    metrics = None
    if held_out != 0.0:
        fresh = [random.normal(0, 1, 500), random.normal(held_out or 0.0, 1, 0 if held_out is None else 500)]
        labels = np.repeat([0, 1], [scores.size for scores in fresh])
        metrics = evaluate(certificate.verdicts(np.concatenate(fresh)), labels)
    return Report(certificate, normal, anomalous, source, metrics, detector)


def facts_told(result: Certificate) -> dict[str, list[str]]:
    """Return the promise and the facts of a certificate by their names; unnamed ones join the one above."""
    account = account_of(result, brief=True)
    found, name = {"promise": [account.headline]}, ""
    for fact in account.facts:
        name = fact.name or name
        found.setdefault(name, []).append(fact.text)
    return found
