"""Training: the split into training and calibration rows, and the call of a detector's `fit`."""

import warnings
from functools import partial
from inspect import signature
from math import floor
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import process_routing

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.text import quoted
from pac_wrap.detectors.scores import (
    Indices,
    Polarity,
    anomaly_scores,
    detector_name,
    is_density,
    is_estimator,
    take_rows,
)
from pac_wrap.errors import InputError
from pac_wrap.method.groups.values import coded
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.ranks.memory import auc

TrainOn = Literal["auto", "normal", "unlabelled", "labelled"]
Share = float | Literal["auto"]
Mask = NDArray[np.bool_]
Units = NDArray[Any] | None
_FOLDS: Final = 5  # of a search, scikit-learn's default
_MOST: Final = 0.9  # of a class with few rows, so that some of them train


def check_share(value: Any) -> None:
    """Refuse a calibration_size that is neither a share nor "auto"."""
    if not isinstance(value, str):
        check_rate("calibration_size", value)
    elif value != "auto":
        raise InputError(f'calibration_size must be "auto" or a share such as 0.5, got {quoted(value)}')


def calibrating(n: int, share: Share, promise: Promise | None) -> int:
    """Return how many of n rows of a class calibrate; "auto" is half, or the smallest certifying number."""
    if share != "auto":
        return round(share * n)
    half = round(n / 2)
    needed = half if promise is None else half + promise.budget(half).missing
    # if even nine tenths are too few, half: a tenth of the class has to train
    return needed if needed <= floor(_MOST * n) else half


def divide(
    anomalous: Mask,
    share: Share,
    guarantee: Guarantee,
    random: np.random.RandomState,
    *,
    keep_anomalies: bool,
    units: Units = None,
) -> tuple[Indices, Indices]:
    """Return the rows to train on and those to calibrate on, `share` of each class, or of the units."""
    sizes = np.bincount(anomalous, minlength=2).tolist()
    promises = guarantee.fpr, guarantee.fnr
    wanted = [calibrating(n, share, one) for n, one in zip(sizes, promises, strict=True)]
    if keep_anomalies:
        wanted[1] = sizes[1]
    if units is None:
        drawn = _drawn([~anomalous, anomalous], wanted, random)
    else:
        shares = [size / n if n else 0.0 for n, size in zip(sizes, wanted, strict=True)]
        codes = coded(units, "units").codes
        drawn = _drawn_units(anomalous, codes, shares, random, keep_anomalies)[codes]
    train, held_out = np.flatnonzero(~drawn & ~(keep_anomalies & anomalous)), np.flatnonzero(drawn)
    if not train.size or not held_out.size:
        raise InputError(
            f"fit needs rows to train on ({'normal ones' if keep_anomalies else 'of both classes'})"
            f" and rows to calibrate on, got n_samples = {anomalous.size},"
            f" {np.count_nonzero(anomalous)} of them anomalous"
            f"{'' if units is None else f', of {len(set(units))} units'};"
            f" add {'rows' if units is None else 'units'} or change calibration_size"
        )
    return train, held_out


def divide_classes(y: NDArray[Any], share: float, random: np.random.RandomState) -> tuple[Indices, Indices]:
    """Return the rows to train on and those to calibrate on, `share` of each of many classes."""
    places = np.unique(y, return_inverse=True)[1]
    classes = [places == place for place in range(places.max(initial=0) + 1)]
    drawn = _drawn(classes, [round(share * np.count_nonzero(one)) for one in classes], random)
    train, held_out = np.flatnonzero(~drawn), np.flatnonzero(drawn)
    if not train.size or not held_out.size:
        raise InputError(
            f"fit needs rows to train on and rows to calibrate on, got n_samples = {y.size}; add rows or"
            " change calibration_size"
        )
    return train, held_out


def _drawn(kinds: list[Mask], sizes: list[int], random: np.random.RandomState) -> Mask:
    """Return a mask of the rows, or units, drawn to calibrate: `sizes` of each kind."""
    chosen = np.zeros(kinds[0].size, dtype=bool)
    for kind, size in zip(kinds, sizes, strict=True):
        chosen[random.permutation(np.flatnonzero(kind))[:size]] = True
    return chosen


