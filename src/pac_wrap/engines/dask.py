"""Dask: calibrate, decide and score frames of dask.dataframe; the statistics live in `ranks` and `method`.

A worker is given one partition, a pandas frame: for its share of a pass, its verdicts or its scores.
"""

from collections.abc import Sequence
from typing import Any

from pac_wrap.base.missing import missing_places
from pac_wrap.engines.dask_groups import SETS, certified_groups, certified_kinds, decided_by_group
from pac_wrap.engines.dask_partitions import (
    certified_pairs,
    check_frame,
    column_type,
    scored_by,
    scores_of,
    verdicts_of,
)
from pac_wrap.engines.frames import (
    check_features,
    check_group,
    features_of,
    import_package,
    warn_if_undecidable,
)
from pac_wrap.method.calibrate import Request, warned
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.chunked import Asked, T
from pac_wrap.method.curves.certify import CurveRequest
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.calibrate import GroupRequest, warned_of_groups
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.method.kinds.part import warn_of_lacking
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.thresholds import Thresholds
from pac_wrap.tables.columns import refuse_added, refuse_as_third, require_two
from pac_wrap.tables.groups import refuse_narrower
from pac_wrap.tables.kinds import KindsAsked


def calibrate(
    df: Any,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: object = 1,
    overlap: str | Overlap | None = None,
) -> Certificate:
    """Return the certificate that `calibrate_labelled` gives for these two columns, byte for byte.

    The current scheduler looks at one partition and then makes one pass, or up to four where that partition
    is unlike the others; counts come back, and the few scores around the thresholds.

    Parameters
    ----------
    df : DataFrame of Dask
        The labelled points.
    score, label : str
        The columns of scores and labels; the rest is as in `calibrate_labelled`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> df = dd.from_dict({"score": range(1000), "label": [0] * 900 + [1] * 100}, npartitions=4)
    >>> certificate = calibrate(df)
    >>> certificate.normal.n, certificate.regime.value
    (900, 'separated')
    """
    return certified(df, Request.of(guarantee, overlap, anomaly_label), score=score, label=label)


def certify_curve(
    df: Any,
    delta_fpr: float = 0.05,
    delta_fnr: float = 0.05,
    *,
    score: str = "score",
    label: str = "label",
    anomaly_label: object = 1,
    top_fpr: float | None = None,
    top_fnr: float | None = None,
) -> Curve:
    """Return the curve that `pac_wrap.certify_curve` gives for these two columns, byte for byte.

    Parameters
    ----------
    df, score, label : DataFrame of Dask and str
        The labelled points, and the names of their columns; the rest is as in `pac_wrap.certify_curve`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> df = dd.from_dict({"score": range(1000), "label": [0] * 900 + [1] * 100}, npartitions=4)
    >>> certify_curve(df).at(900.0).certified.max_fnr < 0.1
    True
    """
    request = CurveRequest(delta_fpr, delta_fnr, anomaly_label, top_fpr, top_fnr)
    return certified(df, request, score=score, label=label)


def calibrate_groups(
    df: Any,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    group: str = "group",
    together: bool = False,
    pool: bool = False,
    anomaly_label: object = 1,
    overlap: str | Overlap | None = None,
) -> GroupCertificate:
    """Return the certificate that `pac_wrap.calibrate_groups` gives for these columns, byte for byte.

    One pass counts labels and groups, and one shuffle brings the rows of each group into one partition, where
    they are calibrated; a row for each group comes back. The pool takes up to four passes more.

    Parameters
    ----------
    df, score, label, group : DataFrame of Dask and str
        The labelled points, and the names of their columns; the rest is as in `pac_wrap.calibrate_groups`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> columns = {"score": range(1000), "label": [0] * 500 + [1] * 500, "group": ["even", "odd"] * 500}
    >>> df = dd.from_dict(columns, npartitions=4)
    >>> sorted(calibrate_groups(df).groups)
    ['even', 'odd']
    """
    request = GroupRequest(Request.of(guarantee, overlap, anomaly_label), together, pool)
    return warned_of_groups(certified_by_group(df, request, score=score, label=label, group=group))


def calibrate_kinds(
    df: Any,
    guarantee: Guarantee | Request | None = None,
    *,
    score: str = "score",
    label: str = "label",
    kind: str = "kind",
    anomaly_label: object = 1,
    overlap: str | Overlap | None = None,
) -> KindCertificate:
    """Return the certificate that `pac_wrap.calibrate` gives for the same scores by kind, byte for byte.

    A class none of whose rows names a kind has none. One pass counts the kinds, and each of them takes a
    pass or up to four, like `calibrate`.

    Parameters
    ----------
    df, score, label, kind : DataFrame of Dask and str
        The labelled points, and the names of their columns; the rest is as in `pac_wrap.calibrate`.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> columns = {"score": range(1000), "label": [0] * 900 + [1] * 100, "kind": [None] * 900 + ["x"] * 100}
    >>> df = dd.from_dict(columns, npartitions=4)
    >>> [part.name for part in calibrate_kinds(df).anomalous]
    ['x']
    """
    asked = KindsAsked.of(guarantee, overlap, anomaly_label, kind)
    found = certified_by_kind(df, asked, score=score, label=label, kind=kind)
    warn_of_lacking((*found.normal, *found.anomalous))
    return found


