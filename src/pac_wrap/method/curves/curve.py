"""The certified trade-off: bounds of both error rates at every threshold together, and choices of one."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from math import inf, isnan, nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Final, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments, floats
from pac_wrap.base.codec import SavedAsJSON
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import certify
from pac_wrap.method.certificate import Certificate, digest_problems, version_problems
from pac_wrap.method.curves.band import Given, band_of
from pac_wrap.method.groups.values import Group, GroupColumn, groups_beside
from pac_wrap.method.promise import Clause, Guarantee
from pac_wrap.method.provenance import Provenance, Traced
from pac_wrap.method.rule import LARGEST, Rule
from pac_wrap.method.source import ChunkSource
from pac_wrap.method.strategies.interface import asked_of
from pac_wrap.ranks import memory
from pac_wrap.ranks.kernels import together
from pac_wrap.tails.bounds import Budget, budgets_at
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pac_wrap.method.verify import Verification

Rates = NDArray[np.float64]
# a level has eight digits, of which only the last may differ between machines
_CLOSE: Final = 1e-6
# thresholds at which no score, or every score, is declared an anomaly
_NEVER: Final = np.uint64(floats.order_key(inf))
_ALWAYS: Final = np.uint64(floats.order_key(-inf))


@dataclass(frozen=True, slots=True)
class CurveSide:
    """The steps of one class: at most `ranks[j]` errors beyond `scores[j]`, and `bounds[j]` for their rate.

    Above the last rank the bound is 1. `level` is the chance that one given bound fails, `delta` the chance
    that any does: eq. (36). A score is the (rank + 1)-th largest normal or smallest anomalous score.
    """

    n: int
    digest: str
    delta: float
    level: float
    ranks: tuple[int, ...]
    bounds: tuple[float, ...]
    scores: tuple[float, ...]
    top: float | None = field(default=None, metadata={"optional": True})

    @classmethod
    def of(cls, label: int, scores: memory.Ranked, delta: float, top: float | None) -> "CurveSide":
        band = band_of(scores.size, delta, top)
        ranks, bounds = tuple(band.ranks.tolist()), tuple(band.bounds.tolist())
        find = memory.kth_smallest if label else memory.kth_largest
        found = tuple(find(scores, rank + 1) for rank in ranks)
        return cls(scores.size, scores.digest, delta, band.level, ranks, bounds, found, top)

    def budgets(self) -> list[int]:
        return budgets_at(self.n, np.array(self.bounds), self.level, np.array(self.ranks, dtype=np.int64))

    def score_within(self, ceiling: float) -> float | None:
        """Return the score beyond which most errors are allowed within a ceiling; None if there is none."""
        place = bisect_right(self.bounds, ceiling)
        return self.scores[place - 1] if place else None

    def false_alarms(self, keys: floats.Bits) -> Rates:
        """Return the bound of the FPR at each threshold: that of the first normal score below it."""
        scores = floats.order_keys(np.array(self.scores[::-1]))
        rates = np.append(self.bounds, 1.0)[scores.size - np.searchsorted(scores, keys)]
        return np.where(keys == _NEVER, 0.0, rates)

    def misses(self, keys: floats.Bits) -> Rates:
        """Return the bound of the FNR at each threshold: that of the first anomalous score not below it."""
        rates = np.append(self.bounds, 1.0)[np.searchsorted(floats.order_keys(np.array(self.scores)), keys)]
        return np.where(keys == _NEVER, 1.0, np.where(keys == _ALWAYS, 0.0, rates))

    def problems(self, label: int, kind: floats.ScoreType) -> Iterator[str]:
        """Yield facts that do not follow from the band of n points, or are not in order."""
        yield from digest_problems(("normal", "anomalous")[label], self.n, self.digest)
        band = band_of(self.n, self.delta, self.top)
        sizes = {len(self.ranks), len(self.bounds), len(self.scores)}
        if self.ranks != tuple(band.ranks.tolist()) or len(sizes) > 1:
            yield f"{self.n:,} points have other ranks than these {len(self.ranks):,}"
            return
        levels = np.array([self.level, *self.bounds]), np.array([band.level, *band.bounds])
        if not np.allclose(*levels, rtol=_CLOSE, atol=0.0):
            yield f"the level and the bounds are not those of {self.n:,} points at delta = {self.delta}"
        if any((a > b if label else a < b) for a, b in pairwise(map(floats.order_key, self.scores))):
            yield "the scores are not in the order of their ranks"
        if not all(floats.represents(kind, score) for score in self.scores):
            yield f"a score is not a {kind}"


def _at(bound: Callable[[floats.Bits], Rates], thresholds: ArrayLike) -> Any:
    """Return the bound at one threshold, or at each of many."""
    if np.ndim(thresholds):
        return bound(floats.order_keys(arguments.as_scores(thresholds, "thresholds")))
    number = arguments.as_float(thresholds)
    if isnan(number):
        raise InputError(f"a threshold must be a number, got {quoted(thresholds)}")
    return float(bound(np.array([floats.order_key(number)], dtype=np.uint64))[0])


def cells(scores: Iterable[float]) -> Rates:
    """Return a finite threshold from each range (a, b] with constant bounds, in its middle if possible."""
    ends = floats.from_order_keys(np.unique(floats.order_keys(np.array(list(scores), dtype=np.float64))))
    if not ends.size:
        return np.zeros(1)
    low, high = ends[:-1], ends[1:]
    with np.errstate(all="ignore"):  # infinities are replaced below
        least = np.nextafter(low, inf)
        # above low and not above high, in the middle if both are finite
        middle = low / 2.0 + high / 2.0
        middle = np.where(middle > least, middle, least)
        between = np.where(high == inf, least, np.where((low == -inf) | (high < middle), high, middle))
        # scores that are all inf are reached from the largest double on
        places: Rates = np.concatenate(([min(ends[0], LARGEST)], between, [np.nextafter(ends[-1], inf)]))
    return places[np.abs(places) < inf]


def best(kept: Rates, other: Rates, ceiling: float) -> int | None:
    """Return the place of the pair within a ceiling that has the lowest other bound; None if none is."""
    allowed = np.flatnonzero(kept <= ceiling)
    if not allowed.size:
        return None
    least = other[allowed].min()
    ties = allowed[other[allowed] == least]
    # of ties, the lowest rate; but if the other rate has no bound, the highest within the ceiling
    return int(ties[np.argmin(kept[ties] if least < 1.0 else -kept[ties])])


FORMAT: Final = "pac-wrap curve"


@dataclass(frozen=True, slots=True)
class Curve(Traced, SavedAsJSON):
    """Bounds of FPR and FNR at every threshold, which all hold together; made by `certify_curve`.

    All bounds of the FPR hold with probability 1 - delta_fpr, and all of the FNR with 1 - delta_fnr: eq.
    (36). So a threshold may be chosen after looking, by eye, by cost or by anybody, and changed later. A
    curve and another certificate of the same labels hold together only with their deltas added.

    Parameters
    ----------
    normal, anomalous : CurveSide
        The steps of the band of each class.
    score_type : "float64", "float32" or "float16"
        The type of the calibration scores, to which every score is rounded before it is compared.
    version : str
        The version of the package that made it.
    provenance : Provenance, optional
        The origin of the scores, which is passed on to the certificates of its thresholds.

    Examples
    --------
    >>> from pac_wrap import certify_curve
    >>> curve = certify_curve(range(1000), range(900, 1900))
    >>> round(curve.fpr(950), 4), round(curve.fnr(950), 4)
    (0.0741, 0.0741)
    """

    normal: CurveSide
    anomalous: CurveSide
    score_type: floats.ScoreType = "float64"
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False, metadata={"optional": True})

    _header: ClassVar[dict[str, Any]] = {"format": FORMAT, "schema": 1}
    _noun: ClassVar[str] = "curve"
    _remedy: ClassVar[str] = "certify it again"

    @property
    def confidence(self) -> float:
        """The confidence that all bounds of both rates hold together, by independent classes: eq. (97)."""
        return floats.float_below(confidence_of([self]))

    @property
    def empty(self) -> bool:
        """Whether one of the two rates has no bound below 1 at any threshold."""
        return not (self.normal.bounds and self.anomalous.bounds)

    def fpr(self, thresholds: ArrayLike) -> Any:
        """Return the bound of the FPR of the rule "anomaly from t on", for one threshold or for many.

        Parameters
        ----------
        thresholds : float or array-like of float
            The thresholds; at inf the rule never declares an anomaly, and the rate is 0.
        """
        return _at(self.normal.false_alarms, thresholds)

    def fnr(self, thresholds: ArrayLike) -> Any:
        """Return the bound of the FNR of the rule "anomaly from t on", for one threshold or for many.

        The parameters are those of `fpr`; at -inf every point is declared an anomaly, and the rate is 0.
        """
        return _at(self.anomalous.misses, thresholds)

    def at(self, threshold: float) -> Certificate:
        """Return the certificate of the rule "anomaly from this threshold on"; its ceilings are the bounds.

        Parameters
        ----------
        threshold : float
            Any finite number, chosen in any way, at which one rate has a bound below 1.
        """
        given = Given(threshold, self.normal.top, self.anomalous.top)
        sides, bounds = (self.normal, self.anomalous), (self.fpr(given.threshold), self.fnr(given.threshold))
        if min(bounds) >= 1.0:
            raise InputError(
                f"the threshold {given.threshold!r} bounds neither rate below 1; choose another, or negate"
                " scores that are upside down"
            )
        max_fpr, max_fnr = (bound if bound < 1.0 else None for bound in bounds)
        asked, clauses = Guarantee(max_fpr, max_fnr, self.normal.delta, self.anomalous.delta), []
        for one, side, bound in zip(asked_of(asked), sides, bounds, strict=True):
            budget = edge = None
            if bound < 1.0:
                budget = Budget.of(side.n, bound, side.level)
                # the score beyond which the errors are within the budget
                score = side.scores[bisect_left(side.ranks, budget.errors or 0)]
                edge = nextafter(score, inf) if one.normal else score
            clauses.append(Clause(one.of, one.promise, one.promise, side.n, side.digest, budget, edge))
        return Certificate(
            guarantee=asked,
            overlap=given,
            clauses=tuple(clauses),
            rule=Rule(given.threshold, given.threshold).before_rounding(self.score_type),
            score_type=self.score_type,
            provenance=self.provenance,
        )

    def choose(self, *, max_fpr: float | None = None, max_fnr: float | None = None) -> Certificate:
        """Return the certificate of the threshold that keeps one ceiling, with the lowest bound of the other.

        Parameters
        ----------
        max_fpr, max_fnr : float, optional
            The ceiling of one of the two rates; it is an error if no threshold keeps it.
        """
        if (max_fpr is None) == (max_fnr is None):
            raise InputError("give either max_fpr or max_fnr; the curve finds what the other rate can keep")
        places, fpr, fnr = self.steps()
        if max_fpr is not None:
            name, asked, kept, other, side = "fpr", max_fpr, fpr, fnr, self.normal
        elif max_fnr is not None:
            name, asked, kept, other, side = "fnr", max_fnr, fnr, fpr, self.anomalous
        ceiling = arguments.check_rate(f"max_{name}", asked)
        if (place := best(kept, other, ceiling)) is None:
            least = f"the lowest bound is {floats.rounded_up(kept.min())} (labels of the class: {side.n:,})"
            raise InputError(f"no threshold keeps max_{name} = {ceiling!r}; {least}")
        return self.at(float(places[place]))

    def balanced(self) -> Certificate:
        """Return the certificate of the threshold at which the larger of the two bounds is lowest."""
        places, fpr, fnr = self.steps()
        if not ((worst := np.maximum(fpr, fnr)) < 1.0).any():
            raise InputError("no threshold bounds both rates below 1; label more points of both classes")
        return self.at(float(places[np.lexsort((fpr + fnr, worst))[0]]))

    def cheapest(self, cost_fp: float, cost_fn: float, prevalence: float) -> Certificate:
        """Return the certificate of the threshold with the lowest bound of the expected cost per point.

        The cost is cost_fp (1 - prevalence) FPR + cost_fn prevalence FNR, with both rates at their bounds.

        Parameters
        ----------
        cost_fp, cost_fn : float
            The cost of a false alarm and of a missed anomaly, in the same unit.
        prevalence : float
            The share of anomalies among all points.
        """
        share = arguments.check_rate("prevalence", prevalence)
        for name, cost in (("cost_fp", cost_fp), ("cost_fn", cost_fn)):
            if not 0.0 < arguments.as_float(cost) < inf:
                raise InputError(f"{name} must be a positive number, got {quoted(cost)}")
        places, fpr, fnr = self.steps()
        if not ((fpr < 1.0) | (fnr < 1.0)).any():
            raise InputError("no threshold bounds either rate below 1; label more points")
        costs = arguments.as_float(cost_fp) * (1.0 - share) * fpr + arguments.as_float(cost_fn) * share * fnr
        # a threshold at which neither rate has a bound certifies nothing, whatever it costs
        return self.at(float(places[np.argmin(np.where(np.minimum(fpr, fnr) < 1.0, costs, inf))]))

    def steps(self) -> tuple[Rates, Rates, Rates]:
        """Return a threshold for each pair of bounds, rising, and the bounds of the FPR and the FNR."""
        places = cells((*self.normal.scores, *self.anomalous.scores))
        return places, self.fpr(places), self.fnr(places)

    def verify(self, normal: ArrayLike, anomalous: ArrayLike) -> "Verification":
        """Return whether the curve follows from its calibration scores; printed, it lists the differences.

        The parameters are those of `Certificate.verify`.

        Examples
        --------
        >>> from pac_wrap import certify_curve
        >>> bool(certify_curve([0.1, 0.2], [0.8, 0.9]).verify([0.2, 0.1], [0.8, 0.9]))
        True
        """
        from pac_wrap.method.verify import verify_curve

        return verify_curve(self, normal, anomalous)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Return axes with the bound of the FNR drawn against that of the FPR; needs matplotlib.

        The parameters are those of `Certificate.plot`.
        """
        from pac_wrap.report.figures import plot_curve

        return plot_curve(self, ax)

    def _problems(self) -> Iterator[str]:
        yield from version_problems(self.version)
        if not self.normal.n + self.anomalous.n:
            yield "there is no score in either class"
        for label, side in enumerate((self.normal, self.anomalous)):
            yield from side.problems(label, self.score_type)


