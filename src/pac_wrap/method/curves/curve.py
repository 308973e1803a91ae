"""The certified trade-off: bounds of both error rates at every threshold at once, and choices among them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import ScoreType, as_float, check_rate
from pac_wrap.base.filed import Filed
from pac_wrap.base.foreign import quoted
from pac_wrap.base.rounding import confidence_left, float_below, kept_together, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certificates.provenance import Provenance, Traced
from pac_wrap.method.curves.side import CurveSide, best, cells, problems, threshold_keys
from pac_wrap.method.strategies.given import Given, outcome_at
from pac_wrap.method.thresholds import Evidence, Thresholds, find_regime
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rates = NDArray[np.float64]
FORMAT: Final = "pac-wrap curve"


@dataclass(frozen=True, slots=True)
class Curve(Traced, Filed):
    """Bounds of the FPR and the FNR at every threshold, all of which hold at once; made by `certify_curve`.

    With probability 1 - delta_fpr all bounds of the FPR hold, with 1 - delta_fnr all of the FNR: eq. (36). So
    a threshold may be chosen after looking, by eye, by cost or by somebody else, and again tomorrow. Where a
    bound would exceed the largest that was asked for, it is 1: nothing is said. A curve
    and another certificate of the same labels hold together only with their deltas added.

    Parameters
    ----------
    normal, anomalous : CurveSide
        The steps of the band of each class.
    score_type : "float64", "float32" or "float16"
        The type of the calibrating scores, to which every score is rounded before it is compared.
    version : str
        The version of the package that made it.
    provenance : Provenance, optional
        Where the scores came from, which the certificates of its thresholds take over.

    Examples
    --------
    >>> from pac_wrap import certify_curve
    >>> curve = certify_curve(range(1000), range(900, 1900))
    >>> round(curve.fpr(950), 4), round(curve.fnr(950), 4)
    (0.0741, 0.0741)
    >>> certificate = curve.choose(max_fpr=0.05)
    >>> certificate.rule.single, certificate.certified.max_fpr <= 0.05
    (True, True)
    """

    normal: CurveSide
    anomalous: CurveSide
    score_type: ScoreType = "float64"
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False, metadata={"optional": True})

    _header: ClassVar[dict[str, Any]] = {"format": FORMAT, "schema": 1}
    _noun: ClassVar[str] = "curve"
    _remedy: ClassVar[str] = "certify it again"

    @property
    def confidence(self) -> float:
        """How surely all bounds of both rates hold at once: the classes are independent, eq. (97)."""
        sides = self.normal, self.anomalous
        return float_below(kept_together(*(confidence_left(side.delta) for side in sides)))

    @property
    def empty(self) -> bool:
        """Whether one of the two rates is bounded below 1 at no threshold."""
        return not (self.normal.bounds and self.anomalous.bounds)

    def fpr(self, thresholds: ArrayLike) -> Any:
        """Return the bound of the FPR of the rule "anomaly from t on", for one threshold or for each of many.

        Parameters
        ----------
        thresholds : float or array-like of float
            The thresholds; at inf the rule never declares an anomaly, and the rate is 0.

        Returns
        -------
        float or ndarray of float
            The bounds.
        """
        rates = self.normal.false_alarms(threshold_keys(thresholds))
        return rates if np.ndim(thresholds) else float(rates[0])

    def fnr(self, thresholds: ArrayLike) -> Any:
        """Return the bound of the FNR of the rule "anomaly from t on", for one threshold or for each of many.

        Parameters
        ----------
        thresholds : float or array-like of float
            The thresholds; at -inf the rule declares everything an anomaly, and the rate is 0.

        Returns
        -------
        float or ndarray of float
            The bounds.
        """
        rates = self.anomalous.misses(threshold_keys(thresholds))
        return rates if np.ndim(thresholds) else float(rates[0])

    def at(self, threshold: float) -> Certificate:
        """Return the certificate of the rule "anomaly from this threshold on", with its bounds for ceilings.

        Parameters
        ----------
        threshold : float
            Any finite number, however it was chosen.

        Returns
        -------
        Certificate
            One that `verify` checks against the scores, like any other.

        Raises
        ------
        InputError
            If the threshold is not finite, or neither rate has a bound below 1 there.
        """
        given = Given(threshold, self.normal.top, self.anomalous.top)
        fpr = self.normal.budget(self.fpr(given.threshold))
        fnr = self.anomalous.budget(self.fnr(given.threshold))
        thresholds = Thresholds(
            None if fpr is None else nextafter(self.normal.score_at(fpr.errors), inf),
            None if fnr is None else self.anomalous.score_at(fnr.errors),
        )
        deltas = self.normal.delta, self.anomalous.delta
        found = outcome_at(given.threshold, deltas, (fpr, fnr), thresholds)
        if found.certified is None:
            raise InputError(
                f"the threshold {given.threshold!r} bounds neither rate below 1; choose another, or negate"
                " scores that are upside down"
            )
        return Certificate(
            guarantee=found.certified,
            overlap=given,
            certified=found.certified,
            rule=found.rule.before_rounding(self.score_type),
            thresholds=thresholds,
            regime=find_regime(thresholds, fpr, fnr),
            normal=Evidence(self.normal.n, self.normal.digest, fpr, None),
            anomalous=Evidence(self.anomalous.n, self.anomalous.digest, fnr, None),
            score_type=self.score_type,
            provenance=self.provenance,
        )

    def choose(self, *, max_fpr: float | None = None, max_fnr: float | None = None) -> Certificate:
        """Return the certificate of the threshold that keeps one ceiling at the least bound of the other.

        Parameters
        ----------
        max_fpr, max_fnr : float, optional
            The ceiling, of one rate.

        Returns
        -------
        Certificate
            That of the threshold.

        Raises
        ------
        InputError
            If not exactly one ceiling is given, or no threshold keeps it.
        """
        if (max_fpr is None) == (max_fnr is None):
            raise InputError("give either max_fpr or max_fnr; the curve finds what the other rate can keep")
        places, fpr, fnr = self.steps()
        if max_fpr is not None:
            name, asked, kept, other, side = "fpr", max_fpr, fpr, fnr, self.normal
        elif max_fnr is not None:
            name, asked, kept, other, side = "fnr", max_fnr, fnr, fpr, self.anomalous
        ceiling = check_rate(f"max_{name}", asked)
        if (place := best(kept, other, ceiling)) is None:
            least = f"{side.n:,} labels of its class bound it by {rounded_up(kept.min())} at best"
            raise InputError(f"no threshold keeps max_{name} = {ceiling!r}; {least}")
        return self.at(float(places[place]))

    def balanced(self) -> Certificate:
        """Return the certificate of the threshold at which the larger of the two bounds is least."""
        places, fpr, fnr = self.steps()
        if not ((worst := np.maximum(fpr, fnr)) < 1.0).any():
            raise InputError("no threshold bounds both rates below 1; label more points of both classes")
        return self.at(float(places[np.lexsort((fpr + fnr, worst))[0]]))

    def cheapest(self, cost_fp: float, cost_fn: float, prevalence: float) -> Certificate:
        """Return the certificate of the threshold with the least bound of the expected cost per point.

        cost_fp (1 - prevalence) FPR + cost_fn prevalence FNR, both rates at their bounds.

        Parameters
        ----------
        cost_fp, cost_fn : float
            What a false alarm and what a missed anomaly costs, in the same unit.
        prevalence : float
            The share of anomalies among all points.

        Returns
        -------
        Certificate
            That of the threshold.

        Raises
        ------
        InputError
            If a cost is not a positive number, or the prevalence none between 0 and 1.
        """
        share = check_rate("prevalence", prevalence)
        for name, cost in (("cost_fp", cost_fp), ("cost_fn", cost_fn)):
            if not 0.0 < as_float(cost) < inf:
                raise InputError(f"{name} must be a positive number, got {quoted(cost)}")
        places, fpr, fnr = self.steps()
        if not ((fpr < 1.0) | (fnr < 1.0)).any():
            raise InputError("no threshold bounds either rate below 1; label more points")
        costs = as_float(cost_fp) * (1.0 - share) * fpr + as_float(cost_fn) * share * fnr
        # a threshold at which neither rate is known certifies nothing, whatever it costs
        return self.at(float(places[np.argmin(np.where(np.minimum(fpr, fnr) < 1.0, costs, inf))]))

    def steps(self) -> tuple[Rates, Rates, Rates]:
        """Return a threshold for each pair of bounds, rising, and the bounds of the FPR and the FNR."""
        places = cells((*self.normal.scores, *self.anomalous.scores))
        return places, self.fpr(places), self.fnr(places)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the bound of the FNR against that of the FPR; needs matplotlib.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default a new figure, which a notebook shows.

        Returns
        -------
        Axes
            What was drawn on.
        """
        from pac_wrap.report.figures.curve import plot_curve

        return plot_curve(self, ax)

    def __str__(self) -> str:
        from pac_wrap.report.words.certificate import lines_of_curve

        return "\n".join(f"{name:<10} {text}" for name, text in lines_of_curve(self))

    def _problems(self) -> Iterator[str]:
        return problems(self.normal, self.anomalous, self.score_type, self.version)
