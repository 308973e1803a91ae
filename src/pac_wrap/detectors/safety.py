"""Checks of what would void a promise: a changed detector, scores that depend on the batch, reused rows."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, reduce
from hashlib import blake2b
from math import inf
from time import perf_counter
from traceback import walk_stack
from types import FunctionType, MethodType
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from pac_wrap.base.arguments import Scores, is_number, warn
from pac_wrap.base.floats import bits_of, rounded
from pac_wrap.detectors.scores import Indices, detector_name, handed_on, is_estimator, take_rows
from pac_wrap.errors import InputError, OverlapWarning
from pac_wrap.method.promise import Guarantee

_INNER: Final = ("estimator", "best_estimator_", "func", "__self__")
_MOST_OBJECTS: Final = 16  # a function may reach many others, and the check must stay quick


def traces(detector: Any) -> dict[tuple[int, str], int]:
    """Return signs that a detector may have changed, read in microseconds.

    Attributes and globals are compared by identity, in the detector and in the objects that it uses, and a
    torch module's tensors by version. A trace proves nothing: it only tells when to compare scores again.
    """
    found: dict[tuple[int, str], int] = {}
    seen: set[int] = set()
    waiting = [detector]
    while waiting and len(seen) < _MOST_OBJECTS:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        attributes = getattr(one, "__dict__", {})
        found |= {(id(one), name): id(attributes.get(name)) for name in tuple(attributes)}
        if _is_module(one):
            found |= {(id(tensor), ""): tensor._version for tensor in (*one.parameters(), *one.buffers())}
        if isinstance(one, FunctionType):
            names, space = one.__code__.co_names, one.__globals__
            found |= {(id(space), name): id(space.get(name)) for name in names}
            used = [space.get(name) for name in names]
            for cell in one.__closure__ or ():
                with suppress(ValueError):  # the cell is still empty
                    used.append(cell.cell_contents)
            waiting += [value for value in used if _may_score(value)]
        elif isinstance(one, (MethodType, partial)) or hasattr(one, "fit"):
            waiting += [getattr(one, name) for name in _INNER if hasattr(one, name)]
            waiting += [step for _, step in getattr(one, "steps", ())]
    return found


def _may_score(value: Any) -> bool:
    function = isinstance(value, (FunctionType, MethodType, partial))
    return function or (not isinstance(value, type) and (hasattr(value, "fit") or _is_module(value)))


def _is_module(one: Any) -> bool:
    return hasattr(one, "parameters") and hasattr(one, "buffers")


Scorer = Callable[[Any], Scores]
MOST_ROWS: Final = 1000  # scored again at calibration
WITNESSES: Final = 8  # rows kept to be scored again later
SHARE: Final = 0.01  # of the scoring time, spent on scoring the witnesses again
_AGAIN: Final = "call calibrate(X, y) again, with rows that did not train it"
_ALONE: Final = "wrap a function that scores each row by itself, or beside rows that stay the same"
# on ADBench, ties between 2 to 20 neighbours move no more than 4 % of the scores by a quarter of their
# spread; if another batch size moves more than a tenth of them by half of it, ties are not the reason
_FAR: Final = 0.5
_MOST_FAR: Final = 0.1
_RAISE: Final = (
    "raise score_tolerance, a share of the scores' interquartile range, if the detector is merely not"
    " deterministic"
)
_LARGEST: Final = np.finfo(np.float64).max
# how much another order of summation may change a score, relative to it: 16 units in the last place of a
# float32, and many more of a double, which may be the difference of larger numbers
_SINGLE: Final = 2.0**-20
_DOUBLE: Final = 2.0**-36


def check_tolerance(value: float | None) -> None:
    """Refuse a score_tolerance that is neither None nor a finite number of at least 0."""
    if value is not None and not (is_number(value) and 0 <= value < inf):
        raise InputError(
            f"score_tolerance must be a number, 0 or more, got {value!r};"
            " 1e-05 is the default, and None compares no scores"
        )


@dataclass(frozen=True)
class Tolerance:
    """How much two scores of a row may differ: `share` of `spread`, plus `rounding` times the score."""

    share: float
    spread: float
    rounding: float

    @classmethod
    def around(cls, scores: Scores, share: float) -> "Tolerance":
        """Return the tolerance for scores; if half of them are tied, the spread is their whole range."""
        finite = scores[np.isfinite(scores)]
        rounding = _SINGLE if np.array_equal(rounded(finite, "float32"), finite) else _DOUBLE
        if finite.size == 0:
            return cls(share, 0.0, rounding)
        low, first, third, high = np.quantile(finite, [0, 0.25, 0.75, 1], method="nearest")
        with np.errstate(over="ignore"):
            spread = third - first or high - low
        return cls(share, float(min(spread, _LARGEST)), rounding)

    def differences(self, before: Scores, after: Scores) -> "Differences":
        """Return the differences of scores, and which are too large; equal infinities do not differ."""
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.where(before == after, 0.0, np.abs(after - before))
            size = np.where(np.isfinite(before), np.abs(before), 0.0)
            allowed = self.share * self.spread + self.rounding * size
        # a score that has become NaN is never within the tolerance
        return Differences(distance, allowed, ~(distance <= allowed) | np.isinf(distance))


@dataclass(frozen=True)
class Differences:
    """The difference of two scores of each row, the allowed difference, and which rows exceed it."""

    distance: Scores
    allowed: Scores
    beyond: NDArray[np.bool_]

    def __str__(self) -> str:
        worst = np.argmax(np.where(self.beyond, self.distance, -1.0))
        return (
            f"{np.count_nonzero(self.beyond):,} of {self.beyond.size:,} scores differ, one of them by"
            f" {self.distance[worst]:.3g} ({self.allowed[worst]:.3g} is allowed)"
        )


class Witness:
    """A few calibration rows and their scores, to see if the detector still gives them; no lock is needed."""

    def __init__(self, rows: Any, scores: Scores, tolerance: Tolerance) -> None:
        # copies, so that the caller's table is not kept alive and a change in it has no effect
        self.rows = [copy(row) for row in rows] if isinstance(rows, list) else rows
        self.scores, self.tolerance = scores, tolerance
        self._detector: Any = None
        self._traces: dict[tuple[int, str], int] = {}
        self._wait = 0.0

    def __getstate__(self) -> dict[str, Any]:
        # a copy, or an object loaded elsewhere, is checked anew: traces and times mean nothing there
        return vars(self) | {"_detector": None, "_traces": {}, "_wait": 0.0}

    def scores_of(self, X: Any, detector: Any, score: Scorer) -> Scores:
        """Return the scores of new rows, after checking that the detector has not changed."""
        # checked at first, whenever a trace changes, and for `SHARE` of the scoring time
        same = detector is self._detector and self._traces.items() <= traces(detector).items()
        if self._wait <= 0.0 or not same:
            self._ask(detector, score)
        start = perf_counter()
        scores = score(X)
        self._wait -= perf_counter() - start
        return scores

    def _ask(self, detector: Any, score: Scorer) -> None:
        start, before = perf_counter(), traces(detector)
        try:
            differences = self.tolerance.differences(self.scores, score(self.rows))
        except Exception as error:  # any error means a change: these rows could be scored before
            raise InputError(
                f"{detector_name(detector)} has changed since it was calibrated: it can no longer score"
                f" calibration rows ({error}); {_AGAIN}"
            ) from error
        if differences.beyond.any():
            raise InputError(
                f"{detector_name(detector)} has changed since it was calibrated, so its certificate does not"
                f" hold: on stored calibration rows, {differences}; {_AGAIN}, or {_RAISE}"
            )
        # a trace that scoring itself changes is no sign of training
        self._detector, self._traces = detector, dict(before.items() & traces(detector).items())
        self._wait = (perf_counter() - start) / SHARE


def check_batches(
    detector: Any, score: Scorer, X: Any, scores: Scores, share: float | None
) -> tuple[Witness | None, tuple[str, ...]]:
    """Return a witness of the scores of X, and notes; scores that depend on other rows raise an error.

    At most `MOST_ROWS` rows are scored again in three batches of unequal size: a mean or a rank changes in
    all of them, and the largest score, by which others may be divided, is in only one. If a score differs,
    the batch is scored at its old places among copies of its own rows. Scores that differ there depend on
    other rows; the rest depend on the batch size only, which is noted unless too many rows change.
    """
    if share is None or isinstance(detector, str) or not scores.size:
        return None, ()
    tolerance, name = Tolerance.around(scores, share), detector_name(detector)
    found: list[tuple[Indices, Scores]] = []
    for rows in _batches(scores):
        batch = take_rows(X, rows)
        try:
            again = score(batch)
        except Exception as error:  # any error is one of the smaller batch: more rows could be scored
            raise InputError(
                f"{name} scores {scores.size:,} calibration rows at once, but not {rows.size:,} of them alone"
                f" ({error}), so its scores do not depend on each row alone, as the promise needs; {_ALONE}"
            ) from error
        found.append((rows, again))
        differences = tolerance.differences(scores[rows], again)
        if differences.beyond.any():
            _check_companions(name, score, X, scores, rows, tolerance)
            far = np.count_nonzero(differences.beyond & (differences.distance > _FAR * tolerance.spread))
            if far > max(1, _MOST_FAR * rows.size):
                raise InputError(
                    f"the scores of {name} depend on the size of their batch, which voids the promise for any"
                    f" other size: in a smaller batch {differences}; {_ALONE}, or {_RAISE}"
                )
    drawn, scored = (np.concatenate(parts) for parts in zip(*found, strict=True))
    differences = tolerance.differences(scores[drawn], scored)
    if not differences.beyond.any():
        return Witness(batch, again, tolerance), ()
    # allowed differences are not counted as crossing a threshold
    moved = np.where(differences.beyond, scored, scores[drawn])
    ranked = [np.searchsorted(np.sort(side), np.r_[scores[drawn], moved]) for side in (scores[drawn], moved)]
    crossing, of = np.abs(ranked[0] - ranked[1]).max(), drawn.size
    notes = (
        "scores depend on the size of their batch, though not on the other rows in it: in smaller batches"
        f" {np.count_nonzero(differences.beyond):,} of {of:,} scores differ, by at most"
        f" {differences.distance.max():.2g}, with a spread of all scores of {tolerance.spread:.2g}",
        f"at most {crossing:,} of these {of:,} rows cross any one threshold; the promise is about scores"
        f" computed in batches of the calibration's size, {scores.size:,} rows",
    )
    if tolerance.spread:
        # another machine may change scores as much as another batch size
        widest = float(differences.distance.max()) / tolerance.spread
        tolerance = replace(tolerance, share=max(share, widest))
    return Witness(batch, again, tolerance), notes


def _check_companions(
    name: str, score: Scorer, X: Any, scores: Scores, rows: Indices, tolerance: Tolerance
) -> None:
    """Refuse scores that change when copies of the same rows replace all other rows of the batch."""
    places = np.random.default_rng(1).choice(rows, scores.size)
    places[rows] = rows
    why = f"the scores of {name} depend on the other rows of their batch, which voids the promise"
    try:
        again = score(take_rows(X, places))[rows]
    except Exception as error:  # any error is due to the other rows: these could be scored before
        raise InputError(f"{why}: beside other rows they cannot be scored ({error}); {_ALONE}") from error
    differences = tolerance.differences(scores[rows], again)
    if differences.beyond.any():
        raise InputError(
            f"{why}: beside other rows {differences}; {_ALONE}, freeze normalisation that uses the batch,"
            f" or {_RAISE}"
        )


def _batches(scores: Scores) -> Iterator[Indices]:
    """Yield the rows of each batch, large batches first and the witness rows last."""
    random = np.random.default_rng(0)
    rows = random.choice(scores.size, min(scores.size, MOST_ROWS), replace=False)
    rows = rows[np.argsort(scores[rows], kind="stable")]
    count = min(WITNESSES, (rows.size + 1) // 2)
    # evenly spaced in rank, from the smallest score to the largest, so that both classes are among them
    places = np.linspace(0, rows.size - 1, count).round().astype(np.intp)
    rest = random.permutation(np.delete(rows, places))
    cut = 3 * rest.size // 4 if rest.size >= 8 else rest.size
    for batch in (rest[:cut], rest[cut:], rows[places]):
        if batch.size:
            yield np.sort(batch)


_RIGHT_OR_NOT: Final = ("accuracy_score", "balanced_accuracy_score")  # an abstention counts as wrong
_FOLDS: Final = "sklearn.model_selection._validation"  # where scikit-learn fits and scores a fold


def check_callers(guarantee: Guarantee, normal: int, anomalous: int) -> None:
    """Warn of a pipeline or a search around PACWrap, and refuse a fold that lacks a class with a ceiling."""
    steps: list[str] = []
    search, in_fold = None, False
    # the frames of all calls under way: scikit-learn passes no such information
    for frame, _ in walk_stack(sys._getframe()):
        in_fold = in_fold or frame.f_globals.get("__name__") == _FOLDS
        if not frame.f_code.co_name.startswith("fit"):
            continue
        owner = frame.f_locals.get("self")
        if isinstance(owner, Pipeline):
            steps[:0] = [type(step).__name__ for _, step in owner.steps[:-1] if _learns(step)]
        elif hasattr(owner, "best_params_") and not in_fold:  # not while it tries settings on folds
            search = type(owner).__name__
    for n, name, promise in (normal, "normal", guarantee.fpr), (anomalous, "anomalous", guarantee.fnr):
        if in_fold and promise is not None and n == 0:
            raise InputError(
                f"none of the {normal + anomalous:,} rows of this fold is {name}, so it cannot certify"
                f" {promise.name} <= {promise.ceiling:g}; keep both classes in every fold with"
                " cv=StratifiedKFold(5)"
            )
    if steps:
        inside = ", ".join(f"{step}()" for step in steps)
        warn(
            f"the pipeline around PACWrap fitted {' and '.join(steps)} on the calibration rows too, so"
            f" the promise does not hold; put the steps inside: PACWrap(make_pipeline({inside}, detector))",
            OverlapWarning,
        )
    if search is not None:
        warn(
            f"{search} around PACWrap chose its settings on the calibration rows too, so the promise does not"
            f" hold; put the search inside: PACWrap({search}(detector, ...)), or call"
            " best_estimator_.calibrate(X, y) with rows that the search has not seen",
            OverlapWarning,
        )


def check_metric(undecided: int, of: int, anomaly_label: object) -> None:
    """Refuse a metric of scikit-learn that cannot compare verdicts with these labels."""
    scorers = (one for one, _ in walk_stack(sys._getframe()) if one.f_code.co_name == "_score")
    found = ((one, getattr(one.f_locals.get("self"), "_score_func", None)) for one in scorers)
    frame, metric = next((pair for pair in found if pair[1] is not None), (None, None))
    if frame is None or metric is None or not getattr(metric, "__module__", "").startswith("sklearn."):
        return
    if anomaly_label == 1:  # of two other whole numbers, the greater one marks the anomalies
        values = np.unique(np.asarray(frame.f_locals.get("y_true", 1)))
        anomaly_label = 1 if np.isin(values, (0, 1)).all() else values[-1].item()
    if anomaly_label != 1:
        raise InputError(
            f"{metric.__name__} takes 1 as an anomaly, as verdicts do, but y marks it by"
            f" anomaly_label={anomaly_label!r}; recode y as 0 and 1, or use pac_wrap.scoring"
        )
    if undecided and metric.__name__ not in _RIGHT_OR_NOT:
        raise InputError(
            f"{metric.__name__} cannot handle abstentions, and {undecided:,} of {of:,} verdicts are"
            ' abstentions; use pac_wrap.scoring, or decide every row with overlap="raise"'
        )


def _learns(step: Any) -> bool:
    """Return whether a pipeline step learns from rows: it is not frozen, and its tag requires fitting."""
    if step is None or step == "passthrough" or isinstance(step, FrozenEstimator):
        return False
    return not is_estimator(step) or bool(get_tags(step).requires_fit)


_ODD: Final = np.uint64(0x9E3779B97F4A7C15)
# attributes in which scikit-learn, PyOD and similar detectors store training rows (neighbours, densities,
# support vectors) and scores (PyOD, robust covariances); forests and networks store neither
_ROWS: Final = ("X_", "_fit_X", "X_fit_", "X_train_", "X_train", "support_vectors_", "subset")
_SCORES: Final = ("decision_scores_", "dist_")


@dataclass(frozen=True)
class TrainingRows:
    """Digests of the rows that trained a detector, as they are and in float32."""

    exact: NDArray[np.uint64]
    single: NDArray[np.uint64]
    columns: tuple[Any, ...] = ()

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the digests of the rows of X."""
        columns = tuple(getattr(X, "columns", ()))
        return cls(np.unique(row_digests(X)), np.unique(row_digests(X, single=True)), columns)

    def count_in(self, X: Any) -> int:
        """Return how many rows of X equal a training row, or one of the two is the other's float32 copy."""
        columns = tuple(getattr(X, "columns", ()))
        if columns != self.columns and self.columns and set(self.columns) <= set(columns):
            X = X[list(self.columns)]
        exact = row_digests(X)
        # merely close rows do not count: float32 cannot tell seconds of one minute apart
        copies = np.isin(exact, self.single) | np.isin(row_digests(X, single=True), self.exact)
        return int(np.count_nonzero(np.isin(exact, self.exact) | copies))


