"""How often a class's ceiling is exceeded, on real digits: ours, and conformal sets of other packages."""

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

from benchmarks.peers import left_out, missing
from benchmarks.record import Aim, Measure, Result, SkipError
from benchmarks.timing import Scale
from pac_wrap import calibrate_classes
from pac_wrap.tails import error_budget
from pac_wrap_paper.data.registry import ENTRIES
from pac_wrap_paper.data.store import locate
from pac_wrap_paper.data.tabular import load_digits

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Sets = Callable[[Floats, Labels, Floats], NDArray[np.bool_]]
CEILING = DELTA = 0.05
TRAINED = 2000
N = 100
POPULATION = 5000
ABOUT = """\
Ten digits as ten classes: a logistic regression learns from {trained:,} images of USPS or MNIST, and
{pool} that it has not seen are the population. {draws:,} calibrations (20 times as many for
ours, 5 times for MAPIE, which are faster) of {n} images of each digit are drawn from it, with replacement;
each method turns the probabilities of the classes into sets, and the rate at which a digit is ruled out on
its own images is known exactly, from the population. The ceiling is {ceiling} for every digit.
*Worst digit* and *mean digit* are shares of calibrations in which that rate
exceeds the ceiling; *some digit* is that for any of the ten. The *exact chance* is that of the worst digit
without drawing, and at most delta = {delta} for ours. *Classes left* is the mean size of the sets, *decided*
the share of sets with one class.

The methods promise different things. Ours promises every digit's ceiling, each with confidence 1 - delta.
crepes (a category for each class) promises every digit's rate on average over calibrations, so many
calibrations exceed it, as they may. MAPIE's split conformal sets promise the rate over all digits together,
on average; version 1 has no categories.
The thyroid table has two classes, not the three of its source, so it is not used."""


def ours(probabilities: Floats, labels: Labels, population: Floats) -> NDArray[np.bool_]:
    """Return our label sets of the population."""
    certificate = calibrate_classes(probabilities, labels, CEILING, delta=DELTA)
    return certificate.label_sets(population)


def crepes_sets(probabilities: Floats, labels: Labels, population: Floats) -> NDArray[np.bool_]:
    """Return the sets of crepes' conformal classifier, one category per class, not smoothed."""
    crepes: Any = import_module("crepes")
    classifier = crepes.ConformalClassifier()
    classifier.fit(1.0 - probabilities[np.arange(labels.size), labels], bins=labels)
    columns = [
        classifier.predict_set(
            1.0 - population[:, digit],
            bins=np.full(len(population), digit),
            confidence=1.0 - CEILING,
            smoothing=False,
        )
        for digit in range(population.shape[1])
    ]
    return np.column_stack(columns).astype(bool)


