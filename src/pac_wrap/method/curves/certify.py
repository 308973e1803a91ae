"""Labelled scores in, certified curve out: from memory, from chunks, and from passes over anything."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_array, as_labelled, as_scores, label_text, type_of
from pac_wrap.base.floats import ScoreType, shared_together
from pac_wrap.errors import InputError
from pac_wrap.method.certify import certify
from pac_wrap.method.curves.band import band_of, check_delta, check_top
from pac_wrap.method.curves.curve import Curve, CurveSide
from pac_wrap.method.groups.values import Group, GroupColumn, groups_beside
from pac_wrap.method.source import ChunkSource
from pac_wrap.ranks.auc import rough_auc, warn_if_upside_down
from pac_wrap.ranks.kernels import together
from pac_wrap.ranks.memory import Rank, Ranked, RankedInMemory


@dataclass(frozen=True, slots=True)
class CurveRequest:
    """The deltas and the largest bounds that a curve is asked for; every entrance for requests takes it."""

    delta_fpr: float = 0.05
    delta_fnr: float = 0.05
    anomaly_label: object = 1
    top_fpr: float | None = None
    top_fnr: float | None = None

    def __post_init__(self) -> None:
        for name in ("delta_fpr", "delta_fnr"):
            object.__setattr__(self, name, check_delta(name, getattr(self, name)))
        for name in ("top_fpr", "top_fnr"):
            object.__setattr__(self, name, check_top(name, getattr(self, name)))

    @classmethod
    def of_curve(cls, curve: Curve, anomaly_label: object = 1) -> "CurveRequest":
        """Return the request that a curve answers."""
        low, high = curve.normal, curve.anomalous
        return cls(low.delta, high.delta, anomaly_label, low.top, high.top)

    @property
    def label_text(self) -> str | None:
        """The label that marks an anomaly as a file has it; None stands for 0 and 1, or false and true."""
        return label_text(self.anomaly_label)

    def ranks(self, sizes: tuple[int, int]) -> Iterator[Rank]:
        """Yield the ranks that both bands are anchored at."""
        normal = band_of(sizes[0], self.delta_fpr, self.top_fpr).ranks.tolist()
        anomalous = band_of(sizes[1], self.delta_fnr, self.top_fnr).ranks.tolist()
        yield from (Rank(0, sizes[0] - rank) for rank in normal)
        yield from (Rank(1, rank + 1) for rank in anomalous)

    def certify(self, *ranked: Ranked, score_type: ScoreType) -> Curve:
        """Return the curve of two classes, wherever their scores live."""
        normal, anomalous = ranked
        if normal.size == anomalous.size == 0:
            raise InputError("normal and anomalous are both empty; pass at least one labelled score")
        low = CurveSide.of(0, normal, self.delta_fpr, self.top_fpr)
        return Curve(low, CurveSide.of(1, anomalous, self.delta_fnr, self.top_fnr), score_type)


def certify_curve(
    normal: ArrayLike,
    anomalous: ArrayLike,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return bounds of both error rates that hold at every threshold at once: eq. (36).

    Parameters
    ----------
    normal, anomalous : array-like of float
        The scores of each class, higher for what is more anomalous. One class may be empty.
    delta_fpr, delta_fnr : float
        The chance, over draws of the calibration points, that some bound of the rate does not hold.
    top_fpr, top_fnr : float, optional
        The largest bound that matters: nothing is said of a rate where its bound would be larger, and the
        smaller ones are lower for that. Fix it before looking at the scores.

    Returns
    -------
    Curve
        The bounds, and the certificates of any threshold.

    Raises
    ------
    InputError
        If scores are not one-dimensional numbers, contain NaN, or there is none at all.

    Warns
    -----
    UpsideDownWarning
        If anomalies score significantly lower than normal points.

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
    return certify_curve_scores(request, normal, anomalous)


def certify_curve_scores(request: CurveRequest, normal: ArrayLike, anomalous: ArrayLike) -> Curve:
    """Return the curve of two classes whose scores are in memory."""
    given = as_array(normal, "normal"), as_array(anomalous, "anomalous")
    low, high = as_scores(given[0], "normal"), as_scores(given[1], "anomalous")
    if low.size and high.size:
        warn_if_upside_down(rough_auc(low, high), low.size, high.size)
    classes = [partial(RankedInMemory, one, "scores", None) for one in (low, high)]
    normal_scores, anomalous_scores = together(classes, min(low.size, high.size))
    return request.certify(normal_scores, anomalous_scores, score_type=type_of(*given))


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
    """Return the curve for one array of scores and one of labels, or one for each group.

    Parameters
    ----------
    scores, labels : array-like
        One score and one label per point, 0 (normal) or 1 (anomalous).
    delta_fpr, delta_fnr : float
        The chance that some bound of the rate does not hold: in a group, or in any of them.
    anomaly_label : object
        The label that marks an anomaly.
    by : array-like, optional
        The group of each point; see `calibrate_labelled`.
    together : bool
        With `by`: whether the curves of all groups are to hold at once, with these deltas: eq. (53).
    top_fpr, top_fnr : float, optional
        The largest bound that matters; see `certify_curve`.

    Returns
    -------
    Curve or dict
        That of `certify_curve` for the two classes; with `by` the curve of each group by its value.

    Raises
    ------
    InputError
        If the columns do not fit together, or one is none of its kind.

    Examples
    --------
    >>> groups = ["a"] * 200 + ["b"] * 200
    >>> curves = certify_curve_labelled(range(400), [0, 1] * 200, by=groups, together=True)
    >>> round(curves["a"].normal.delta, 6)
    0.025321
    """
    asked = CurveRequest(delta_fpr, delta_fnr, top_fpr=top_fpr, top_fnr=top_fnr)
    given, values, mask = as_labelled(scores, labels, anomaly_label)
    wide = given if given.dtype.kind == "f" else values
    if by is None:
        if together:
            raise InputError("together is for groups; give by too, or leave it out")
        return certify_curve_scores(asked, wide[~mask], wide[mask])
    found = groups_beside(scores, values.size, by)
    if together:
        each = [shared_together(delta, len(found.values)) for delta in (asked.delta_fpr, asked.delta_fnr)]
        asked = replace(asked, delta_fpr=each[0], delta_fnr=each[1])
    order = np.argsort(found.codes, kind="stable")
    ends = np.cumsum(np.bincount(found.codes, minlength=len(found.values)))
    return {
        group: certify_curve_scores(asked, wide[rows[~mask[rows]]], wide[rows[mask[rows]]])
        for group, rows in zip(found.values, np.split(order, ends[:-1]), strict=True)
    }


def certify_curve_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ArrayLike]]],
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return the curve that `certify_curve` gives for all chunks put together, byte for byte.

    Parameters
    ----------
    chunks : callable
        Starts a fresh iteration over pairs of scores and labels, the same pairs each time.
    delta_fpr, delta_fnr : float
        The chance that some bound of the rate does not hold.
    anomaly_label : object
        The label that marks an anomaly.
    top_fpr, top_fnr : float, optional
        The largest bound that matters; see `certify_curve`.

    Returns
    -------
    Curve
        That of all scores together.

    Raises
    ------
    InputError
        If a chunk is no pair of scores and labels, or the chunks change between two passes.

    Examples
    --------
    >>> parts = [([0.1, 0.9], [0, 1]), ([], []), ([0.2], [0])]
    >>> certify_curve_chunks(lambda: parts) == certify_curve([0.1, 0.2], [0.9])
    True
    """
    request = CurveRequest(delta_fpr, delta_fnr, anomaly_label, top_fpr, top_fnr)
    return certify(ChunkSource(chunks, anomaly_label), request)
