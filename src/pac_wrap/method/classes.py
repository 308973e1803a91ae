"""The certificate of more than two classes: which classes are possible for a row of class scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments, floats
from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.codec import SavedAsJSON
from pac_wrap.base.text import LONGEST, listed, quoted
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import digest_problems, version_problems
from pac_wrap.method.metrics import Measured
from pac_wrap.method.promise import Clause, Population, Promise, Written, warn_of_lacking
from pac_wrap.method.provenance import Shown
from pac_wrap.method.rule import clear_below
from pac_wrap.ranks.kernels import digest
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from pac_wrap.method.verify import Verification

FORMAT: Final = "pac-wrap certificate of classes"
MOST_CLASSES: Final = 1_000
_SIGNS: Final = {"[": 10, "{": MOST_CLASSES + 10, ",": 20 * MOST_CLASSES}
SEVERAL: Final = -1
NONE: Final = -2


@dataclass(frozen=True, slots=True)
class ClassFile:
    """The content of a file of a certificate of classes: a clause for each, in the order of the columns."""

    clauses: tuple[Written, ...]
    severities: tuple[int, ...] | None = field(metadata={"optional": True})
    score_type: floats.ScoreType
    version: str


@dataclass(frozen=True, slots=True)
class ClassCertificate(Shown, SavedAsJSON):
    """The possible classes of a row of scores, with a ceiling for each; made by `calibrate_classes`.

    A class is ruled out if its score is below its threshold: eq. (63). With `severities`, every row gets one
    class, and the ceilings are for taking a class for a milder one: eqs. (66) and (67).

    Parameters
    ----------
    clauses : tuple of Clause
        The promise about each class with its result, in the order of the columns.
    severities : tuple of int or None
        The columns from the most severe class to the mildest; None if classes have no order.
    score_type : "float64", "float32" or "float16"
        The type of the calibration scores, to which every score is rounded before it is compared.
    version : str
        The version of the package that made it.

    Examples
    --------
    >>> from pac_wrap import calibrate_classes
    >>> scores = [[i % 3 == c for c in range(3)] for i in range(300)]
    >>> certificate = calibrate_classes(scores, [i % 3 for i in range(300)])
    >>> certificate.verdicts([[1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]])
    array([ 0,  2, -1, -2])
    """

    clauses: tuple[Clause, ...]
    severities: tuple[int, ...] | None = None
    score_type: floats.ScoreType = "float64"
    version: str = __version__

    _header: ClassVar[dict[str, Any]] = {"format": FORMAT, "schema": 3}
    _most_signs: ClassVar[dict[str, int]] = _SIGNS
    form: ClassVar[type] = ClassFile

    @property
    def confidence(self) -> float:
        """The confidence that all ceilings hold together; the classes are independent samples: eq. (101)."""
        return floats.float_below(floats.kept_together(*(one.confidence for one in self.clauses if one.kept)))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the columns."""
        return tuple(str(one.of.kind) for one in self.clauses)

    @property
    def empty(self) -> bool:
        """Whether any class has too few labels for its ceiling."""
        return any(one.vacuous for one in self.clauses)

    def label_sets(self, class_scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.bool_]:
        """Return for each row which classes are possible: eq. (63); with severities, those from its class on.

        Parameters
        ----------
        class_scores : array-like of float, shape (n, K)
            The scores of each row, as for `calibrate_classes`.
        on_missing : "abstain" or "stop"
            Whether a row with a NaN keeps all classes, with a `MissingScoreWarning`, or raises an error.
        """
        scores = class_matrix(class_scores, len(self.clauses), single=self.severities is not None)
        missing = np.flatnonzero(np.isnan(scores).any(axis=1))
        arguments.abstained_or_stopped(missing, len(scores), on_missing)
        left = np.ones(scores.shape, dtype=bool)
        for column, clause in enumerate(self.clauses):
            if clause.threshold is not None:
                own = floats.rounded(scores[:, column], self.score_type)
                left[:, column] = floats.reaches(own, clause.threshold)
        if self.severities is not None:
            # a class is ruled out if it and all more severe classes are below their thresholds
            order = list(self.severities)
            left[:, order] = np.logical_or.accumulate(left[:, order], axis=1)
        left[missing] = True
        return left

    def verdicts(self, class_scores: ArrayLike, on_missing: OnMissing = "abstain") -> NDArray[np.int64]:
        """Return the column of the class of each row: eq. (64), or eq. (67) with severities.

        It is -1 if several classes are possible, and -2 if none is, as for a point unlike all classes. With
        `severities` it is the most severe possible class. A row with a missing score is left undecided. The
        parameters are those of `label_sets`.
        """
        left = self.label_sets(class_scores, on_missing)
        count = left.sum(axis=1)
        if self.severities is None:
            return np.where(count == 1, left.argmax(axis=1), np.where(count == 0, NONE, SEVERAL))
        order = np.array(self.severities)
        scores = class_matrix(class_scores, order.size, single=True)
        return np.where(np.isnan(scores).any(axis=1), SEVERAL, order[left[:, order].argmax(axis=1)])

    def evaluate(
        self, class_scores: ArrayLike, labels: ArrayLike, *, confidence: float = 0.95
    ) -> tuple[Measured, ...]:
        """Return the rates of errors and of undecided points of each class on held-out points.

        Parameters
        ----------
        class_scores, labels : array-like
            The class scores as for `label_sets`, and the class of each row, by its name or its column.
        confidence : float
            The confidence of each interval.
        """
        arguments.check_rate("confidence", confidence)
        sets, verdicts = self.label_sets(class_scores), self.verdicts(class_scores)
        given = class_columns(labels, self.classes)
        arguments.check_same_length("class_scores", len(sets), "labels", given.size)
        found = []
        for column, clause in enumerate(self.clauses):
            own = given == column
            counted = ~sets[own, column], verdicts[own] == SEVERAL, own
            counts = tuple(int(np.count_nonzero(one)) for one in counted)
            found.append((str(clause.of.kind), clause.ceiling if clause.kept else None, counts))
        return Measured.together(found, confidence)

    def to_form(self) -> ClassFile:
        """Return the content of its file."""
        clauses = tuple(one.to_form(self.delta) for one in self.clauses)
        return ClassFile(clauses, self.severities, self.score_type, self.version)

    @classmethod
    def from_form(cls, found: ClassFile) -> Self:
        """Return the certificate of a file."""
        clauses = tuple(one.clause() for one in found.clauses)
        return cls(clauses, found.severities, found.score_type, found.version)

    @property
    def delta(self) -> float:
        """The chance, for each class, that its ceiling does not hold."""
        return next(one.asked.delta for one in self.clauses if one.asked is not None)

    def verify(self, class_scores: ArrayLike, labels: ArrayLike) -> "Verification":
        """Make the certificate again from its calibration scores, and return where the two differ.

        The parameters are those of `evaluate`; scores of a wider type are rounded to the certificate's.

        Examples
        --------
        >>> scores, labels = [[1, 0], [0, 1]] * 100, [0, 1] * 100
        >>> bool(calibrate_classes(scores, labels).verify(scores, labels))
        True
        """
        from pac_wrap.method.verify import verify_classes

        return verify_classes(self, class_scores, labels)

    def _problems(self) -> Iterator[str]:
        yield from version_problems(self.version)
        names = self.classes
        if not 2 <= len(set(names)) == len(names) <= MOST_CLASSES or not all(names):
            yield f"there must be 2 to {MOST_CLASSES:,} classes, each with its own name"
        if len({one.asked.delta for one in self.clauses if one.asked is not None}) != 1:
            yield "all classes must have the same delta"
        for one in self.clauses:
            of = quoted(one.of.kind)
            yield from digest_problems(of, one.n, one.digest)
            if one.of.label != "class" or one.of.kind is None or one.beyond is not None:
                yield "every clause must be about a class"
            if one.certified != one.asked:
                yield f"the ceiling of {of} differs from the requested one"
            yield from one.problems()
            finite = one.threshold is not None and abs(one.threshold) < inf
            if finite and not floats.represents(self.score_type, one.threshold or 0.0):
                yield f"the threshold of {of} is not a {self.score_type}"
        if self.severities is not None:
            if sorted(self.severities) != list(range(len(names))):
                yield "severities must name every class once"
                return
            promised = [self.clauses[place].asked is not None for place in self.severities]
            if promised != [True] * (len(names) - 1) + [False]:
                yield "with severities every class but the mildest has a ceiling"


