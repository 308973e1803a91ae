"""Pictures of a page, in percent of its width; outlines are paths in a box of 1000 by 100 to be stretched."""

import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, floor, inf, isinf, log10
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import LEAST_DELTA, Scores
from pac_wrap.errors import UpsideDownWarning
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.curves.band import MOST_POINTS
from pac_wrap.method.curves.curve import Curve, CurveRequest, CurveSide, Rates, best
from pac_wrap.method.promise import OF_DRAWS
from pac_wrap.method.robust.shift_and_noise import SHIFTS, DensityRatio, Distance
from pac_wrap.method.rule import Rule
from pac_wrap.ranks.memory import kth_largest, kth_smallest
from pac_wrap.report.numbers import ceiling, minus, number, percent, told_apart, written_alike

_LARGEST: Final = 1e150  # beyond it, the arithmetic of a plotting library overflows
_RARE_SHARE: Final = 0.005
_FEW_SHARE: Final = 0.1  # of the highest scores alone
_STRETCH: Final = 2.0
_MARGIN: Final = 0.02
Drawing = dict[str, Any]  # what a template draws, by the names it has there
_BINS: Final = 50
_FEW_ALARMS: Final = 20  # lower scores that are drawn beside few alarms
_REVIEWED: Final = {"right": 1, "wrong": 0, "not reviewed": -1}
_STEPS: Final = 600
_CHARACTERS: Final = 44  # of tick labels that fit beside each other on a phone
_FEW_CHARACTERS: Final = 16  # in a small one
_LEAST: Final = 1e-6
_NAMES: Final = ("Total variation", "Density ratio", "KL divergence", "Chi-squared")
_MOST: Final = 4.0  # times what is certified: how far the picture of a shift goes
_POINTS: Final = 60
_NARROW: Final = 288.0  # how wide the picture is on a small phone, in pixels
# ceilings that the table shows, without scripts and in other formats
_CEILINGS: Final = (0.001, 0.01, 0.05, 0.1)
# where a certificate that is read off a curve has what each name stands for
_OF_CLAUSE: Final = {"ceiling": "", "found_at rate": "", "budget": "_errors", "threshold": "_score"}
_PLACES: Final = {
    "overlap threshold": "threshold",
    "rule normal_below": "rule",
    "rule anomaly_from": "rule",
    **{f"clauses 0 {path}": f"fpr{name}" for path, name in _OF_CLAUSE.items()},
    **{f"clauses 1 {path}": f"fnr{name}" for path, name in _OF_CLAUSE.items()},
}


@dataclass(frozen=True, slots=True)
class Window:
    """The scores from `low` to `high`; a few that lie far outside are counted at the edge instead."""

    low: float
    high: float

    @classmethod
    def around(
        cls, classes: Sequence[Scores], marks: Sequence[float | None] = (), rare: float = _RARE_SHARE
    ) -> "Window":
        """Return the range of all scores, but not stretched by rare ones; marks always lie inside."""
        drawn = [scores[np.abs(scores) <= _LARGEST] for scores in classes]
        ends = [end for scores in drawn if scores.size for end in _ends(scores, rare)]
        ends += [mark for mark in marks if mark is not None and abs(mark) <= _LARGEST]
        low, high = (min(ends), max(ends)) if ends else (0.0, 1.0)
        largest = max(abs(low), abs(high))
        margin = _MARGIN * (high - low)
        if high - low <= 1e-9 * largest or high - low < 1e-290:
            margin = 0.1 * largest if largest > 1e-290 else 0.5
        return cls(low - margin, high + margin)

    @property
    def span(self) -> float:
        """The width of the window."""
        return self.high - self.low

    def __contains__(self, x: float) -> bool:
        return self.low <= x <= self.high

    def share(self, x: float) -> float:
        """Return how far to the right a score lies, as a share of the width."""
        return (x - self.low) / self.span