Kind = Literal["divided", "calibration", "held-out"]


def check_training_rows(
    training: TrainingRows | None, detector: Any, X: Any, scores: Scores, kind: Kind
) -> tuple[str, ...]:
    """Warn of rows that the detector was trained on; for rows that were just divided, return a note."""
    if training is not None:
        count, where = training.count_in(X), "are also in the training data"
    else:
        count, where = _known_to(detector, X, scores), "are known to the detector from its training"
    if not count:
        return ()
    if kind == "divided":
        # equal draws are legitimate draws; only the owner of the data knows whether a record was repeated
        return (
            f"{count:,} of {scores.size:,} calibration rows equal a training row: this is harmless if future"
            " rows repeat as often; if records were entered twice, the rates are worse than promised",
        )
    harm = "the promise does not hold, so calibrate"
    if kind == "held-out":
        harm = "their error rates are too low, so measure"
    warn(
        f"{count:,} {kind} rows {where}; if they are the same records, {harm} on rows the detector has"
        " not seen",
        OverlapWarning,
    )
    return ()


def _known_to(detector: Any, X: Any, scores: Scores) -> int:
    """Return how many rows of X a detector trained elsewhere stores, as rows or by their scores."""
    rows = X
    while (inner := handed_on(detector)) is not None:
        if len(getattr(detector, "steps", ())) > 1:
            rows = detector[:-1].transform(rows)
        detector = inner
    counts = [0]
    for one in _detectors_in(detector):
        for name, kept in vars(one).items():
            if hasattr(kept, "get_arrays"):  # scikit-learn's trees of neighbours
                kept = np.asarray(kept.get_arrays()[0])
            elif name not in _ROWS or not hasattr(kept, "shape"):
                continue
            if len(kept.shape) == 2 and kept.shape[0] and kept.shape[1:] == np.shape(rows)[1:]:
                counts.append(TrainingRows.of(kept).count_in(rows))
        counts.extend(_known_scores(vars(one).get(name), scores) for name in _SCORES)
    return max(counts)


