"""Labelling until a promise can be kept: looks at the labels as they come, all covered by one delta."""

from dataclasses import dataclass, replace
from math import nextafter
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, as_array, as_labelled, check_rate, common_type, type_of
from pac_wrap.base.floats import ScoreType, rounded_up
from pac_wrap.base.text import amount
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import Guarantee, Promise, as_guarantee
from pac_wrap.method.strategies.interface import OneGroup, asked_of
from pac_wrap.method.strategies.looks import Looks, is_within
from pac_wrap.ranks.memory import RankedInMemory, rough_auc, warn_if_upside_down
from pac_wrap.ranks.passes import check_normal_labels
from pac_wrap.tails.bounds import min_samples
from pac_wrap.tails.levels import Rungs, first_success, look_budgets

_UNDECIDED: Final = {
    False: "keep labelling: no look has succeeded yet",
    True: "ended: no look succeeded, and no later one can",
}


class PerClass(NamedTuple):
    """A number for each class."""

    normal: int
    anomalous: int


@dataclass(frozen=True, slots=True)
class _State:
    """The points so far: scores in the order of their labels, and the latest look at each class."""

    scores: tuple[Scores, Scores] = (np.empty(0), np.empty(0))
    at: tuple[int, int] = (0, 0)
    # which classes are within budget at a given threshold: they need no further look
    settled: tuple[bool, bool] = (False, False)
    success: bool = False
    score_type: ScoreType | None = None
    normal_label: Any = None