def class_matrix(class_scores: ArrayLike, columns: int | None, *, single: bool) -> Scores:
    """Return a column of scores, as doubles, for each class; a `single` score per row stands for all."""
    array = arguments.as_array(class_scores, "class_scores")
    if array.ndim == 1 and single and columns is not None and array.dtype.kind in "biuf":
        array = np.repeat(array[:, None], columns, axis=1)
    if array.ndim != 2 or array.dtype.kind not in "biuf" or (columns or array.shape[1]) != array.shape[1]:
        wanted = "a column for each class" if columns is None else f"{columns:,} columns, one for each class"
        raise InputError(
            f"class_scores must be a matrix of numbers with {wanted}, got shape {array.shape} of"
            f" {array.dtype}; pass the result of predict_proba or decision_function"
        )
    return array if array.dtype == np.float64 else floats.widened(array)


def class_columns(labels: ArrayLike, classes: tuple[str, ...]) -> NDArray[np.intp]:
    """Return the column of each label's class; labels are compared as texts, with 1.0 as 1."""
    array = arguments.as_array(labels, "labels")
    if array.ndim != 1:
        raise InputError(f"labels must be one-dimensional, one class per row, got shape {array.shape}")
    if array.dtype.kind == "O":
        array = np.array([class_text(value) for value in array.tolist()], dtype=str)
    values, places = np.unique(array, return_inverse=True)
    known = {name: column for column, name in enumerate(classes)}
    names = [class_text(value) for value in values.tolist()]
    for name in names:
        if name not in known:
            raise InputError(f"labels must be among the classes {listed(classes)}, got {quoted(name)}")
    return np.array([known[name] for name in names], dtype=np.intp)[places]