def mapie_sets(probabilities: Floats, labels: Labels, population: Floats) -> NDArray[np.bool_]:
    """Return the sets of MAPIE's split conformal classifier."""
    mapie: Any = import_module("mapie.classification")
    classifier = mapie.SplitConformalClassifier(
        _precomputed(population.shape[1]), confidence_level=1.0 - CEILING, prefit=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        classifier.conformalize(probabilities, labels)
        _, sets = classifier.predict_set(population)
    return np.asarray(sets[:, :, 0], dtype=bool)


# how many times the draws each of them gets: some are slow
METHODS: dict[str, tuple[str | None, Sets, int]] = {
    "PAC-Wrap": (None, ours, 20),
    "crepes, class-conditional": ("crepes", crepes_sets, 1),
    "MAPIE, split conformal": ("mapie", mapie_sets, 5),
}


def measure(scale: Scale) -> Result:
    """Return how often each method exceeds a digit's ceiling."""
    draws = scale.pick(1, 100, 100)
    measures, pools = [], []
    both: tuple[Literal["usps", "mnist"], ...] = ("usps", "mnist")
    names = scale.pick(both[:1], both, both)
    for name in names:
        probabilities, labels = _population(name)
        pools.append(f"{labels.size:,} of {name.upper()}")
        for method, (package, sets, times) in METHODS.items():
            if package is None or not missing(package):
                row = f"{method}, {name.upper()}"
                measures += _described(row, sets, probabilities, labels, times * draws)
    about = ABOUT.format(
        trained=TRAINED, pool=" and ".join(pools), draws=draws, n=N, ceiling=CEILING, delta=DELTA
    )
    return Result(
        "classes",
        "More than two classes: how often a class exceeds its ceiling",
        about,
        scale.name,
        measures=tuple(measures),
        left_out=left_out(),
    )


def _described(row: str, sets: Sets, probabilities: Floats, labels: Labels, draws: int) -> list[Measure]:
    random = np.random.default_rng(0)
    digits = [np.flatnonzero(labels == digit) for digit in range(10)]
    own = np.repeat(np.arange(10), N)
    above, left, decided = np.zeros((draws, 10), dtype=bool), np.empty(draws), np.empty(draws)
    for draw in range(draws):
        rows = np.concatenate([random.choice(one, N) for one in digits])
        found = sets(probabilities[rows], own, probabilities)
        above[draw] = [np.mean(~found[one, digit]) > CEILING for digit, one in enumerate(digits)]
        sizes = found.sum(axis=1)
        left[draw], decided[draw] = sizes.mean(), np.mean(sizes == 1)
    chances = above.mean(axis=0)
    exact = None
    if sets is ours:
        exact = max(_exact(probabilities[one, digit]) for digit, one in enumerate(digits))
    return [
        Measure(row, "worst digit", float(chances.max()), "share"),
        Measure(row, "mean digit", float(chances.mean()), "share"),
        Measure(row, "some digit", float(above.any(axis=1).mean()), "share"),
        Measure(row, "exact chance", exact, "chance", None if exact is None else Aim("<=", DELTA)),
        Measure(row, "classes left", float(left.mean()), "share"),
        Measure(row, "decided", float(decided.mean()), "share"),
    ]


def _exact(scores: Floats) -> float:
    """Return the chance that N draws rule out more than the ceiling: eq. (68) for a population with atoms."""
    errors = error_budget(N, CEILING, DELTA)
    assert errors is not None
    ordered = np.sort(scores)
    # a threshold breaks the ceiling exactly if it lies above this score
    last = ordered[int(np.floor(CEILING * scores.size))]
    return float(binom.cdf(errors, N, np.mean(scores <= last)))


def _population(name: Literal["usps", "mnist"]) -> tuple[Floats, Labels]:
    """Return the probabilities that a classifier gives to images it has not seen, and their digits."""
    absent = [file.name for file in ENTRIES[name].files if locate(file) is None]
    if absent:
        raise SkipError(f"neither PAC_WRAP_DATA nor the cache holds {', '.join(absent)}")
    (train, train_digits), (test, test_digits) = load_digits(name)
    images, digits = np.concatenate([train, test]), np.concatenate([train_digits, test_digits])
    order = np.random.default_rng(0).permutation(len(images))[: TRAINED + POPULATION]
    learned, rest = order[:TRAINED], order[TRAINED:]
    classifier = LogisticRegression(max_iter=1000, C=0.01).fit(images[learned], digits[learned])
    return classifier.predict_proba(images[rest]), digits[rest]


def _precomputed(classes: int) -> Any:
    """Return a fitted classifier that gives back the probabilities it is asked about."""
    base: Any = import_module("sklearn.base")

    class Precomputed(base.ClassifierMixin, base.BaseEstimator):
        classes_ = np.arange(classes)

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def fit(self, X: Floats, y: Labels) -> "Precomputed":
            return self

        def predict_proba(self, X: Floats) -> Floats:
            return np.asarray(X)

        def predict(self, X: Floats) -> Labels:
            return np.asarray(np.argmax(X, axis=1))

    return Precomputed()