def _ends(scores: Scores, rare: float) -> tuple[float, float]:
    """Return the least and the largest score, or where rare ones begin to stretch the range."""
    low, high = float(scores.min()), float(scores.max())
    rank = max(1, ceil(rare * scores.size))
    inner_low, inner_high = kth_smallest(scores, rank), kth_largest(scores, rank)
    reach = _STRETCH * (inner_high - inner_low)
    if reach == 0.0:
        return low, high
    near = scores[(scores >= inner_low - reach) & (scores <= inner_high + reach)]
    return float(near.min()), float(near.max())


@dataclass(frozen=True, slots=True)
class Line:
    """A line at a place in percent, with its text."""

    at: str
    text: str
    anchor: str = "middle"


Lines = tuple[Line, ...]


def not_drawn(window: Window, **classes: Scores) -> str:
    """Return in words how many scores are far away or infinite, and at which edge they would be."""
    found = []
    for edge, end in (("left", -inf), ("right", inf)):
        counted: dict[str, list[str]] = {"off scale": [], f"at {minus(str(end))}": []}
        for name, scores in classes.items():
            outside = np.count_nonzero(scores < window.low if edge == "left" else scores > window.high)
            infinite = np.count_nonzero(scores == end)
            for where, count in zip(counted, (outside - infinite, infinite), strict=True):
                if count:
                    counted[where].append(f"{count:,} {name}")
        found += [f"{' and '.join(those)} {where} ({edge})" for where, those in counted.items() if those]
    return f"Not drawn: {'; '.join(found)}." if found else ""


def scores_picture(rule: Rule, normal: Scores, anomalous: Scores) -> Drawing:
    """Return both classes on a linear and on a log scale, with the thresholds of a rule."""
    window = Window.around((normal, anomalous), [rule.normal_below, rule.anomaly_from])
    scores, tails = histograms(window, normal, anomalous)
    around = {"window": window, "sizes": (normal.size, anomalous.size)}
    return around | {"scores": scores, "tails": tails} | thresholds(window, rule)


@dataclass(frozen=True, slots=True, eq=False)
class ByReview:
    """The highest scores of traffic by review, about twice as many as alarms, and bars that count them."""

    window: Window
    edges: NDArray[np.floating]
    parts: dict[str, Scores]

    @classmethod
    def of(cls, threshold: float, scores: Scores, verdicts: NDArray[np.int8]) -> "ByReview":
        """Return the scores around a threshold, which lies between two bars."""
        known = scores[~np.isnan(scores)]
        rank = min(known.size, 2 * int(np.count_nonzero(known >= threshold)) + _FEW_ALARMS)
        low = kth_largest(known, rank) if rank else 0.0
        if np.count_nonzero(known >= low) > 2 * rank and known.max() > low:
            low = float(known[known > low].min())  # so many scores are equal that they would dwarf the others
        window = Window.around([known[known >= low]], [threshold], _FEW_SHARE)
        width = window.span / _BINS
        first = threshold if threshold in window else window.low
        edges = first + width * np.arange(-ceil((first - window.low) / width), _BINS + 1)
        edges = edges[: np.searchsorted(edges, window.high) + 1]
        high = scores >= edges[0]
        parts = {name: scores[high & (verdicts == code)] for name, code in _REVIEWED.items()}
        return cls(Window(float(edges[0]), float(edges[-1])), edges, parts)

    @property
    def counts(self) -> dict[str, Rates]:
        """The number of points in each bar, by review."""
        return {name: np.histogram(part, self.edges)[0] for name, part in self.parts.items()}


def alarms_picture(rule: Rule, scores: Scores, verdicts: NDArray[np.int8]) -> Drawing:
    """Return the highest scores in bars, those found right below, then those found wrong, and the others."""
    shown = ByReview.of(rule.anomaly_from, scores, verdicts)
    counts, bins = shown.counts, shown.edges.size - 1
    top = 1.08 * max(1.0, np.sum([*counts.values()], axis=0).max())
    bars, base = [], np.zeros(bins)
    for name, count in counts.items():
        base = base + count
        drawn = np.flatnonzero(count)
        bars += [(name, f"{100.0 * i / bins:g}", 1.0 - base[i] / top, count[i] / top) for i in drawn]
    step = max(1, round(_round_step(top, 4)))
    levels = tuple(Line(f"{100.0 - 100.0 * n / top:.1f}", f"{n:,}") for n in range(step, int(top) + 1, step))
    picture = {"bars": bars, "width": f"{100.0 / bins:g}", "levels": levels, "ticks": _ticks(shown.window)}
    sizes = {name: int(count.sum()) for name, count in counts.items()}
    beyond = not_drawn(shown.window, **shown.parts)
    return picture | {"sizes": sizes, "beyond": beyond} | thresholds(shown.window, rule)


