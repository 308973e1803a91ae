"""The rule for verdicts, counts of verdicts, and the two thresholds by rank, one from each class."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from enum import IntEnum, StrEnum
from functools import partial
from itertools import pairwise
from math import inf, isnan, nextafter
from sys import float_info
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments, floats
from pac_wrap.base.arguments import OnMissing, Places, Scores
from pac_wrap.base.text import amount, quoted
from pac_wrap.errors import InputError
from pac_wrap.ranks.kernels import Codes, kernels, together, usable_cores
from pac_wrap.ranks.memory import Ranked, kth_largest, kth_smallest
from pac_wrap.tails.bounds import Budget

LARGEST: Final = float_info.max
# up to this many scores, one binary search is faster
_FEW: Final = 512
# scores per thread from which threads pay: starting one takes as long as deciding some hundred thousand
_MANY: Final = 1 << 22
_DOUBLE: Final = np.dtype(np.float64)
_SINGLE: Final = np.dtype(np.float32)
_NOWHERE: Final[Places] = np.empty(0, dtype=np.intp)
# the texts of prediction sets; the place is 1 if label 0 is possible, plus 2 if label 1 is
SETS: Final = ("{}", "{0}", "{1}", "{0,1}")


class Verdict(IntEnum):
    """The verdict on a point: normal, anomaly or abstain.

    Examples
    --------
    >>> from pac_wrap import Rule, Verdict
    >>> [Verdict(code).name for code in Rule(1.0, 2.0).verdicts([0.5, 1.5, 2.5])]
    ['NORMAL', 'ABSTAIN', 'ANOMALY']
    """

    NORMAL = 0
    ANOMALY = 1
    ABSTAIN = -1


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of points: alarms, declared normal, all, without a score, and in groups never seen."""

    alarms: int = 0
    clears: int = 0
    points: int = 0
    missing: int = 0
    unseen: int = 0

    @classmethod
    def of(cls, verdicts: NDArray[np.int8], missing: int, unseen: int = 0) -> "Counted":
        """Return the counts of verdicts, given how many points lack a score or have an unseen group."""
        alarms, clears = (int(np.count_nonzero(verdicts == one)) for one in (Verdict.ANOMALY, Verdict.NORMAL))
        return cls(alarms, clears, verdicts.size, missing, unseen)

    def __add__(self, other: "Counted") -> "Counted":
        return Counted(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        rows, alarms = amount(self.points, "row"), amount(self.alarms, "alarm")
        reasons = [f"{self.missing:,} without a score"] * (self.missing > 0)
        reasons += [f"{self.unseen:,} in groups never seen"] * (self.unseen > 0)
        without = f" ({', '.join(reasons)})" if reasons else ""
        undecided = self.points - self.alarms - self.clears
        return f"{rows}: {self.clears:,} normal, {alarms}, {undecided:,} undecided{without}"


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for verdicts: normal below one score, anomaly from another score on, abstain in between.

    Parameters
    ----------
    normal_below : float
        Lower scores are declared normal; with -inf, none is.
    anomaly_from : float
        This score and all higher ones are declared anomalies; with inf, none is, not even a score of inf.
        It is at least `normal_below`. If both are equal, this is a single threshold without abstention.

    Raises
    ------
    InputError
        If `normal_below` exceeds `anomaly_from`, or one of them is not a number.

    Examples
    --------
    >>> Rule(normal_below=0.3, anomaly_from=0.7).verdicts([0.1, 0.5, 0.9])
    array([ 0, -1,  1], dtype=int8)
    """

    normal_below: float
    anomaly_from: float
    # made on demand, since a certificate is often only saved
    _steps: "Steps | None" = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("normal_below", "anomaly_from"):
            value = getattr(self, name)
            if isnan(number := arguments.as_float(value)):
                raise InputError(f"{name} must be a number, inf or -inf, got {quoted(value)}")
            object.__setattr__(self, name, number)
        low, high = self.normal_below, self.anomaly_from
        # two numbers may both be taken for zero
        if low > high or (low == high == 0.0 and floats.order_key(low) > floats.order_key(high)):
            raise InputError(
                f"normal_below must not exceed anomaly_from, got {low!r} and {high!r}; exchange them"
            )

    @property
    def single(self) -> bool:
        """Whether this is a single threshold, so that no verdict is abstain."""
        low, high = self.normal_below, self.anomaly_from
        return low == high and (low != 0.0 or floats.order_key(low) == floats.order_key(high))

    @property
    def ambiguity_region(self) -> tuple[float, float] | None:
        """The half-open range [from, to) of scores that the rule abstains on, or None."""
        return None if self.single else (self.normal_below, self.anomaly_from)

    def before_rounding(self, kind: floats.ScoreType) -> "Rule":
        """Return the rule that decides an unrounded score as this one decides the rounded score: eq. (26).

        Parameters
        ----------
        kind : "float64", "float32" or "float16"
            The type to which scores are rounded; the rule is correct for rounded scores, too.
        """
        if kind == "float64":
            return self
        # inf stays: it means never, also for scores that round to inf
        alarm = inf if self.anomaly_from == inf else floats.rounding_edge(self.anomaly_from, kind)
        return Rule(alarm if self.single else floats.rounding_edge(self.normal_below, kind), alarm)

    def verdicts(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.int8]:
        """Return the verdict on each score; the parameters are those of `Certificate.verdicts`."""
        if on_missing != "abstain":
            arguments.check_choice("on_missing", on_missing, arguments.ON_MISSING)
        steps = self._steps
        if steps is None or (steps.delicate and steps.outdated()):
            steps = self._make_steps()
        if type(scores) is np.ndarray and scores.size <= _FEW and scores.dtype is _DOUBLE:
            try:
                if scores.ndim == 1:
                    return steps.codes.take(steps.ends.searchsorted(scores))
            except IndexError:  # a NaN, which has no code and is looked for below
                pass
        codes, missing = steps.codes_of(scores)
        arguments.abstained_or_stopped(missing, codes.size, on_missing)
        return codes

    def decided(self, scores: ArrayLike) -> tuple[NDArray[np.int8], Places]:
        """Return the verdict on each score, and the positions of missing scores, without a warning.

        The parameters are those of `verdicts`.
        """
        steps = self._steps
        if steps is None or steps.outdated():
            steps = self._make_steps()
        return steps.codes_of(scores)

    def ambiguity(self, scores: ArrayLike) -> float:
        """Return the share of scores that the rule abstains on, missing scores among them: eq. (14).

        The parameters are those of `verdicts`.
        """
        verdicts = self.verdicts(scores)
        if verdicts.size == 0:
            raise InputError("scores are empty, so they have no ambiguity; pass at least one score")
        return float(np.count_nonzero(verdicts == Verdict.ABSTAIN) / verdicts.size)

    def _make_steps(self) -> "Steps":
        """Return the verdicts as a step function, which changes only at the thresholds."""
        low, high, single = self.normal_below, self.anomaly_from, self.single
        cuts = [] if low == -inf or (single and high == inf) else [(low, Verdict.NORMAL)]
        if not single and high < inf:
            cuts.append((high, Verdict.ABSTAIN))
        last = Verdict.ANOMALY if high < inf else Verdict.NORMAL if single else Verdict.ABSTAIN
        steps = Steps([edge for edge, _ in cuts], [*(code for _, code in cuts), last])
        object.__setattr__(self, "_steps", steps)
        return steps


class Steps:
    """A step function of scores: `codes[i]` for a score that reaches exactly the first `i` edges (>=)."""

    def __init__(self, edges: Sequence[float], codes: Sequence[int]) -> None:
        bounds = [floats.just_below(edge) for edge in edges] or [-inf]
        self._bounds, self._bounds_32 = (
            (floats.largest_up_to(bounds[0], kind), floats.largest_up_to(bounds[-1], kind))
            for kind in (_DOUBLE, _SINGLE)
        )
        self._choice = codes[0], codes[1] if len(codes) == 3 else codes[-1], codes[-1]
        # for few scores a binary search is faster; only NaN lies beyond the last end
        self.ends = np.array([*bounds[: len(edges)], inf])
        self.codes = np.array(codes, dtype=np.int8)
        self.delicate = any(map(floats.is_delicate, edges))
        self._flushing = floats.flushes()

    def outdated(self) -> bool:
        """Return whether an edge is next to zero, and the processor began or ceased to flush subnormals."""
        return self.delicate and floats.flushes() != self._flushing

    def codes_of(self, scores: ArrayLike) -> tuple[Codes, Places]:
        """Return the code of each score, and the places of missing scores; non-numbers raise an error."""
        # subclasses of arrays, such as memory maps, are viewed as arrays, without a copy
        array = scores if type(scores) is np.ndarray else arguments.as_array(scores, "scores")
        kind = array.dtype
        if array.ndim == 1 and (kind.kind in "iu" or kind in (np.float64, np.float32, np.float16)):
            return self._many(array)
        return self._many(arguments.as_scores(array, missing=True))

    def _many(self, scores: NDArray[Any]) -> tuple[Codes, Places]:
        codes = np.empty(scores.size, dtype=np.int8)
        if self._filled(scores, codes):
            return codes, _NOWHERE
        # work on a copy that nobody can change meanwhile, so that every NaN is found
        own = scores.copy()
        self._filled(own, codes)
        missing = arguments.missing_places(own)
        codes[missing] = Verdict.ABSTAIN
        return codes, missing

    def _filled(self, scores: NDArray[Any], codes: Codes) -> bool:
        """Write the codes, with every core if that pays, and return whether no score was NaN."""
        if scores.size < 2 * _MANY:
            return self._fill(scores, codes)
        threads = min(usable_cores(), scores.size // _MANY)
        cuts = [scores.size * number // threads for number in range(threads + 1)]
        parts = [partial(self._fill, scores[start:end], codes[start:end]) for start, end in pairwise(cuts)]
        return all(together(parts))

    def _fill(self, scores: NDArray[Any], codes: Codes) -> bool:
        low, high = self._bounds_32 if scores.dtype == _SINGLE else self._bounds
        return kernels().codes(scores, low, high, self._choice, codes)


class Regime(StrEnum):
    """The regime of the two thresholds; `explanation` is the sentence that a user reads.

    Examples
    --------
    >>> from pac_wrap import Regime, calibrate
    >>> calibrate(range(100), range(100, 200)).regime is Regime.SEPARATED
    True
    >>> Regime.SEPARATED.explanation
    'one threshold can keep what is promised'
    """

    SEPARATED = "separated"
    OVERLAPPING = "overlapping"
    VACUOUS = "vacuous"

    @property
    def explanation(self) -> str:
        """The regime in one sentence."""
        return {
            Regime.SEPARATED: "one threshold can keep what is promised",
            Regime.OVERLAPPING: "the classes overlap too much for one threshold to keep the promise with"
            " these labels",
            Regime.VACUOUS: "there are too few labels for a requested ceiling, so it is not promised",
        }[self]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The threshold of each class, from its own calibration points: eqs. (7) to (11)."""

    alarm_from: float | None
    clear_below: float | None

    @property
    def separated(self) -> bool:
        """Whether one threshold can serve both classes: clear_below >= alarm_from, eq. (13)."""
        if self.alarm_from is None or self.clear_below is None:
            return True
        alarm, clear = self.alarm_from, self.clear_below
        if alarm == clear == 0.0:  # two numbers may both be taken for zero
            return floats.order_key(clear) >= floats.order_key(alarm)
        return alarm < inf and clear >= alarm

    @property
    def rule(self) -> Rule:
        """The rule that abstains between the two thresholds, and decides elsewhere: eq. (11).

        If a score of inf must reach a threshold at inf, the threshold is the largest double instead, since
        `anomaly_from = inf` is never reached.
        """
        alarm, clear = self.alarm_from, self.clear_below
        if alarm is None or clear is None:
            only = alarm if alarm is not None else min(clear, LARGEST) if clear is not None else inf
            return Rule(only, only)
        return Rule(alarm, min(clear, LARGEST)) if self.separated else Rule(min(clear, LARGEST), alarm)

    def _alarms(self, scores: Scores) -> NDArray[np.bool_]:
        if self.alarm_from is None or self.alarm_from == inf:
            return np.zeros(scores.size, dtype=bool)
        return floats.reaches(scores, self.alarm_from)

    def y_fp(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 1 for scores that rule out label 0, else 0: the predictor that keeps the FPR, eq. (8)."""
        if self.alarm_from is None:
            raise InputError("nothing is promised about the FPR, so y_fp has no threshold; set max_fpr")
        return self._alarms(arguments.as_scores(scores)).view(np.int8)

    def y_fn(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return 0 for scores that rule out label 1, else 1: the predictor that keeps the FNR, eq. (10)."""
        if self.clear_below is None:
            raise InputError("nothing is promised about the FNR, so y_fn has no threshold; set max_fnr")
        return floats.reaches(arguments.as_scores(scores), self.clear_below).view(np.int8)

    def prediction_sets(self, scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.bool_]:
        """Return for each score whether label 0 and label 1 are possible, in two columns: eq. (11)."""
        arguments.check_choice("on_missing", on_missing, arguments.ON_MISSING)
        values = arguments.as_scores(scores, missing=True)
        missing = arguments.missing_places(values)
        arguments.abstained_or_stopped(missing, values.size, on_missing)
        return self.possible(values, missing)

    def possible(self, scores: Scores, missing: Places) -> NDArray[np.bool_]:
        """Return the prediction sets of scores, given the places of missing scores."""
        sets = np.ones((scores.size, 2), dtype=bool)
        if self.alarm_from is not None:
            np.logical_not(self._alarms(scores), out=sets[:, 0])
        if self.clear_below is not None:
            sets[:, 1] = floats.reaches(scores, self.clear_below)
        sets[missing] = True
        return sets


def alarm_from(normal: Scores | Ranked, budget: int | None) -> float:
    """Return the smallest threshold that at most `budget` normal scores reach: eq. (7)."""
    return inf if budget is None else nextafter(kth_largest(normal, budget + 1), inf)


def clear_below(anomalous: Scores | Ranked, budget: int | None) -> float:
    """Return the largest threshold that at most `budget` anomalous scores lie below: eq. (9)."""
    return -inf if budget is None else kth_smallest(anomalous, budget + 1)


def find_thresholds(
    normal: Scores | Ranked, anomalous: Scores | Ranked, fpr: Budget | None, fnr: Budget | None
) -> Thresholds:
    """Return both thresholds, None for a class without a budget."""
    alarm = None if fpr is None else alarm_from(normal, fpr.errors)
    return Thresholds(alarm, None if fnr is None else clear_below(anomalous, fnr.errors))