def certified_by_group(
    df: Any, request: GroupRequest, *, score: str, label: str, group: str
) -> GroupCertificate:
    """Return what a request gets from three columns."""
    check_frame(df, [label, group], [score])
    require_two(score, label)
    refuse_as_third(group, (score, label))
    return certified_groups(df[[score, label, group]], request)


def certified_by_kind(df: Any, asked: KindsAsked, *, score: str, label: str, kind: str) -> KindCertificate:
    """Return what is asked for of the kinds in three columns."""
    check_frame(df, [label, kind], [score])
    require_two(score, label)
    refuse_as_third(kind, (score, label), "kind")
    return certified_kinds(df[[score, label, kind]], asked)


def certified(df: Any, request: Asked[T], *, score: str, label: str) -> T:
    """Return what a request gets from two columns."""
    check_frame(df, [label], [score])
    require_two(score, label)
    return warned(certified_pairs(df[[score, label]], request))


def decide(
    df: Any, certificate: Certificate | GroupCertificate, *, score: str = "score", group: str | None = None
) -> Any:
    """Return the frame with the columns `verdict` and `prediction_set`, not yet computed.

    A missing score is abstained on. Where the frame's scores are of a narrower type than the certificate's,
    and that may change verdicts, a `PrecisionWarning` says so. A certificate of groups needs the column
    `group`; groups that were never seen are abstained on, and scores of a narrower type are refused.

    Parameters
    ----------
    df : DataFrame of Dask
        The points.
    certificate : Certificate or GroupCertificate
        What decides.
    score, group : str
        The columns of scores and, for a certificate of groups, of groups.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> df = dd.from_dict({"score": range(1000), "label": [0] * 900 + [1] * 100}, npartitions=4)
    >>> list(decide(df, calibrate(df)).columns)
    ['score', 'label', 'verdict', 'prediction_set']
    """
    check_group(certificate, group)
    check_frame(df, numbers=[score])
    refuse_added(df.columns, ["verdict", "prediction_set"])
    kind = column_type(df[score].dtype)
    if isinstance(certificate, GroupCertificate):
        check_frame(df, [group])
        refuse_narrower(kind, certificate, score)
        return decided_by_group(df, certificate, score, str(group))
    warn_if_undecidable(certificate, kind, score)
    scores, rule = df[score], certificate.rule
    return df.assign(
        verdict=scores.map_partitions(verdicts_of, rule, meta=("verdict", "int8")),
        prediction_set=scores.map_partitions(
            _prediction_sets, certificate.exclusions, meta=("prediction_set", "string[pyarrow]")
        ),
    )


def score(df: Any, detector: Any, *, features: Sequence[str] | None = None, score: str = "score") -> Any:
    """Return the frame with a column of anomaly scores, not yet computed; higher is more anomalous.

    The detector is a fitted one, or a PACWrap around it. Its features are the columns it was fitted on if it
    knows their names, else all columns of numbers.

    Parameters
    ----------
    df : DataFrame of Dask
        The rows.
    detector : object
        What gives the scores.
    features : sequence of str, optional
        The columns that it gets.
    score : str
        The column that is added.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> df = dd.from_dict({"score": range(1000), "label": [0] * 900 + [1] * 100}, npartitions=4)
    >>> list(score(df, lambda X: -X[:, 0], features=["score"], score="turned").columns)
    ['score', 'label', 'turned']
    """
    check_frame(df)
    features = features_of(detector, features, lambda: df.select_dtypes("number").columns)
    check_frame(df, numbers=features)
    refuse_added(df.columns, [score])
    check_features(detector, features)
    # as a task of its own the detector travels once to each worker, not with every partition
    sent = import_package("dask", "dask").delayed(detector, traverse=False)
    scores = df[features].map_partitions(scored_by, sent, meta=(score, "float64"))
    return df.assign(**{score: scores})


def _prediction_sets(column: Any, exclusions: Thresholds) -> Any:
    """Return the labels still possible, as texts; both are where the score is missing."""
    scores = scores_of(column)
    possible = exclusions.possible(scores, missing_places(scores))
    return type(column)(SETS[possible @ [1, 2]], index=column.index, dtype="string[pyarrow]")