def _drawn_units(
    anomalous: Mask, units: Indices, shares: list[float], random: np.random.RandomState, keep: bool
) -> Mask:
    """Return a mask of the units drawn to calibrate, with all of their rows."""
    has = [np.bincount(units[anomalous == label], minlength=units.max() + 1) for label in (False, True)]
    kinds = [(has[0] > 0) & (has[1] == 0), (has[0] == 0) & (has[1] > 0), (has[0] > 0) & (has[1] > 0)]
    if kinds[2].any():
        # the same share of all units, or rows of either class would come from the wrong mixture of them;
        # here not all anomalies calibrate, so their share is that of the normal rows
        shares = [shares[0] if keep else max(shares)] * 2
    counts = map(np.count_nonzero, kinds)
    sizes = [round(share * count) for share, count in zip([*shares, max(shares)], counts, strict=True)]
    return _drawn(kinds, sizes, random)


def trainable(detector: Any) -> bool:
    """Return whether a detector is an object that can be trained and is not frozen."""
    return hasattr(detector, "fit") and not isinstance(detector, (FrozenEstimator, type))


def untrained(detector: Any, random: np.random.RandomState | None) -> Any:
    """Return an untrained copy; `random` seeds each part that has no random_state of its own."""
    copy = clone(detector, safe=False)
    if random is not None and hasattr(copy, "get_params"):
        for name, value in sorted(copy.get_params(deep=True).items()):
            if value is None and name.split("__")[-1] == "random_state":
                copy.set_params(**{name: random.randint(np.iinfo(np.int32).max)})
    return copy


def takes_labels(detector: Any) -> bool:
    """Return whether a detector is trained with labels: a classifier, or a `fit` that requires y."""
    if hasattr(detector, "steps"):
        return takes_labels(detector.steps[-1][1])
    if is_search(detector):
        return takes_labels(detector.estimator)
    if is_estimator(detector) and (is_classifier(detector) or get_tags(detector).target_tags.required):
        return True
    parameter = signature(detector.fit).parameters.get("y")
    return parameter is not None and parameter.default is parameter.empty


def is_search(detector: Any) -> bool:
    """Return whether a detector searches for the best settings of another, as GridSearchCV does."""
    settings = ("estimator", "scoring", "cv", "refit")
    return is_estimator(detector) and all(hasattr(detector, name) for name in settings)


def train(
    wrapper: Any, X: Any, anomalous: Mask, guarantee: Guarantee, units: Units, fit_params: dict[str, Any]
) -> tuple[Any, tuple[Indices, Indices]]:
    """Return a wrapper's detector after training, with the training rows and the rows left to calibrate."""
    detector, train_on, random_state = wrapper.detector, wrapper.train_on, wrapper.random_state
    labelled = train_on == "labelled" or (train_on == "auto" and takes_labels(detector))
    only_normal = not labelled and train_on != "unlabelled"
    ranks = _ranks(detector)
    random = check_random_state(random_state)
    keep_anomalies = only_normal and not ranks
    share = wrapper.calibration_size
    division = divide(anomalous, share, guarantee, random, keep_anomalies=keep_anomalies, units=units)
    rows, copy = division[0], untrained(detector, None if random_state is None else random)
    known, features = anomalous[rows], take_rows(X, rows)
    if ranks:
        _prepare(copy, features, known, wrapper.polarity, only_normal)
    params = {name: _of_rows(value, rows, anomalous.size) for name, value in fit_params.items()}
    try:
        with warnings.catch_warnings():
            # PyOD's detectors warn of labels, which only the search uses here
            warnings.filterwarnings("ignore", "y should not be presented" if ranks else "^$")
            copy.fit(features, *([known.astype(int)] if labelled or ranks else []), **params)
        if ranks and only_normal:
            normal = np.flatnonzero(~known)
            params = {name: _of_rows(value, normal, known.size) for name, value in params.items()}
            copy.best_estimator_ = clone(copy.best_estimator_).fit(take_rows(features, normal), **params)
    except ValueError as error:
        raise InputError(f"the detector cannot be trained on these rows: {error}") from error
    check_chosen(copy)
    return copy, division


