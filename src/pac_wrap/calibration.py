"""Labelled scores in, certificate out; and the check that a certificate belongs to given scores."""

import inspect
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import isclose
from typing import Any, Final, Literal, TypedDict, Unpack

from numpy.typing import ArrayLike

from pac_wrap.certificate import Certificate, Evidence
from pac_wrap.codec import flat
from pac_wrap.cores import together
from pac_wrap.errors import InputError, UpsideDownWarning
from pac_wrap.foreign import quoted
from pac_wrap.guarantee import Budget, Guarantee, as_guarantee
from pac_wrap.inputs import as_anomaly_mask, as_array, as_scores, check_aligned, check_choice
from pac_wrap.kernels import Floats, kernels
from pac_wrap.order import Held, Ranked, is_upside_down, rough_auc, unchecked
from pac_wrap.precision import ScoreType, is_narrower, rounded, type_of
from pac_wrap.relaxation import Outcome, Strategy, StrategyName, single_threshold
from pac_wrap.thresholds import crossings, find_regime, find_thresholds

# from so many scores of each class on, a thread for each pays
_MANY: Final = 1 << 20
_VERIFIED: Final = """\
verified: these scores and labels, in any order, give this certificate
not shown: that the detector gave these scores, that the labels are right,
           that nobody chose the rows; a digest finds accidents, not forgers"""


class StrategyOptions(TypedDict, total=False):
    """The options of `Strategy`, as keyword arguments."""

    step: float
    growth: Literal["linear", "double"]
    ceilings: Literal["both", "fpr", "fnr"]
    relax_delta: bool
    correction: Literal["share"] | None
    position: float


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a calibration, checked apart from any score; `strategy` is None with abstention."""

    guarantee: Guarantee
    strategy: Strategy | None

    @classmethod
    def of(
        cls,
        guarantee: Guarantee | None,
        abstain: bool,
        strategy: StrategyName | Strategy,
        options: StrategyOptions,
    ) -> "Request":
        """Return the request that the arguments of `calibrate` make."""
        guarantee = as_guarantee(guarantee)
        check_choice("abstain", abstain, (True, False))
        chosen = _strategy(strategy, options)
        if abstain and chosen != Strategy():
            raise InputError(
                "a strategy reaches one threshold, which leaves nothing undecided; add abstain=False"
                " (--no-abstain in the shell)"
            )
        single = not abstain and None not in (guarantee.max_fpr, guarantee.max_fnr)
        return cls(guarantee, chosen if single else None)

    def budgets(self, n_normal: int, n_anomalous: int) -> tuple[Budget | None, Budget | None]:
        """Return the budgets of the promise itself; a side without a ceiling has none."""
        if n_normal == n_anomalous == 0:
            raise InputError("normal and anomalous are both empty; pass at least one labelled score")
        asked = self.guarantee
        return (
            None if asked.max_fpr is None else Budget.fpr(n_normal, asked),
            None if asked.max_fnr is None else Budget.fnr(n_anomalous, asked),
        )


def calibrate(
    normal: ArrayLike,
    anomalous: ArrayLike,
    guarantee: Guarantee | None = None,
    *,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate for the scores of labelled normal and labelled anomalous points.

    Where abstaining is not allowed (`abstain=False`), `strategy` says how one threshold is reached; the
    options are those of `Strategy`. Too few labels never raise: the certificate is vacuous and says so.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> normal, anomalous = rng.normal(0, 1, 2000), rng.normal(4, 1, 2000)
    >>> certificate = calibrate(normal, anomalous, Guarantee(max_fpr=0.05, max_fnr=0.05))
    >>> certificate.regime.value, certificate.normal.budget.errors
    ('separated', 83)
    >>> certificate.verdicts([-1.0, 2.0, 5.0])
    array([ 0, -1,  1], dtype=int8)
    """
    given = as_array(normal, "normal"), as_array(anomalous, "anomalous")
    low, high = unchecked(given[0], "normal"), unchecked(given[1], "anomalous")
    request = Request.of(guarantee, abstain, strategy, options)
    return _calibrate(request, low, high, type_of(*given))


def _calibrate(request: Request, low: Floats, high: Floats, score_type: ScoreType) -> Certificate:
    fpr, fnr = request.budgets(low.size, high.size)
    k_low, k_high = low.size - ((fpr and fpr.errors) or 0), 1 + ((fnr and fnr.errors) or 0)
    sides = partial(Held, low, "normal", k_low), partial(Held, high, "anomalous", k_high)
    held = together(sides) if min(low.size, high.size) > _MANY else [side() for side in sides]
    if low.size and high.size:
        warn_if_upside_down(rough_auc(low, high), low.size, high.size)
    return certify(request, (fpr, fnr), held[0], held[1], score_type)


def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | None = None,
    *,
    anomaly_label: object = 1,
    abstain: bool = True,
    strategy: StrategyName | Strategy = "relax",
    **options: Unpack[StrategyOptions],
) -> Certificate:
    """Return the certificate for one array of scores and one of labels, 0 (normal) and 1 (anomalous).

    >>> calibrate_labelled([0.1, 0.2, 0.9], [0, 0, 1]).regime.value
    'vacuous'
    """
    check_aligned("scores", scores, "labels", labels)
    given = as_array(scores, "scores")
    values, mask = as_scores(given), as_anomaly_mask(labels, anomaly_label)
    if values.size != mask.size:
        raise InputError(
            f"scores and labels must have the same length, got {values.size:,} and {mask.size:,}"
        )
    request = Request.of(guarantee, abstain, strategy, options)
    return _calibrate(request, *kernels().divide(values, mask), type_of(given))