def multiple(window: Window, rule: Rule, normal: Scores, anomalous: Scores, name: str, words: str) -> Drawing:
    """Return a small histogram of two classes, each in percent of itself, with the thresholds of a rule."""
    shares = [_shares(window, scores) for scores in (normal, anomalous)]
    top = max(float(np.concatenate(shares).max()), 0.01)
    drawn = {"name": name, "words": words, "ticks": _ticks(window, _FEW_CHARACTERS)}
    return drawn | _outlines([share / top for share in shares]) | thresholds(window, rule)


def histograms(window: Window, normal: Scores, anomalous: Scores) -> tuple[Drawing, Drawing]:
    """Return the histograms of both classes in percent of each class, on a linear and on a log scale."""
    shares = [_shares(window, scores) for scores in (normal, anomalous)]
    heights = np.concatenate(shares)
    top = max(float(heights.max()), 0.01)
    step = _round_step(top, 4)
    marks = (step * i for i in range(1, 9))
    levels = tuple(Line(f"{100.0 - 100.0 * x / (1.08 * top):.1f}", percent(x)) for x in marks if x <= top)
    low = 10.0 ** floor(log10(float(heights[heights > 0].min(initial=1.0)) / 2.0))
    tails = [np.where(share > 0, _on_log(np.maximum(share, low), low), 0.0) for share in shares]
    around = {"ticks": _ticks(window), "beyond": not_drawn(window, normal=normal, anomalous=anomalous)}
    linear = _outlines([share / (1.08 * top) for share in shares]) | {"levels": levels}
    return around | linear, around | _outlines(tails) | {"levels": _log_levels(low)}


def _shares(window: Window, scores: Scores) -> Rates:
    return np.asarray(np.histogram(scores, _BINS, (window.low, window.high))[0] / max(1, scores.size))


def bands(window: Window, curve: Curve) -> Drawing:
    """Return the bounds of a curve at the thresholds of a window, as steps on a log scale."""
    thresholds = np.linspace(window.low, window.high, _STEPS)
    rates = curve.fpr(thresholds), curve.fnr(thresholds)
    known = np.concatenate(rates)
    low = 10.0 ** floor(log10(max(_LEAST, float(known[known > 0].min(initial=0.5)) / 1.5)))
    fpr, fnr = (_steps(_on_log(np.clip(rate, low, 1.0), low)) for rate in rates)
    return {"fpr": fpr, "fnr": fnr, "levels": _log_levels(low)}


def thresholds(window: Window, rule: Rule) -> Drawing:
    """Return the flags of a rule, and where the scores that are abstained on begin and how far they reach."""
    undecided = None
    if not rule.single:
        low, high = np.clip((rule.normal_below, rule.anomaly_from), window.low, window.high).tolist()
        undecided = f"{100.0 * window.share(low):.3f}", f"{100.0 * (high - low) / window.span:.3f}"
    return {"flags": flags(window, rule), "undecided": undecided}


def flags(window: Window, rule: Rule) -> Lines:
    """Return the thresholds of a rule that lie in a window, each with its text, the topmost first."""
    ends = {"normal <": rule.normal_below, "anomaly \N{GREATER-THAN OR EQUAL TO}": rule.anomaly_from}
    if rule.single:
        del ends["normal <"]
    found, rooms = [], []
    for name, x in ends.items():
        if x in window:
            share, text = window.share(x), f"{name} {number(x, window.span)}"
            anchor = "start" if share < 0.3 else "end" if share > 0.7 else "middle"
            found.append(Line(f"{100.0 * share:.3f}", text, anchor))
            width = 7.2 * len(text) + 6.0
            rooms.append((share * _NARROW >= width, (1.0 - share) * _NARROW >= width))
    if len(found) < 2:
        return tuple(found)
    # the line of the first runs down, so the second writes away from it where there is room
    left, right = found
    if rooms[1][1]:
        return left, replace(right, anchor="start")
    return right, replace(left, anchor="end") if rooms[0][0] else left


