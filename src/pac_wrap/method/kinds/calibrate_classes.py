"""A matrix of class scores and labels in, a certificate of classes out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, ScoreType, as_array, check_rate, check_same_length, type_of
from pac_wrap.base.foreign import LONGEST, quoted
from pac_wrap.base.rounding import confidence_left, float_below, shared_together
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.verify import Verification, differences_of
from pac_wrap.method.kinds.classes import (
    MOST_CLASSES,
    ClassCertificate,
    class_columns,
    class_matrix,
    class_text,
    refuse_missing,
)
from pac_wrap.method.kinds.part import Part, warn_of_lacking
from pac_wrap.method.tails.budget import Budget
from pac_wrap.method.thresholds import clear_below
from pac_wrap.ranks.kernels import digest
from pac_wrap.ranks.precision import is_narrower, rounded

Columns = NDArray[np.intp]
Ceilings = float | Mapping[Any, float | None]
Names = Sequence[object] | NDArray[Any]
_USUAL_DELTA = 0.05


class _Asked(NamedTuple):
    """What is asked of each class, and in which order they are, by column."""

    names: tuple[str, ...]
    ceilings: tuple[float | None, ...]
    delta: float
    severities: tuple[int, ...] | None


def calibrate_classes(
    class_scores: ArrayLike,
    labels: ArrayLike,
    max_error: Ceilings = 0.05,
    *,
    delta: float | None = None,
    confidence: float | None = None,
    classes: Names | None = None,
    severities: Names | None = None,
) -> ClassCertificate:
    """Return the certificate of more than two classes, each with its own ceiling.

    Without `severities` a row keeps every class whose score is not too low for it, and the rate at which a
    class is ruled out on its own points is at most its ceiling: eq. (63). Two classes with the scores -s and
    s have the thresholds of `calibrate`: eq. (65). With `severities` every row is given one class, and the
    rate at which a class is taken for a milder one is at most its ceiling: eqs. (66) to (68).

    Parameters
    ----------
    class_scores : array-like of float, shape (n, K)
        A score for each class, higher for what is more like it: what `predict_proba` or `decision_function`
        gives. With `severities` also one score per row, higher for what is more severe.
    labels : array-like
        The class of each row, which no training has seen.
    max_error : float or mapping of classes to float
        The ceiling of each class. None in a mapping promises nothing of a class, which is then never ruled
        out.
    delta : float, optional
        The chance, for each class, that its ceiling does not hold; 0.05.
    confidence : float, optional
        Instead of delta: how surely all ceilings hold together.
    classes : sequence, optional
        The class of each column; by default 0 to K - 1.
    severities : sequence, optional
        The classes from the most severe to the mildest, which has no ceiling.

    Returns
    -------
    ClassCertificate
        What rules a class out, what is promised, and what that rests on.

    Raises
    ------
    InputError
        If scores are no matrix of numbers, contain NaN, or do not fit the labels; if a ceiling is missing or
        is for no class.

    Warns
    -----
    VacuousWarning
        If a class has too few labels for its ceiling.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(3, size=600)
    >>> scores = rng.normal(0, 1, (600, 3)) + 4 * np.eye(3)[labels]
    >>> certificate = calibrate_classes(scores, labels, {0: 0.02, 1: 0.05, 2: 0.05})
    >>> [part.errors for part in certificate.parts]
    [0, 4, 5]
    """
    single = severities is not None
    given = as_array(class_scores, "class_scores")
    named = severities if classes is None and given.ndim == 1 else classes
    columns = None if named is None else len(named)
    scores = class_matrix(class_scores, columns, single=single)
    refuse_missing(scores)
    names = tuple(map(class_text, range(scores.shape[1]) if classes is None else classes))
    asked = _asked(names, max_error, delta, confidence, severities)
    given_to = class_columns(labels, names)
    check_same_length("class_scores", len(scores), "labels", given_to.size)
    if not given_to.size:
        raise InputError("class_scores and labels are empty; pass at least one labelled row")
    found = _calibrated(asked, scores, given_to, type_of(given))
    warn_of_lacking(found.parts)
    return found


def verify_classes(certificate: ClassCertificate, class_scores: ArrayLike, labels: ArrayLike) -> Verification:
    """Recompute a certificate of classes from the scores it was made of, and say where the two differ.

    Parameters
    ----------
    certificate : ClassCertificate
        What is to be verified.
    class_scores : array-like of float, shape (n, K)
        The calibration scores; those of a wider type than the certificate's are rounded to it first.
    labels : array-like
        Their classes.

    Returns
    -------
    Verification
        True if nothing differs; printed, it says what does.

    Raises
    ------
    InputError
        If the first argument is no such certificate, or scores and labels do not fit it.

    Examples
    --------
    >>> scores, labels = [[1, 0], [0, 1]] * 100, [0, 1] * 100
    >>> bool(verify_classes(calibrate_classes(scores, labels), scores, labels))
    True
    """
    if not isinstance(certificate, ClassCertificate):
        raise InputError(f"certificate must be a ClassCertificate, got {quoted(certificate)}")
    parts = certificate.parts
    ceilings = tuple(part.asked for part in parts)
    asked = _Asked(certificate.classes, ceilings, parts[0].delta, certificate.severities)
    scores = class_matrix(class_scores, len(parts), single=certificate.severities is not None)
    refuse_missing(scores)
    if is_narrower(certificate.score_type, type_of(as_array(class_scores, "class_scores"))):
        scores = rounded(scores, certificate.score_type)
    given_to = class_columns(labels, certificate.classes)
    check_same_length("class_scores", len(scores), "labels", given_to.size)
    again = _calibrated(asked, scores, given_to, certificate.score_type)
    # each class has its own delta, and all of them the same
    return Verification(
        tuple(
            text
            for found, expected in zip(parts, again.parts, strict=True)
            for text in differences_of(found, expected, f"class {quoted(found.name)} ")
        )
    )


def _asked(
    names: tuple[str, ...],
    max_error: Ceilings,
    delta: float | None,
    confidence: float | None,
    severities: Names | None,
) -> _Asked:
    if not 2 <= len(names) <= MOST_CLASSES:
        raise InputError(f"there must be 2 to {MOST_CLASSES:,} classes, got {len(names):,}")
    if len(set(names)) < len(names) or any(not name or len(name) > LONGEST for name in names):
        raise InputError(f"each class needs a name of its own, of 1 to {LONGEST} characters")
    order, mildest = None, ""
    if severities is not None:
        texts = tuple(map(class_text, severities))
        if sorted(texts) != sorted(names):
            raise InputError(
                "severities must name every class once, from the most severe to the mildest, got"
                f" {quoted(list(texts))}"
            )
        order, mildest = tuple(names.index(text) for text in texts), texts[-1]
    ceilings = tuple(_ceilings(names, max_error, mildest))
    if delta is not None and confidence is not None:
        raise InputError(
            "confidence says how surely all ceilings hold together, and delta how surely each one does; give"
            " either of them"
        )
    count = sum(one is not None for one in ceilings)
    if not count:
        raise InputError("max_error promises nothing of any class; give at least one ceiling")
    usual = _USUAL_DELTA if delta is None else delta
    share = usual
    if confidence is not None:  # the classes are independent samples: eq. (101)
        share = shared_together(float_below(confidence_left(check_rate("confidence", confidence))), count)
    return _Asked(names, ceilings, check_rate("delta", share), order)


def _ceilings(names: tuple[str, ...], max_error: Ceilings, mildest: str) -> Iterator[float | None]:
    """Yield the ceiling of each class; the mildest one cannot be taken for a milder one."""
    if not isinstance(max_error, Mapping):
        rate = check_rate("max_error", max_error)
        yield from (None if name == mildest else rate for name in names)
        return
    given = {class_text(key): value for key, value in max_error.items()}
    for key in given:
        if key not in names or (key == mildest and given[key] is not None):
            what = "the mildest class, which has no milder one" if key == mildest else "no class"
            raise InputError(f"max_error has a ceiling for {quoted(key)}, which is {what}; leave it out")
    for name in names:
        if name != mildest and (name not in given or (mildest and given[name] is None)):
            raise InputError(f"max_error has no ceiling for the class {quoted(name)}; give it one")
        ceiling = given.get(name)
        yield None if ceiling is None else check_rate(f"max_error of {quoted(name)}", ceiling)


def _calibrated(asked: _Asked, scores: Scores, labels: Columns, score_type: ScoreType) -> ClassCertificate:
    parts: dict[int, Part] = {}
    # whether a point was given a more severe class already, by the thresholds found so far
    taken = np.zeros(labels.size, dtype=bool)
    for column in asked.severities or range(len(asked.names)):
        own = labels == column
        mine = np.ascontiguousarray(scores[own, column])
        ceiling = asked.ceilings[column]
        part = Part(asked.names[column], ceiling, ceiling, asked.delta, mine.size, digest(mine), None, None)
        if ceiling is not None:
            budget = Budget.of(mine.size, ceiling, asked.delta)
            ranked = np.where(taken[own], inf, mine) if asked.severities else mine
            part = replace(part, errors=budget.errors, threshold=clear_below(ranked, budget.errors))
        if asked.severities is not None:
            taken |= scores[:, column] >= (-inf if part.threshold is None else part.threshold)
        parts[column] = part
    ordered = tuple(parts[column] for column in range(len(asked.names)))
    return ClassCertificate(ordered, asked.severities, score_type)