def check_chosen(detector: Any) -> None:
    """Refuse a search, or a pipeline that ends in one, whose best candidate has the score NaN."""
    search = detector.steps[-1][1] if hasattr(detector, "steps") else detector
    if is_search(search) and np.isnan(getattr(search, "best_score_", 0.0)):
        raise InputError(
            f"{detector_name(search)} has no best candidate: the best mean test score is NaN; remove scoring,"
            " or pass one that works, and make sure that every fold has rows of all classes"
        )


def _ranks(detector: Any) -> bool:
    """Return whether a detector is a search over detectors, whose candidates are ranked by anomalies."""
    if hasattr(detector, "steps") and _ranks(search := detector.steps[-1][1]):
        name = detector_name(search)
        raise InputError(
            f"a pipeline around {name} would search without labels; put the pipeline inside:"
            f" {name}(make_pipeline(..., detector), ...)"
        )
    return is_search(detector) and not (is_classifier(detector) or is_density(detector))


def _prepare(search: Any, X: Any, anomalous: Mask, polarity: Polarity, only_normal: bool) -> None:
    """Make a search over detectors choose the best ranking of anomalies, unless it has its own scoring."""
    name, few = detector_name(search), np.count_nonzero(anomalous)
    if not search.refit:
        raise InputError(f"refit={search.refit} leaves {name} without a detector to certify; pass refit=True")
    if isinstance(search.scoring, str) and is_outlier_detector(search):
        raise InputError(
            f"scoring={search.scoring!r} expects high scores for anomalies, but"
            f" {detector_name(search.estimator)} gives them low scores; remove scoring, or pass"
            " pac_wrap.scoring.ranking_scorer"
        )
    if few < 2:
        raise InputError(
            f"{name} needs at least 2 anomalies to rank candidates, besides those that calibrate, got {few};"
            " add labels, or wrap a detector with fixed settings"
        )
    cv = StratifiedKFold(min(_FOLDS, int(few))) if search.cv is None else search.cv
    labels = anomalous.astype(int)
    folds = check_cv(cv, labels, classifier=True).split(X, labels)
    kept = [(train[~anomalous[train]] if only_normal else train, test) for train, test in folds]
    search.set_params(scoring=with_scoring(search, polarity).scoring, cv=kept)


def with_scoring(detector: Any, polarity: Polarity) -> Any:
    """Return a detector, or a copy with a scoring that ranks anomalies if it is a search without one."""
    if not is_search(detector) or not _ranks(detector) or detector.scoring is not None:
        return detector
    return clone(detector, safe=False).set_params(scoring=partial(_ranking, polarity=polarity))


def _ranking(
    detector: Any, X: Any, y: NDArray[np.int_], sample_weight: Any = None, *, polarity: Polarity
) -> float:
    """Return the chance that an anomaly outscores a normal row; weights matter in training only."""
    scores = anomaly_scores(detector, X, polarity)
    return auc(scores[y == 0], scores[y == 1])


def passed_on(wrapper: Any, detector: Any, fit_params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a wrapper's `fit` that its detector's `fit` takes or requested."""
    if not fit_params:
        return {}
    if not trainable(detector):
        raise InputError(
            f"fit was given {', '.join(fit_params)}, but {detector_name(detector)} is used as it is and not"
            " trained; remove it"
        )
    if get_config()["enable_metadata_routing"]:
        return dict(process_routing(wrapper, "fit", **fit_params).detector.fit)
    taken = signature(detector.fit).parameters
    unknown = [name for name in fit_params if name not in taken]
    if unknown and not any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        raise InputError(
            f"fit was given {unknown[0]}, which the fit of {detector_name(detector)} does not take; remove it"
        )
    return fit_params


def _of_rows(value: Any, rows: Indices, size: int) -> Any:
    """Return the entries of the training rows if the value has one entry per row, else the whole value."""
    shape = (len(value),) if isinstance(value, (list, tuple)) else getattr(value, "shape", ())
    return take_rows(value, rows) if tuple(shape[:1]) == (size,) else value