def _ticks(window: Window, room: int = _CHARACTERS) -> Lines:
    """Return round scores along a picture, as many as fit with their labels."""

    def lines(most: int) -> Lines:
        step = _round_step(window.span, most)
        values = [i * step for i in range(ceil(window.low / step), floor(window.high / step) + 1)]
        values = [value for value in values if 0.07 < window.share(value) < 0.93]
        texts = zip(values, written_alike(values), strict=True)
        return tuple(Line(f"{100.0 * window.share(x):.3f}", text) for x, text in texts)

    found = (lines(most) for most in range(7, 0, -1))
    return next((one for one in found if sum(len(tick.text) + 3 for tick in one) <= room), ())


def _round_step(span: float, most: int) -> float:
    """Return the least of 1, 2, 5, 10, ... that divides a span into at most `most` parts."""
    power = 10.0 ** floor(log10(span / most))
    steps = (factor * power for factor in (1.0, 2.0, 5.0, 10.0))
    return next(step for step in steps if span <= step * most * (1 + 1e-9))


def _on_log(values: Rates, low: float) -> Rates:
    """Return shares as heights on a log scale that reaches from a low one to all."""
    return np.asarray((np.log10(values) - np.log10(low)) / -np.log10(low))


def _log_levels(low: float) -> Lines:
    decades = -round(log10(low))
    powers = range(0, -decades, -max(1, ceil(decades / 4)))
    levels = [Line(f"{100.0 - 100.0 * (x + decades) / decades:.1f}", percent(10.0**x)) for x in powers]
    return tuple(levels[::-1])


def _outlines(classes: list[Rates]) -> Drawing:
    """Return the bars of both classes without lines between them, each as the path of an area."""
    paths = []
    for heights in classes:
        width, path = 1000.0 / heights.size, ""
        for above, run in groupby(enumerate(heights.tolist()), lambda bar: bar[1] > 0.0):
            if above:
                bars = list(run)
                tops = (f"V{100.0 - 100.0 * height:.1f}H{(i + 1) * width:g}" for i, height in bars)
                path += f"M{bars[0][0] * width:g} 100{''.join(tops)}V100Z"
        paths.append(path)
    return dict(zip(("normal", "anomalous"), paths, strict=True))


def _steps(heights: Rates) -> str:
    """Return a path that changes only where a height does."""
    ups = [f"{100.0 - 100.0 * height:.1f}" for height in heights.tolist()]
    turns = (i for i in range(1, len(ups)) if ups[i] != ups[i - 1])
    path = "".join(f"H{1000.0 * i / (len(ups) - 1):.1f}V{ups[i]}" for i in turns)
    return f"M0 {ups[0]}{path}H1000"


def panels(rates: dict[str, float]) -> tuple[Drawing, ...]:
    """Return a small picture for each distance, from the rates that are kept before any shift; or none."""
    top = min(0.999, _MOST * max(rates.values(), default=0.0))
    if top <= max(rates.values(), default=0.0):
        return ()
    return tuple(_panel(kind, rates, top) for kind in SHIFTS)


