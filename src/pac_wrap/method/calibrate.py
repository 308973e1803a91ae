"""Labelled scores in, certificate out."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, overload

from numpy.typing import ArrayLike

from pac_wrap.base.arguments import (
    ScoreType,
    as_anomaly_mask,
    as_array,
    as_scores,
    check_aligned,
    label_text,
    type_of,
)
from pac_wrap.base.floats import Floats
from pac_wrap.base.missing import frames_inside
from pac_wrap.errors import InputError, VacuousWarning
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.promise import as_guarantee as as_guarantee
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.strategies.words import WORDS as WORDS
from pac_wrap.method.strategies.words import as_strategy as as_strategy
from pac_wrap.method.thresholds import Evidence, crossings, find_regime
from pac_wrap.ranks.auc import rough_auc, warn_if_upside_down
from pac_wrap.ranks.kernels import kernels, together
from pac_wrap.ranks.memory import Ranked, RankedInMemory, unchecked
from pac_wrap.ranks.search import Rank

if TYPE_CHECKING:
    from pac_wrap.method.kinds.certificate import KindCertificate

Kinds = Mapping[str, ArrayLike]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """What a calibration is asked for, checked apart from any score; every entrance takes one.

    Parameters
    ----------
    guarantee : Guarantee
        The promises to keep.
    overlap : Strategy
        What is done where the classes overlap; nothing can with a single ceiling, which decides alone.
    anomaly_label : object
        The label that marks an anomaly.

    Examples
    --------
    >>> request = Request.of(Guarantee(max_fpr=0.01), overlap="hold_fnr")
    >>> request.overlap
    Hold(rate='fnr')
    """

    guarantee: Guarantee = field(default_factory=Guarantee)
    overlap: Overlap = field(default_factory=Abstain)
    anomaly_label: object = 1

    def __post_init__(self) -> None:
        as_guarantee(self.guarantee)
        overlap = as_strategy(self.overlap)
        # with a single ceiling nothing can overlap
        kept = overlap.one_sided or len(self.guarantee.promises) == 2
        object.__setattr__(self, "overlap", overlap if kept else Abstain())

    @property
    def label_text(self) -> str | None:
        """The label that marks an anomaly as a file has it; None stands for 0 and 1, or false and true."""
        return label_text(self.anomaly_label)

    def ranks(self, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield the ranks that may be asked for, as far as the numbers of labels tell."""
        yield from self.overlap.ranks(self.guarantee, sizes)

    def with_usual_labels(self) -> "Request":
        """Return the same for labels 0 and 1."""
        return replace(self, anomaly_label=1)

    def certify(self, normal: Ranked, anomalous: Ranked, score_type: ScoreType) -> Certificate:
        """Return the certificate that two classes get, wherever their scores live.

        Parameters
        ----------
        normal, anomalous : Ranked
            The scores of each class.
        score_type : "float64", "float32" or "float16"
            Their type.

        Returns
        -------
        Certificate
        """
        if normal.size == anomalous.size == 0:
            raise InputError("normal and anomalous are both empty; pass at least one labelled score")
        found = self.overlap.decide(self.guarantee, normal, anomalous)
        # a threshold that was given is read off a curve, which knows some ranks and not the counts
        high, low = (None, None) if self.overlap.given else crossings(normal, anomalous, found.thresholds)
        return Certificate(
            guarantee=self.guarantee,
            overlap=self.overlap,
            certified=found.certified,
            rule=found.rule.before_rounding(score_type),
            thresholds=found.thresholds,
            regime=find_regime(found.thresholds, found.fpr, found.fnr),
            normal=Evidence(normal.size, normal.digest, found.fpr, high),
            anomalous=Evidence(anomalous.size, anomalous.digest, found.fnr, low),
            score_type=score_type,
            separable=found.separable,
        )

    @classmethod
    def of(
        cls,
        asked: "Guarantee | Request | None" = None,
        overlap: str | Overlap | None = None,
        anomaly_label: object = 1,
    ) -> "Request":
        """Return the request that the arguments of an entrance make.

        Parameters
        ----------
        asked : Guarantee, Request or None
            The promises; None is the usual ones. A whole request is taken as it is.
        overlap : str or Strategy, optional
            One of its words, such as "raise", or a strategy with options; see `calibrate`.
        anomaly_label : object
            The label that marks an anomaly.

        Returns
        -------
        Request
            The request.
        """
        if isinstance(asked, Request):
            if overlap is not None or type(anomaly_label) is not int or anomaly_label != 1:
                raise InputError("a Request says all that is asked for; leave overlap and anomaly_label out")
            return asked
        strategy = Abstain() if overlap is None else as_strategy(overlap)
        return cls(as_guarantee(asked), strategy, anomaly_label)