def class_text(value: object) -> str:
    """Return the name of a class as text."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return str(value)


Ceilings = float | Mapping[Any, float | None]
Names = Sequence[object] | NDArray[Any]


class ClassRequest(NamedTuple):
    """The request about each class, by column: names, ceilings, delta, and the order of severity."""

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

    Without `severities`, a row keeps every class whose score is high enough. The rate at which a class is
    ruled out on its own points is at most its ceiling: eq. (63). Two classes with the scores -s and s have
    the thresholds of `calibrate`: eq. (65). With `severities`, every row gets one class, and the rate at
    which a class is taken for a milder one is at most its ceiling: eqs. (66) to (68).

    Parameters
    ----------
    class_scores : array-like of float, shape (n, K)
        A score for each class, higher for rows more like it, such as the result of `predict_proba` or
        `decision_function`. With `severities`, also one score per row, higher for more severe rows.
    labels : array-like
        The class of each row; no row may have been used for training.
    max_error : float or mapping of classes to float
        The ceiling of each class. A class with None in a mapping has no promise, and is never ruled out.
    delta, confidence : float, optional
        The chance for each class that its ceiling fails, by default 0.05; or the confidence that all hold.
    classes : sequence, optional
        The class of each column; by default 0 to K - 1.
    severities : sequence, optional
        The classes from the most severe to the mildest, which has no ceiling.

    Returns
    -------
    ClassCertificate
        The threshold of each class, the promises and their basis.

    Raises
    ------
    InputError
        If scores are no matrix of numbers, contain NaN or do not fit the labels, or ceilings the classes.

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
    >>> [one.errors for one in certificate.clauses]
    [0, 4, 5]
    """
    given = arguments.as_array(class_scores, "class_scores")
    named = severities if classes is None and given.ndim == 1 else classes
    scores = class_matrix(given, None if named is None else len(named), single=severities is not None)
    names = tuple(map(class_text, range(scores.shape[1]) if classes is None else classes))
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
            "confidence must come without delta, since it is for all ceilings together and delta is for each"
            " of them; give either"
        )
    count = sum(one is not None for one in ceilings)
    if not count:
        raise InputError("max_error has no ceiling for any class; give at least one")
    share = 0.05 if delta is None else delta
    if confidence is not None:  # the classes are independent samples: eq. (101)
        left = floats.confidence_left(arguments.check_rate("confidence", confidence))
        share = floats.shared_together(floats.float_below(left), count)
    asked = ClassRequest(names, ceilings, arguments.check_rate("delta", share), order)
    found = certify_class_scores(asked, scores, labels, arguments.type_of(given))
    warn_of_lacking(found.clauses)
    return found


def _ceilings(names: tuple[str, ...], max_error: Ceilings, mildest: str) -> Iterator[float | None]:
    """Yield the ceiling of each class; the mildest class has none, since there is no milder one."""
    if not isinstance(max_error, Mapping):
        for name in names:
            yield None if name == mildest else arguments.check_rate("max_error", max_error)
        return
    given = {class_text(key): value for key, value in max_error.items()}
    for key in given:
        if key not in names or (key == mildest and given[key] is not None):
            what = "the mildest class, which has no milder one" if key == mildest else "not a class"
            raise InputError(f"max_error has a ceiling for {quoted(key)}, which is {what}; remove it")
    for name in names:
        if name != mildest and (name not in given or (mildest and given[name] is None)):
            raise InputError(f"max_error has no ceiling for the class {quoted(name)}; give it one")
        yield arguments.rate_or_none(f"max_error of {quoted(name)}", given.get(name))


def certify_class_scores(
    asked: ClassRequest, scores: Scores, labels: ArrayLike, score_type: floats.ScoreType
) -> ClassCertificate:
    """Return the certificate for a request, from a matrix of scores without missing ones."""
    if (missing := np.flatnonzero(np.isnan(scores).any(axis=1))).size:
        raise arguments.refused("class_scores", missing, len(scores))
    given_to = class_columns(labels, asked.names)
    arguments.check_same_length("class_scores", len(scores), "labels", given_to.size)
    if not given_to.size:
        raise InputError("class_scores and labels are empty; pass at least one labelled row")
    clauses: dict[int, Clause] = {}
    # whether a point already has a more severe class, by the thresholds found so far
    taken = np.zeros(given_to.size, dtype=bool)
    for column in asked.severities or range(len(asked.names)):
        own = given_to == column
        mine = np.ascontiguousarray(scores[own, column])
        of, ceiling = Population("class", asked.names[column]), asked.ceilings[column]
        promise = budget = threshold = None
        if ceiling is not None:
            promise = Promise(of, of.error, ceiling, asked.delta)
            budget = promise.budget(mine.size)
            ranked = np.where(taken[own], inf, mine) if asked.severities else mine
            threshold = clear_below(ranked, budget.errors)
        clauses[column] = Clause(of, promise, promise, mine.size, digest(mine), budget, threshold)
        if asked.severities is not None:
            taken |= scores[:, column] >= (-inf if threshold is None else threshold)
    ordered = tuple(clauses[column] for column in range(len(asked.names)))
    return ClassCertificate(ordered, asked.severities, score_type)