def certify(
    request: Request,
    budgets: tuple[Budget | None, Budget | None],
    normal: Ranked,
    anomalous: Ranked,
    score_type: ScoreType,
) -> Certificate:
    """Return the certificate that a request gets from two classes, wherever their scores live."""
    guarantee, strategy = request.guarantee, request.strategy
    if strategy is None:
        fpr, fnr = budgets
        outcome = Outcome(fpr, fnr, find_thresholds(normal, anomalous, fpr, fnr), guarantee, None)
    else:
        outcome = single_threshold(normal, anomalous, guarantee, strategy)
    high, low = crossings(normal, anomalous, outcome.thresholds)
    return Certificate(
        guarantee=guarantee,
        certified=outcome.certified,
        thresholds=outcome.thresholds,
        regime=find_regime(outcome.thresholds, outcome.fpr, outcome.fnr),
        normal=Evidence(normal.size, normal.digest, outcome.fpr, high),
        anomalous=Evidence(anomalous.size, anomalous.digest, outcome.fnr, low),
        strategy=strategy,
        tau=outcome.tau,
        levels=outcome.levels,
        level=outcome.level,
        score_type=score_type,
    )


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate is what its scores give; true exactly if there is no difference."""

    differences: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        return _VERIFIED if self else "not verified: " + "\n              ".join(self.differences)


def verify(certificate: Certificate, normal: ArrayLike, anomalous: ArrayLike) -> Verification:
    """Recompute a certificate from the scores it was made of, and say where the two differ.

    This shows that the scores, in any order, give the certificate. It does not show that the detector gave
    these scores, that the labels are right, or that nobody chose the rows.

    Scores of a wider type than the certificate's are rounded to it first: a float32 that was written as 0.3
    comes back as a double.

    >>> certificate = calibrate([0.1, 0.2], [0.8, 0.9])
    >>> bool(verify(certificate, [0.2, 0.1], [0.8, 0.9]))
    True
    >>> print(verify(certificate, [0.1, 0.3], [0.8, 0.9]))
    not verified: normal.digest is '4bf0b9951e6a64ba' in the certificate, '6564847ef7e48ce1' from the scores
    """
    if not isinstance(certificate, Certificate):
        raise InputError(
            f"certificate must be a Certificate, got {quoted(certificate)}; load a file with Certificate.load"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        again = calibrate(
            _as_made(certificate, normal, "normal"),
            _as_made(certificate, anomalous, "anomalous"),
            certificate.guarantee,
            **options_of(certificate),
        )
    return verify_against(certificate, replace(again, score_type=certificate.score_type))


def options_of(certificate: Certificate) -> dict[str, Any]:
    """Return the keyword arguments of `calibrate` that a certificate was made with."""
    if certificate.strategy is None:
        return {}
    options = asdict(certificate.strategy)
    return options | {"strategy": options.pop("name"), "abstain": False}


def verify_against(certificate: Certificate, again: Certificate) -> Verification:
    """Compare a certificate with one that was made anew."""
    return Verification(tuple(_differences(certificate, again)))


def _as_made(certificate: Certificate, scores: ArrayLike, name: str) -> ArrayLike:
    """Return scores as the certificate saw them, unless they have lost digits since."""
    given, kind = as_array(scores, name), certificate.score_type
    return rounded(as_scores(given, name), kind) if is_narrower(kind, type_of(given)) else given


def _strategy(strategy: StrategyName | Strategy, options: StrategyOptions) -> Strategy:
    for name in options:
        if name not in StrategyOptions.__annotations__:
            known = ", ".join(StrategyOptions.__annotations__)
            raise InputError(
                f"{name} is not an option of a strategy, which has {known};"
                " ceilings and deltas go into Guarantee"
            )
    if isinstance(strategy, Strategy):
        return replace(strategy, **options)
    return Strategy(strategy, **options)


def warn_if_upside_down(area: float, *sizes: int) -> None:
    """Warn the user, who is outside this package, if the AUC is significantly below one half."""
    if is_upside_down(area, *sizes):
        warnings.warn(
            f"anomalies score lower than normal points (AUC {area:.3f}); if the scores are upside down,"
            ' negate them or pass polarity="lower"',
            UpsideDownWarning,
            stacklevel=_frames_inside() + 1,
        )


def _frames_inside() -> int:
    """Return how many calls deep this package is in, counted from the caller."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("pac_wrap."):
        frame, depth = frame.f_back, depth + 1
    return depth - 1


def _differences(found: Certificate, expected: Certificate) -> Iterator[str]:
    ours, theirs = flat(expected), flat(found)
    for name in theirs | ours:
        value, other = theirs.get(name, "absent"), ours.get(name, "absent")
        if value == other or name.split(".")[0] in ("assumptions", "sampling", "version"):
            continue
        # rates and confidences come from SciPy and may differ in the last digit; thresholds may not
        rounded = isinstance(value, float) and isinstance(other, float) and isclose(value, other)
        if not rounded or name == "tau" or name.startswith("thresholds."):
            yield f"{name} is {value!r} in the certificate, {other!r} from the scores"