def _detectors_in(core: Any, seen: frozenset[int] = frozenset()) -> Iterator[Any]:
    """Yield a detector and the detectors among its attributes, as PyOD's wrappers have."""
    if hasattr(core, "fit") and hasattr(core, "__dict__") and id(core) not in seen:
        yield core
        for value in vars(core).values():
            yield from _detectors_in(value, seen | {id(core)})


def _known_scores(kept: Any, scores: Scores) -> int:
    """Return the number of scores if all are among the stored ones, with too many values for chance."""
    if kept is None or np.ndim(kept) != 1:
        return 0
    values, counts = np.unique(scores.astype(np.float32), return_counts=True)
    if values.size < 2 or 2 * values.size < scores.size:
        return 0
    known, times = np.unique(np.asarray(kept, dtype=np.float32), return_counts=True)
    found = np.searchsorted(known, values).clip(max=known.size - 1)
    return scores.size if np.all((known[found] == values) & (counts <= times[found])) else 0


def row_digests(X: Any, *, single: bool = False) -> NDArray[np.uint64]:
    """Return a number per row, equal for equal rows; with `single`, of the row's float32 copy."""
    if hasattr(X, "tocoo"):  # the hash of 0 is 0, so entries are enough
        entries = X.tocoo(copy=True)
        entries.sum_duplicates()
        digests = np.zeros(X.shape[0], dtype=np.uint64)
        np.add.at(digests, entries.coords[0], _mix(entries.data, entries.coords[1], single))
        return digests
    if hasattr(X, "columns"):
        cells = X.iloc if hasattr(X, "iloc") else X
        columns: Any = (np.asarray(cells[:, position]) for position in range(X.shape[1]))
    else:
        array = np.asarray(X)
        columns = array.reshape(array.shape[0], -1).T
    hashes = (_mix(column, np.array([position]), single) for position, column in enumerate(columns))
    return reduce(np.add, hashes)


def _mix(column: NDArray[Any], position: NDArray[Any], single: bool) -> NDArray[np.uint64]:
    if column.dtype.kind == "O":
        with suppress(TypeError, ValueError):
            column = column.astype(np.float64)
    if single and column.dtype.kind == "f":
        with np.errstate(over="ignore"):
            column = column.astype(np.float32)
    if column.dtype.kind in "biuf":
        bits = bits_of(column, np.empty(column.shape))
    else:
        texts, inverse = np.unique(column.astype(str), return_inverse=True)
        hashes = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in texts]
        bits = np.array(hashes, dtype=np.uint64)[inverse]
    salt: NDArray[np.uint64] = (position.astype(np.uint64) * np.uint64(2) + np.uint64(1)) * _ODD
    mixed: NDArray[np.uint64] = (bits ^ (bits >> np.uint64(32))) * salt
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(29)
    return mixed