def confidence_of(curves: Sequence[Curve]) -> Decimal:
    """Return the confidence that all bounds of all curves of the same points hold together."""
    # the deltas of a class add up, since all curves have the same points; the classes are independent
    sides = [one.normal.delta for one in curves], [one.anomalous.delta for one in curves]
    return floats.kept_together(*(floats.confidence_left(*deltas) for deltas in sides))


@dataclass(frozen=True, slots=True)
class CurveRequest:
    """A request for a curve: its deltas and largest bounds."""

    delta_fpr: float = 0.05
    delta_fnr: float = 0.05
    anomaly_label: object = 1
    top_fpr: float | None = None
    top_fnr: float | None = None

    def __post_init__(self) -> None:
        for name in ("delta_fpr", "delta_fnr"):
            object.__setattr__(self, name, arguments.check_delta(name, getattr(self, name)))
        for name in ("top_fpr", "top_fnr"):
            object.__setattr__(self, name, arguments.rate_or_none(name, getattr(self, name)))

    @classmethod
    def of_curve(cls, curve: Curve, anomaly_label: object = 1) -> "CurveRequest":
        low, high = curve.normal, curve.anomalous
        return cls(low.delta, high.delta, anomaly_label, low.top, high.top)

    def ranks(self, sizes: tuple[int, int]) -> Iterator[memory.Rank]:
        """Yield the ranks at which both bands are anchored."""
        normal = band_of(sizes[0], self.delta_fpr, self.top_fpr).ranks.tolist()
        anomalous = band_of(sizes[1], self.delta_fnr, self.top_fnr).ranks.tolist()
        yield from (memory.Rank(0, sizes[0] - rank) for rank in normal)
        yield from (memory.Rank(1, rank + 1) for rank in anomalous)

    def certify(self, *ranked: memory.Ranked, score_type: floats.ScoreType) -> Curve:
        normal, anomalous = ranked
        if normal.size == anomalous.size == 0:
            raise InputError("normal and anomalous are both empty; pass at least one labelled score")
        low = CurveSide.of(0, normal, self.delta_fpr, self.top_fpr)
        return Curve(low, CurveSide.of(1, anomalous, self.delta_fnr, self.top_fnr), score_type)

    def certify_scores(self, normal: ArrayLike, anomalous: ArrayLike) -> Curve:
        given = arguments.as_array(normal, "normal"), arguments.as_array(anomalous, "anomalous")
        low, high = arguments.as_scores(given[0], "normal"), arguments.as_scores(given[1], "anomalous")
        if low.size and high.size:
            memory.warn_if_upside_down(memory.rough_auc(low, high), low.size, high.size)
        classes = [partial(memory.RankedInMemory, one, "scores", None) for one in (low, high)]
        ranked = together(classes, min(low.size, high.size))
        return self.certify(*ranked, score_type=arguments.type_of(*given))