def _panel(kind: type[Distance], rates: dict[str, float], top: float) -> Drawing:
    first = 1.0 if kind is DensityRatio else 0.0
    ends = (kind.between(rate, top) for rate in rates.values())
    farthest = max(first if end is None else end.size for end in ends)

    def path(rate: float) -> str:
        limits = np.linspace(rate, top, _POINTS)[1:].tolist()
        found = [(kind.between(rate, limit), limit) for limit in limits]
        points = [(first, rate), *((one.size, limit) for one, limit in found if one is not None)]
        places = ((1000.0 * (x - first) / (farthest - first), 100.0 - 100.0 * y / top) for x, y in points)
        return "M" + "L".join(f"{x:.1f} {y:.2f}" for x, y in places)

    left, right = Line("0", f"{first:g}", "start"), Line("100", f"{farthest:.2g}", "end")
    ticks = left, Line("50", f"{(first + farthest) / 2.0:.2g}"), right
    levels = tuple(Line(f"{100.0 - 100.0 * share:.1f}", percent(share * top)) for share in (0.25, 0.5, 0.75))
    paths = {rate: path(rate) for rate in set(rates.values())}
    drawn = {name.lower(): paths[rates[name]] if name in rates else "" for name in ("FPR", "FNR")}
    return drawn | {"name": _NAMES[SHIFTS.index(kind)], "ticks": ticks, "levels": levels}


def curve_of(certificate: Certificate, normal: Scores | None, anomalous: Scores | None) -> Curve | None:
    """Return the curve of the calibration scores; None without them, or if they were not drawn as planned."""
    asked, drawn = certificate.guarantee, certificate.assumptions == OF_DRAWS
    if normal is None or anomalous is None or not (drawn and certificate.overlap.fixed_sizes):
        return None
    if not 0 < max(normal.size, anomalous.size) <= MOST_POINTS:
        return None
    deltas = max(asked.delta_fpr, LEAST_DELTA), max(asked.delta_fnr, LEAST_DELTA)
    with warnings.catch_warnings(), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", UpsideDownWarning)  # the report has its own words for it
        classes = (one.astype(certificate.score_type, copy=False) for one in (normal, anomalous))
        curve = CurveRequest(*deltas).certify_scores(*classes)
    return replace(curve, provenance=certificate.provenance)


def choices_of(curve: Curve) -> Iterator[dict[str, str]]:
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
        bounds = {"fpr": float(fpr[place]), "fnr": float(fnr[place])}
        words = {name: ceiling(rate) if rate < 1.0 else "not bounded" for name, rate in bounds.items()}
        yield {"name": "; ".join(reasons), "threshold": text} | words


def _alike(fpr: Rates, fnr: Rates) -> int:
    """Return where the larger of both bounds is least."""
    return int(np.lexsort((fpr + fnr, np.maximum(fpr, fnr)))[0])


def script_data(curve: Curve, window: Window, ceilings: tuple[float, float], start: float | None) -> str:
    """Return the steps of a curve as JSON for an element `script`, and the threshold to start with."""
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
        "ceilings": ceilings,
    }
    return json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _side(side: CurveSide) -> dict[str, Any]:
    """Return the steps of one class with the budget that each has in a certificate."""
    errors = side.budgets()
    scores = [side.scores[place] for place in np.searchsorted(side.ranks, errors)]
    texts = [str(score) if isinf(score) else score for score in scores]
    return {"errors": errors, "bounds": side.bounds, "scores": texts}


def _texts(curve: Curve, places: Rates, fpr: Rates, fnr: Rates) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return a mark and, for each set of bounded rates, certificates with marked names for their numbers."""
    low, high = fpr < 1.0, fnr < 1.0
    kinds = {"fpr,fnr": low & high, "fpr": low & ~high, "fnr": ~low & high}
    first = {name: float(places[np.argmax(holds)]) for name, holds in kinds.items() if holds.any()}
    found = {name: curve.at(place).to_json() for name, place in first.items()}
    mark = "@"  # it stands nowhere else, whatever the names of tables are
    while any(mark in text for text in found.values()):
        mark += "@"
    texts = {}
    for kind, text in found.items():
        content = json.loads(text)
        for path, name in _PLACES.items():
            *above, last = path.split()
            node = content
            for step in above:
                node = node[int(step)] if step.isdigit() else node.get(step, {})
            if node.get(last) is not None:
                node[last] = f"{mark}{name}"
        del content["checksum"]
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        texts[kind] = canonical, json.dumps(content | {"checksum": f"{mark}checksum"}, indent=2) + "\n"
    return mark, texts
