"""Labelled scores in, certified curve out: from memory, from chunks, and from passes over anything."""

import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import ScoreType, as_array, as_scores, check_rate, type_of
from pac_wrap.base.floats import Floats
from pac_wrap.base.foreign import quoted
from pac_wrap.errors import InputError, UpsideDownWarning
from pac_wrap.method.calibrate import warn_if_upside_down
from pac_wrap.method.curve import Curve
from pac_wrap.method.curve_side import CurveSide, curve_ranks
from pac_wrap.method.verify import Verification, as_made
from pac_wrap.ranks.chunks import ChunkReader
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.memory import Ranked, auc, rough_auc
from pac_wrap.ranks.partitions import Partitions, RunPartitions
from pac_wrap.ranks.passes import Passes, RunPass

Deltas = tuple[float, float]


class _RankedTogether(Ranked):
    """Scores in memory, put in order at many ranks at once."""

    def __init__(self, scores: Floats, ranks: Iterable[int]) -> None:
        self.size, self.digest = scores.size, digest(scores)
        places = np.unique([rank - 1 for rank in ranks]).astype(np.intp)
        self._scores = np.partition(scores, places) if places.size else scores

    def kth_smallest(self, k: int) -> float:
        """Return the k-th smallest score, one of those that were asked for."""
        return float(self._scores[k - 1])

    def count_below(self, threshold: float) -> int:
        """Return how many scores are less than the threshold."""
        raise NotImplementedError("a curve counts nothing")


def certify_curve(
    normal: ArrayLike, anomalous: ArrayLike, delta_fpr: float = 0.05, delta_fnr: float = 0.05
) -> Curve:
    """Return bounds of both error rates that hold at every threshold at once: eq. (46).

    Parameters
    ----------
    normal, anomalous : array-like of float
        The scores of each class, higher for what is more anomalous; infinities are scores too. One class may
        be empty: its rate is then bounded by 1.
    delta_fpr, delta_fnr : float
        The chance, over draws of the calibration points, that some bound of the rate does not hold.

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
    >>> print(certificate.certified)
    FPR <= 0.04979 (confidence 0.95), FNR <= 0.1484 (confidence 0.95)
    """
    deltas = _checked(delta_fpr, delta_fnr)
    given = as_array(normal, "normal"), as_array(anomalous, "anomalous")
    low, high = as_scores(given[0], "normal"), as_scores(given[1], "anomalous")
    if low.size and high.size:
        warn_if_upside_down(rough_auc(low, high), low.size, high.size)
    return _curve(_in_memory(low, high, deltas), deltas, type_of(*given))


def certify_curve_chunks(
    chunks: Callable[[], Iterable[tuple[ArrayLike, ArrayLike]]],
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    anomaly_label: object = 1,
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
    deltas = _checked(delta_fpr, delta_fnr)
    reader = ChunkReader(chunks, anomaly_label)
    passes = Passes(reader)
    curve = _from_passes(passes, deltas)
    if all(passes.survey.sizes):
        warn_if_upside_down(auc(*reader.sample()), *passes.survey.sizes)
    return curve


def curve_parts(run: RunPartitions, delta_fpr: float, delta_fnr: float, anomaly_label: object = 1) -> Curve:
    """Return the curve of data that some engine holds in partitions: `run(task)` is one pass over it."""
    return curve_passes(Partitions(run, anomaly_label), delta_fpr, delta_fnr)


def curve_passes(run: RunPass, delta_fpr: float, delta_fnr: float) -> Curve:
    """Return the curve of data whose classes and NaN somebody else has seen to; see `calibrate_passes`."""
    passes = Passes(run)
    curve = _from_passes(passes, _checked(delta_fpr, delta_fnr))
    if all(passes.survey.sizes):
        warn_if_upside_down(passes.survey.largest_auc, *passes.survey.sizes)
    return curve


def verify_curve(curve: Curve, normal: ArrayLike, anomalous: ArrayLike) -> Verification:
    """Recompute a curve from the scores it was made of, and say where the two differ.

    Parameters
    ----------
    curve : Curve
        What is to be verified.
    normal, anomalous : array-like of float
        The calibration scores of each class, rounded to the curve's type if theirs is wider.

    Returns
    -------
    Verification
        True if nothing differs; printed, it says what does.

    Raises
    ------
    InputError
        If the first argument is no curve, or scores are none.

    Examples
    --------
    >>> curve = certify_curve([0.1, 0.2], [0.8, 0.9])
    >>> bool(verify_curve(curve, [0.2, 0.1], [0.8, 0.9]))
    True
    """
    if not isinstance(curve, Curve):
        raise InputError(f"curve must be a Curve, got {quoted(curve)}; load a file with Curve.load")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UpsideDownWarning)
        again = certify_curve(
            as_made(curve.score_type, normal, "normal"),
            as_made(curve.score_type, anomalous, "anomalous"),
            curve.normal.delta,
            curve.anomalous.delta,
        )
    return verify_curve_against(curve, again)


def verify_curve_against(curve: Curve, again: Curve) -> Verification:
    """Compare a curve with one that was made anew."""
    sides = (("normal", curve.normal, again.normal), ("anomalous", curve.anomalous, again.anomalous))
    return Verification(tuple(text for side in sides for text in _differences(*side)))


def _differences(name: str, found: CurveSide, expected: CurveSide) -> Iterator[str]:
    for field in ("n", "digest", "delta"):
        value, other = getattr(found, field), getattr(expected, field)
        if value != other:
            yield f"{name}.{field} is {value!r} in the curve, {other!r} from the scores"
    if found.n == expected.n and found.scores != expected.scores:
        wrong = sum(a != b for a, b in zip(found.scores, expected.scores, strict=True))
        yield f"{wrong:,} of the {len(found.scores):,} {name} scores in the curve are not at their ranks"


def _checked(delta_fpr: float, delta_fnr: float) -> Deltas:
    return check_rate("delta_fpr", delta_fpr), check_rate("delta_fnr", delta_fnr)


def _in_memory(low: Floats, high: Floats, deltas: Deltas) -> tuple[Ranked, Ranked]:
    ranks: tuple[list[int], list[int]] = ([], [])
    for rank in curve_ranks((low.size, high.size), deltas):
        ranks[rank.label].append(rank.k)
    return _RankedTogether(low, ranks[0]), _RankedTogether(high, ranks[1])


def _from_passes(passes: Passes, deltas: Deltas) -> Curve:
    passes.find(curve_ranks(passes.survey.sizes, deltas))
    return _curve(passes.classes, deltas, passes.score_type)


def _curve(classes: tuple[Ranked, Ranked], deltas: Deltas, score_type: ScoreType) -> Curve:
    if not any(one.size for one in classes):
        raise InputError("normal and anomalous are both empty; pass at least one labelled score")
    sides = [CurveSide.of(label, one, deltas[label]) for label, one in enumerate(classes)]
    return Curve(sides[0], sides[1], score_type)