@overload
def calibrate(
    normal: ArrayLike,
    anomalous: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
) -> Certificate: ...
@overload
def calibrate(
    normal: Kinds,
    anomalous: ArrayLike | Kinds,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
) -> "KindCertificate": ...
@overload
def calibrate(
    normal: ArrayLike,
    anomalous: Kinds,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
) -> "KindCertificate": ...
def calibrate(
    normal: ArrayLike | Kinds,
    anomalous: ArrayLike | Kinds,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
) -> "Certificate | KindCertificate":
    """Return the certificate for the scores of labelled normal and labelled anomalous points.

    Too few labels never raise: the certificate is vacuous and says so.

    Parameters
    ----------
    normal, anomalous : array-like of float, or mapping of kinds to such
        The scores of each class, higher for what is more anomalous; infinities are scores too. By kind, as in
        `{"card stolen": scores, "account takeover": scores}`, the ceilings hold for every kind.
    guarantee : Guarantee or Request, optional
        What to promise; by default both rates at most 0.05, each with delta 0.05. A plain number is the
        ceiling of every kind, and each kind has its own delta.
    overlap : str or Strategy, optional
        What is done where the classes overlap: "abstain" (the default), "abstain_always", "raise",
        "hold_fnr", "hold_fpr", "algorithm1", or a strategy with options. Kinds take the abstaining and
        holding ones.

    Returns
    -------
    Certificate or KindCertificate
        The rule, what it promises, and what that rests on; the latter for scores by kind.

    Raises
    ------
    InputError
        If scores are not one-dimensional numbers, contain NaN, or there is none at all.

    Warns
    -----
    UpsideDownWarning
        If anomalies score significantly lower than normal points.
    VacuousWarning
        If something that was asked for is not promised.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> normal, anomalous = rng.normal(0, 1, 2000), rng.normal(4, 1, 2000)
    >>> certificate = calibrate(normal, anomalous, Guarantee(max_fpr=0.05, max_fnr=0.05))
    >>> certificate.regime.value, certificate.normal.budget.errors
    ('separated', 83)
    >>> certificate.verdicts([-1.0, 1.9, 5.0])
    array([0, 0, 1], dtype=int8)
    """
    if isinstance(normal, Mapping) or isinstance(anomalous, Mapping):
        from pac_wrap.method.kinds.calibrate import calibrate_kinds

        return calibrate_kinds(normal, anomalous, guarantee, overlap)
    given = as_array(normal, "normal"), as_array(anomalous, "anomalous")
    low, high = unchecked(given[0], "normal"), unchecked(given[1], "anomalous")
    return _calibrate(Request.of(guarantee, overlap), low, high, type_of(*given))


def calibrate_labelled(
    scores: ArrayLike,
    labels: ArrayLike,
    guarantee: Guarantee | Request | None = None,
    *,
    overlap: str | Overlap | None = None,
    anomaly_label: object = 1,
) -> Certificate:
    """Return the certificate for one array of scores and one of labels, 0 (normal) and 1 (anomalous).

    Parameters
    ----------
    scores : array-like of float
        One score per point, higher for what is more anomalous.
    labels : array-like
        One label per point.
    guarantee : Guarantee or Request, optional
        What to promise; by default both rates at most 0.05, each with delta 0.05.
    overlap : str or Strategy, optional
        What is done where the classes overlap; see `calibrate`.
    anomaly_label : object
        The label that marks an anomaly; -1 reads scikit-learn's +1 and -1.

    Returns
    -------
    Certificate
        That of `calibrate` for the two classes.

    Raises
    ------
    InputError
        If scores and labels do not fit together, or either is none of its kind.

    Examples
    --------
    >>> calibrate_labelled([0.1, 0.2, 0.9], [0, 0, 1]).regime.value
    'vacuous'
    """
    check_aligned("scores", scores, "labels", labels)
    request = Request.of(guarantee, overlap, anomaly_label)
    given = as_array(scores, "scores")
    values, mask = as_scores(given), as_anomaly_mask(labels, request.anomaly_label)
    if (n := values.size) != (m := mask.size):
        raise InputError(f"scores and labels must have the same length, got {n:,} and {m:,}")
    return _calibrate(request, *kernels().divide(values, mask), type_of(given))


def _calibrate(request: Request, low: Floats, high: Floats, score_type: ScoreType) -> Certificate:
    # the first ranks that are asked for are bracketed in the pass that is made anyway
    first = islice(request.ranks((low.size, high.size)), 2)
    wanted = {0: low.size, 1: 1} | {rank.label: rank.k for rank in first}
    classes = (
        partial(RankedInMemory, low, "normal", wanted[0]),
        partial(RankedInMemory, high, "anomalous", wanted[1]),
    )
    ranked = together(classes, min(low.size, high.size))
    if low.size and high.size:
        warn_if_upside_down(rough_auc(low, high), low.size, high.size)
    return warned(request.certify(ranked[0], ranked[1], score_type))


def warned(certificate: T) -> T:
    """Return what was certified; if that is less than was asked for, a warning says so, here alone."""
    if isinstance(certificate, Certificate) and certificate.empty:
        warnings.warn(str(certificate.shortfall), VacuousWarning, stacklevel=frames_inside() + 1)
    return certificate