def certify_curve(
    normal: ArrayLike,
    anomalous: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return bounds of both error rates that hold at every threshold together: eq. (36).

    If anomalies score significantly lower than normal points, it gives an `UpsideDownWarning`.

    Parameters
    ----------
    normal, anomalous : array-like of float
        The scores of each class, higher for more anomalous points. One class may be empty.
    delta_fpr, delta_fnr : float
        The chance, over draws of the calibration points, that any bound of the rate does not hold.
    top_fpr, top_fnr : float, optional
        The largest bound that matters, fixed before looking. Larger ones are not stated; others are lower.

    Returns
    -------
    Curve
        The bounds, and the certificate of any threshold.

    Raises
    ------
    InputError
        If scores are not one-dimensional numbers, contain NaN, or are all missing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> curve = certify_curve(rng.normal(0, 1, 2000), rng.normal(3, 1, 500))
    >>> certificate = curve.choose(max_fpr=0.05)
    >>> print(*certificate.promises, sep=", ")
    FPR <= 0.04979 (confidence 0.95), FNR <= 0.1484 (confidence 0.95)
    """
    request = CurveRequest(delta_fpr, delta_fnr, top_fpr=top_fpr, top_fnr=top_fnr)
    return request.certify_scores(normal, anomalous)


@overload
def certify_curve_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    by: GroupColumn,
    together: bool = False,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> dict[Group, Curve]: ...
@overload
def certify_curve_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve: ...
def certify_curve_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    by: GroupColumn | None = None,
    together: bool = False,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve | dict[Group, Curve]:
    """Return the curve for an array of scores and an array of labels, or a dict with a curve for each group.

    The other parameters are those of `certify_curve`.

    Parameters
    ----------
    scores, labels : array-like
        One score and one label per point, 0 (normal) or 1 (anomalous).
    anomaly_label : object
        The label that marks an anomaly.
    by : array-like, optional
        The group of each point; see `calibrate_labelled`.
    together : bool
        With `by`: whether the curves of all groups hold together, with these deltas: eq. (53).

    Examples
    --------
    >>> groups = ["a"] * 200 + ["b"] * 200
    >>> curves = certify_curve_labelled(range(400), [0, 1] * 200, by=groups, together=True)
    >>> round(curves["a"].normal.delta, 6)
    0.025321
    """
    asked = CurveRequest(delta_fpr, delta_fnr, top_fpr=top_fpr, top_fnr=top_fnr)
    given, values, mask = arguments.as_labelled(scores, labels, anomaly_label)
    wide = given if given.dtype.kind == "f" else values
    if by is None:
        if together:
            raise InputError("together is for groups; give by too, or remove together")
        return asked.certify_scores(wide[~mask], wide[mask])
    found = groups_beside(scores, values.size, by)
    if together:
        own = [floats.shared_together(one, len(found.values)) for one in (asked.delta_fpr, asked.delta_fnr)]
        asked = replace(asked, delta_fpr=own[0], delta_fnr=own[1])
    order = np.argsort(found.codes, kind="stable")
    ends = np.cumsum(np.bincount(found.codes, minlength=len(found.values)))
    each = zip(found.values, np.split(order, ends[:-1]), strict=True)
    return {one: asked.certify_scores(wide[rows[~mask[rows]]], wide[rows[mask[rows]]]) for one, rows in each}


def certify_curve_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ArrayLike]]],
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return the curve of data that is read in chunks, the same as `certify_curve` gives for all of it.

    The other parameters are those of `certify_curve`.

    Parameters
    ----------
    chunks : callable
        A function that starts a fresh iteration over pairs of scores and labels, the same pairs each time.
    anomaly_label : object
        The label that marks an anomaly.

    Examples
    --------
    >>> parts = [([0.1, 0.9], [0, 1]), ([], []), ([0.2], [0])]
    >>> certify_curve_chunks(lambda: parts) == certify_curve([0.1, 0.2], [0.9])
    True
    """
    request = CurveRequest(delta_fpr, delta_fnr, anomaly_label, top_fpr, top_fnr)
    return certify(ChunkSource(chunks, anomaly_label), request)