class LabelUntil:
    """Add labels until a promise can be kept: one delta covers all looks, so stop at the first success.

    There is a look at a class whenever `every` more of its points are labelled. Success is a single threshold
    that keeps every requested ceiling: the classes are separated, each judged at its latest look. With
    `threshold`, success means that the errors there are within budget at some look of each class: eq. (39).

    The choice of labelled points must not depend on their scores, nor on anything related to them: label a
    random sample, or all points as they come. Labelling where the detector is unsure voids the certificate.

    Parameters
    ----------
    guarantee : Guarantee, optional
        The promises to certify; by default both rates at most 0.05, each with delta 0.05. A single ceiling
        needs a `threshold`: without one, the first look with a budget succeeds. `calibrate` needs fewer.
    every : int
        The number of labels of a class from one look to the next.
    up_to : int
        The number of labels of a class at its last look.
    threshold : float, optional
        The threshold to certify, fixed before any of these scores was seen. By default it is found by rank.
    anomaly_label : object
        The label that marks an anomaly; -1 reads scikit-learn's +1 and -1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> until = LabelUntil(Guarantee(max_fpr=0.05, max_fnr=0.1))
    >>> while not until.done:
    ...     labels = rng.random(50) < 0.3
    ...     _ = until.add(rng.normal(4.0 * labels), labels.astype(int))
    >>> until.labels, until.certificate.regime.value
    (PerClass(normal=180, anomalous=64), 'separated')
    """

    def __init__(
        self,
        guarantee: Guarantee | None = None,
        every: int = 20,
        up_to: int = 2000,
        threshold: float | None = None,
        *,
        anomaly_label: object = 1,
    ) -> None:
        self._strategy = looks = Looks(every, up_to, threshold)
        # the final numbers of labels are unknown, so a confidence is not shared by them
        asked = self._strategy.settled(as_guarantee(guarantee), (0, 0))
        self._request = Request(asked, self._strategy, anomaly_label)
        self._sides, promises = (asked.fpr, asked.fnr), asked.promises
        if len(promises) == 1 and threshold is None:
            least = min_samples(promises[0].at_calibration, promises[0].delta)
            raise InputError(
                f"a single ceiling, {promises[0].name} <= {rounded_up(promises[0].ceiling)}, needs a"
                f" threshold to look at; without one {least:,} labels of the class are enough for calibrate"
            )
        for promise in promises:
            if looks.budget(promise, self.looks[-1]).errors is None:
                least = min_samples(promise.at_calibration, promise.delta)
                raise InputError(
                    f"up_to = {looks.up_to:,} labels of a class, looked at every {looks.every:,}, cannot"
                    f" certify {promise.name} <= {rounded_up(promise.ceiling)} at any look; go up to at"
                    f" least {-(-least // looks.every) * looks.every:,}"
                )
        self._state = _State()

    @property
    def looks(self) -> range:
        """The number of labels of a class at each of its looks."""
        return self._strategy.looks

    @property
    def labels(self) -> PerClass:
        """The number of labels of each class, without those beyond the last look."""
        return PerClass(*(scores.size for scores in self._state.scores))

    @property
    def success(self) -> bool:
        """Whether one threshold keeps every requested ceiling."""
        return self._state.success

    @property
    def done(self) -> bool:
        """Whether labelling can end: after a success, or if no later look can succeed."""
        return self._is_over(self._state)

    @property
    def scores(self) -> tuple[Scores, Scores]:
        """The normal and the anomalous scores that the certificate uses, up to each class's latest look."""
        low, high = (scores[:n] for scores, n in zip(self._state.scores, self._state.at, strict=True))
        return low, high

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the latest looks, valid at any time; it has one threshold after a success."""
        low, high = self.scores
        if not low.size and not high.size:
            return None
        classes = RankedInMemory(low, "normal", 1), RankedInMemory(high, "anomalous", 1)
        return self._request.certify(*classes, score_type=self._state.score_type or "float64")

    def add(self, scores: ArrayLike, labels: ArrayLike) -> int:
        """Add points in the order in which they were labelled, and return how many of them count.

        Points after the end, or beyond a class's last look, do not count. After an error nothing has changed.

        Parameters
        ----------
        scores, labels : array-like
            One score and one label per point: 0 (normal) and 1 (anomalous), unless `anomaly_label` differs.
        """
        if self.done:
            raise InputError("labelling has ended; read the certificate, or start a new LabelUntil")
        before, state, mark = sum(self.labels), self._state, self._request.anomaly_label
        given, values, mask = as_labelled(scores, labels, mark)
        if not mask.all():
            name = as_array(labels, "labels")[int(mask.argmin())]
            known = name if state.normal_label is None else state.normal_label
            check_normal_labels("this batch", known, name, mark)
            state = replace(state, normal_label=known)
        kind = common_type([state.score_type, type_of(given) if given.size else None])
        self._state = self._look(replace(state, score_type=kind), values, mask)
        if self._is_over(self._state) and all(self.labels):
            warn_if_upside_down(rough_auc(*self._state.scores), *self.labels)
        return sum(self.labels) - before

    def __str__(self) -> str:
        local = ", ".join(
            f"{rounded_up(self._strategy.local(promise))} ({promise.name})"
            for promise in self._request.guarantee.promises
        )
        every, up_to = self._strategy.every, self._strategy.up_to
        looks = f"at every {every:,} labels of a class, up to {up_to:,}; local delta {local}"
        state = "certified: one threshold keeps all ceilings" if self.success else _UNDECIDED[self.done]
        texts = {"asked": self._request.guarantee, "looks": looks, "normal": self._progress(0)}
        texts |= {"anomalous": self._progress(1), "state": state}
        return "\n".join(f"{name:<10} {text}" for name, text in texts.items())

    def _is_over(self, state: _State) -> bool:
        promised = [label for label in (0, 1) if self._sides[label] is not None]
        ended = [state.at[label] == self.looks[-1] and not state.settled[label] for label in promised]
        # a given threshold needs both classes; without one, more labels of the other class may still help
        return state.success or (all(ended) if self._strategy.threshold is None else any(ended))

    def _look(self, state: _State, values: Scores, mask: NDArray[np.bool_]) -> _State:
        """Return the state after a batch, with every look that falls into it, in order, until the end."""
        before, last, tau = self.labels, self.looks[-1], self._strategy.threshold
        places = [np.flatnonzero(mask == bool(label))[: last - before[label]] for label in (0, 1)]
        scores = [np.concatenate((state.scores[label], values[places[label]])) for label in (0, 1)]
        due = sorted(
            (int(places[label][n - before[label] - 1]), label, n)
            for label in (0, 1)
            for n in self.looks
            if before[label] < n <= scores[label].size
        )
        for place, label, n in due:
            if not state.settled[label]:
                low, high = (n, state.at[1]) if label == 0 else (state.at[0], n)
                asked = asked_of(self._request.guarantee)
                decision = self._strategy.decide(asked, OneGroup((scores[0][:low], scores[1][:high])))
                settled, own = list(state.settled), decision.found[label]
                if tau is not None and own is not None:
                    settled[label] = bool(is_within(tau, own.key, normal=label == 0))
                success = bool(decision.certified and decision.separated)
                state = replace(state, at=(low, high), settled=(settled[0], settled[1]), success=success)
            if self._is_over(state):
                taken = [int(np.searchsorted(one, place, side="right")) for one in places]
                scores = [scores[side][: before[side] + taken[side]] for side in (0, 1)]
                break
        return replace(state, scores=(scores[0], scores[1]))

    def _progress(self, label: int) -> str:
        labels, at, promise = amount(self.labels[label], "label"), self._state.at[label], self._sides[label]
        if promise is None:
            return f"{labels}, nothing promised"
        budget = self._strategy.budget(promise, at).errors
        allowed = "too few for any error" if budget is None else f"error budget {budget:,}"
        looked = f"looked at {at:,}: {allowed}" if at else "no look yet"
        following = next((n for n in self.looks if n > at), None)
        if self.done or following is None or self._state.settled[label]:
            return f"{labels}, {looked}"
        return f"{labels}, {looked}; next look at {following:,}"


@dataclass(frozen=True, slots=True)
class Stopping:
    """The distribution of the first look within budget of one class, at a true error rate."""

    looks: range
    chances: Rungs

    @property
    def success(self) -> float:
        """The chance that some look is within its budget; never quite 1, as every label may be an error."""
        return min(nextafter(1.0, 0.0), float(self.chances.sum()))

    @property
    def expected(self) -> float:
        """The average number of labels used, runs without success included."""
        return float(self.chances @ np.array(self.looks)) + (1.0 - self.success) * self.looks[-1]

    def quantile(self, share: float) -> int | None:
        """Return the labels after which this share of all runs has succeeded; None if it never does."""
        place = int(np.searchsorted(self.chances.cumsum(), share))
        return self.looks[place] if place < len(self.looks) else None


def stopping(promise: Promise, looks: Looks, rate: float) -> Stopping:
    """Return when a class succeeds at a threshold with this true error rate: eq. (40)."""
    budgets = look_budgets(promise.at_calibration, looks.local(promise), looks.looks)
    return Stopping(looks.looks, first_success(check_rate("true_rate", rate), looks.looks, budgets))
