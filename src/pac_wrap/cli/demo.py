"""The whole method once, on synthetic data: train, calibrate, check on fresh points, and show it."""

from collections.abc import Callable, Iterator
from itertools import starmap
from typing import Final, NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text
from sklearn.ensemble import IsolationForest

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import rounded_up
from pac_wrap.detectors.scores import anomaly_scores
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.metrics import Metrics, evaluate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.rule import Rule
from pac_wrap.report.account import Account, Section, Table
from pac_wrap.report.render import terminal
from pac_wrap.report.sentences import promise

_BINS: Final = 64
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_FULL: Final = len(_BLOCKS) - 1
# Okabe and Ito's blue and vermilion stay apart for every kind of colour vision
_BLUE, _RED = "#0072B2", "#D55E00"


class Demo(NamedTuple):
    """The results of the demo, with abstention and with one threshold, and the fresh scores of its check."""

    margin: float
    trained_on: int
    calibration_normal: Scores
    calibration_anomalous: Scores
    normal: Scores
    anomalous: Scores
    abstaining: Certificate
    abstaining_metrics: Metrics
    single: Certificate
    single_metrics: Metrics


def run_demo(
    seed: int = 0,
    margin: float = 5.0,
    guarantee: Guarantee | None = None,
    *,
    n_train: int = 100_000,
    n_calibration: int = 2_000,
    n_test: int = 50_000,
    progress: Callable[[str], None] = lambda text: None,
) -> Demo:
    """Return the results of a wrapped isolation forest on two Gaussian clusters, measured on fresh points."""
    from pac_wrap_paper.data.dataset import two_gaussians

    random = np.random.default_rng(seed)
    sigma = float(np.sqrt(random.uniform(1.0, 100.0)))

    def draw(n_normal: int, n_anomalous: int) -> tuple[Scores, Scores]:
        X, y = two_gaussians(n_normal, n_anomalous, random, sigma=sigma, margin=margin)
        scores = anomaly_scores(detector, X)
        return scores[y == 0], scores[y == 1]

    progress(f"training an isolation forest on {n_train:,} normal points")
    X_train, _ = two_gaussians(n_train, 0, random, sigma=sigma, margin=margin)
    detector = IsolationForest(random_state=seed).fit(X_train)
    progress(f"calibrating on {n_calibration:,} labelled points of each class")
    calibration = draw(n_calibration, n_calibration)
    abstaining = calibrate(*calibration, guarantee)
    single = calibrate(*calibration, guarantee, overlap="raise")
    progress(f"checking on {n_test:,} fresh points of each class")
    normal, anomalous = draw(n_test, n_test)
    scores, labels = np.r_[normal, anomalous], np.repeat([0, 1], [n_test, n_test])
    measured, measured_single = (evaluate(one.verdicts(scores), labels) for one in (abstaining, single))
    found = abstaining, measured, single, measured_single
    return Demo(margin, n_train, *calibration, normal, anomalous, *found)


def show_demo(demo: Demo) -> RenderableType:
    """Return the demo on one screen: the promise, the scores, and the rates on fresh points."""
    return Group(
        Panel(Text(promise(demo.abstaining)), title="the promise", border_style=_BLUE),
        Text(
            f"Isolation forest, trained on {demo.trained_on:,} normal points; two Gaussian clusters in six"
            f" dimensions, {demo.margin:g} standard deviations apart.\n"
            f"Calibrated on {demo.abstaining.fpr.n:,} normal and {demo.abstaining.fnr.n:,} anomalous"
            " points the forest has not seen."
        ),
        Text(),
        _histogram(demo.normal, demo.anomalous, demo.abstaining.rule),
        Text(),
        _checked(demo),  # which ends in an empty line
        Text(f"{demo.abstaining.regime.value}: {demo.abstaining.regime.explanation}"),
        *(Text(f"  {sentence}") for sentence in demo.abstaining.diagnosis),
    )


def _histogram(normal: Scores, anomalous: Scores, rule: Rule) -> RenderableType:
    both = np.r_[normal, anomalous]
    edges = np.linspace(both.min(), both.max(), _BINS + 1)
    lines = Text()
    for name, scores, colour in (("normal", normal, _BLUE), ("anomalous", anomalous, _RED)):
        counts, _ = np.histogram(scores, edges)
        heights = np.ceil(counts / counts.max() * 2 * _FULL).astype(int)
        for label, floor in (("", _FULL), (name, 0)):
            bars = "".join(_BLOCKS[cell] for cell in np.clip(heights - floor, 0, _FULL))
            lines.append(f"{label:>10} ").append(f"{bars}\n", style=colour)
    low, high = rule.normal_below, rule.anomaly_from
    middles = (edges[:-1] + edges[1:]) / 2
    marks = np.where(middles < low, "0", np.where(middles < high, "?", "1"))
    lines.append(f"{'verdict':>10} ").append("".join(marks), style="bold")
    lines.append(f"\n{'':>10} score {edges[0]:.3g} to {edges[-1]:.3g}; 0 normal, ? abstains, 1 anomaly")
    return lines


def _checked(demo: Demo) -> RenderableType:
    fresh = demo.normal.size + demo.anomalous.size
    both = (demo.abstaining, demo.abstaining_metrics), (demo.single, demo.single_metrics)
    names = ("FPR", "FNR", "abstained", "normal below", "anomaly from")
    columns = zip(names, *starmap(_measured, both), strict=True)
    rows = tuple((name, *one, *other) for name, one, other in columns)
    heads, caption = ("", "max", "may abstain", "max", "one threshold"), f"measured on {fresh:,} fresh points"
    table = Table(heads, rows, f"{caption}, with exact 95 % intervals")
    return terminal(Account(sections=(Section(items=(table,)),)))


def _measured(certificate: Certificate, metrics: Metrics) -> Iterator[tuple[str, str]]:
    for clause, rate in zip(certificate.clauses, (metrics.fpr, metrics.fnr), strict=True):
        yield "none" if clause.ceiling is None else rounded_up(clause.ceiling), str(rate)
    yield "", str(metrics.ambiguity)
    for threshold in (certificate.rule.normal_below, certificate.rule.anomaly_from):
        yield "", f"{threshold:.4f}"
