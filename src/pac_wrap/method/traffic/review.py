"""What to review next: the alarms whose answers may lower the threshold, from the highest score down."""

import warnings
from math import inf, nextafter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import as_array, as_scores, check_positive, check_same_length
from pac_wrap.base.text import amount, quoted
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import Error, Guarantee
from pac_wrap.method.traffic.calibrate import as_reviews, calibrate_traffic


def edge_of(made: Certificate) -> float:
    """Return the threshold of a certificate of traffic, before it is rounded to a type."""
    edge = made.thresholds.alarm_from
    assert edge is not None  # a promise about missed anomalies alone has none
    return edge


class ReviewQueue:
    """The traffic of a promise and its reviews so far; it names the points to review next.

    A point without a review counts as normal, so the point to review next is always the highest one that
    nobody has reviewed. Stop at any time: the certificate is valid whatever was reviewed, and why. The
    parameters are those of `calibrate_traffic`; give the reviews so far, if there are any.

    Examples
    --------
    >>> queue = ReviewQueue(range(1000), Guarantee(max_false_alarms=0.01))
    >>> queue.next(3)
    array([999, 998, 997])
    >>> queue.add([999, 998], [1, 0])
    >>> queue.wrong_left, queue.certificate.traffic.alarms
    (4, 5)
    """

    def __init__(self, scores: ArrayLike, guarantee: Guarantee, reviews: ArrayLike | None = None) -> None:
        self._given: NDArray[Any] | None = as_array(scores, "scores")
        self._scores = as_scores(self._given, "scores", missing=True)
        self._reviews = as_reviews(reviews, self._scores.size)
        of = guarantee.promises if isinstance(guarantee, Guarantee) and guarantee.of_traffic else ()
        if any(one.by_coins or one.of.side == "anomalous" for one in of):
            raise InputError(
                "a queue takes the highest points first, so it has no max_fnr and no rate of reviews below 1,"
                " which need points that coins draw; leave them out here, and calibrate_traffic takes them"
            )
        self.guarantee = guarantee
        self._made: Certificate | None = None
        # the highest score first; of equal ones the first in the table; points without a score never
        order = np.argsort(-self._scores, kind="stable")
        self._order = order[: int(np.count_nonzero(~np.isnan(self._scores)))]
        self.certificate  # noqa: B018  # refuses what cannot be promised before anybody reviews

    @classmethod
    def of_highest(cls, made: Certificate, scores: NDArray[Any], reviews: NDArray[Any]) -> "ReviewQueue":
        """Return the queue of a certificate's traffic, given as many of its highest points as matter.

        These are the highest points found wrong, one more than the budget of false alarms, and the highest
        without a review, as many as will be asked for. The queue takes no answers.

        Parameters
        ----------
        made, scores, reviews : Certificate and arrays of float
            The certificate of all points, and the points that matter.
        """
        queue = cls.__new__(cls)
        queue._given, queue._scores, queue._reviews = None, scores, as_reviews(reviews, scores.size)
        queue.guarantee, queue._made, queue._order = made.guarantee, made, np.argsort(-scores, kind="stable")
        return queue

    @property
    def reviews(self) -> NDArray[np.float64]:
        """The reviews so far: 1 (right), 0 (wrong) or NaN."""
        return np.where(self._reviews < 0, np.nan, self._reviews)

    @property
    def certificate(self) -> Certificate:
        """The certificate of the traffic with the reviews so far."""
        if self._made is None:
            assert self._given is not None
            self._made = calibrate_traffic(self._given, self.reviews, self.guarantee)
        return self._made

    @property
    def _budget(self) -> int | None:
        """The smallest budget of false alarms, -1 if one is missing; None if they are not promised."""
        own = [one for one in self.certificate.clauses if one.of.error is Error.FALSE_ALARM]
        return min((-1 if one.errors is None else one.errors for one in own), default=None)

    def _lowest(self) -> float:
        """Return the threshold if all further reviews are right: no point below it matters.

        With precision that takes another calibration; of the highest points alone it is then unknown.
        """
        if self.guarantee.min_precision is not None:
            if self._given is None:
                return -inf
            best = np.where(np.isnan(self._scores) | (self._reviews >= 0), self.reviews, 1.0)
            with warnings.catch_warnings(action="ignore", category=PACWrapWarning):
                return edge_of(calibrate_traffic(self._given, best, self.guarantee))
        if (errors := self._budget) is None or errors < 0:
            return inf
        wrong = self._scores[self._order[self._reviews[self._order] == 0]][errors:]
        alarms = [one.threshold or 0.0 for one in self.certificate.clauses if one.of.error is Error.ALARM]
        return max([nextafter(wrong[0] if wrong.size else -inf, inf), *alarms])

    @property
    def wrong_left(self) -> int | None:
        """How many more wrong alarms may be found before reviews cannot lower the threshold; None if unknown.

        It is unknown without a promise about false alarms, and with one about precision.
        """
        errors = self._budget
        if errors is None or self.guarantee.min_precision is not None:
            return None
        above = self._scores >= nextafter(edge_of(self.certificate), -inf)
        return 0 if self.done else errors + 1 - int(np.count_nonzero(above & (self._reviews == 0)))

    @property
    def done(self) -> bool:
        """Whether no further review can lower the threshold."""
        return not self.next(1).size

    def next(self, n: int = 1) -> NDArray[np.intp]:
        """Return the positions of the next points to review, the highest score first; none if none can help.

        Stop as soon as `wrong_left` of them turn out wrong.

        Parameters
        ----------
        n : int
            How many points at most.
        """
        check_positive("n", n)
        unseen, lowest = self._order[self._reviews[self._order] < 0], self._lowest()
        helps = lowest < edge_of(self.certificate)
        return unseen[self._scores[unseen] >= lowest][: n if helps else 0]

    def add(self, positions: ArrayLike, verdicts: ArrayLike) -> None:
        """Add reviews; a later review of the same point replaces the earlier one.

        Parameters
        ----------
        positions : array-like of int
            The positions of the reviewed points, as `next` gave them.
        verdicts : array-like
            For each of them 1 (right: an anomaly) or 0 (wrong: normal).
        """
        if self._given is None:
            raise InputError("this queue holds only the highest points; calibrate again with the new reviews")
        places = np.atleast_1d(np.asarray(positions))
        found = as_reviews(np.atleast_1d(np.asarray(verdicts)), np.atleast_1d(np.asarray(verdicts)).size)
        check_same_length("positions", places.size, "verdicts", found.size)
        if places.size and (
            places.ndim > 1
            or places.dtype.kind not in "iu"
            or not 0 <= places.min() <= places.max() < self._scores.size
        ):
            raise InputError(
                f"positions must be whole numbers from 0 to {self._scores.size - 1:,}, got"
                f" {quoted(positions)}"
            )
        if np.unique(places).size < places.size:
            raise InputError("a position is there twice; give each point one answer at a time")
        if (found < 0).any():
            raise InputError("verdicts must be 1 (right) or 0 (wrong), and none may be missing")
        if (unscored := np.isnan(self._scores[places])).any():
            raise InputError(
                f"the point at position {int(places[unscored][0])} has no score, so it raises no alarm; drop"
                " its review"
            )
        self._reviews[places.astype(np.intp)], self._made = found, None

    def __str__(self) -> str:
        left, seen = self.wrong_left, self.certificate.traffic
        assert seen is not None
        assert seen.cleared is not None
        text = f"{amount(seen.found + seen.cleared, 'review')} so far, {seen.found:,} right"
        if self.done:
            return f"{text}; no further review lowers the threshold"
        return text if left is None else f"{text}; {amount(left, 'more wrong alarm')} end the gain"
