"""Frames of points: calibrate, certify, decide and score them, whichever engine holds them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pac_wrap.base.arguments import Scores, warn
from pac_wrap.base.floats import ScoreType
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, MissingExtraError, PrecisionWarning
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.curves.curve import Curve, CurveRequest
from pac_wrap.method.groups.calibrate import GroupRequest, GroupSource, certify_any, request_of_columns
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.source import Source
from pac_wrap.method.traffic.calibrate import certify_traffic, is_traffic
from pac_wrap.tables import columns as checks

if TYPE_CHECKING:
    from pac_wrap.engines.files import InspectedFiles

# of columns
Names = Sequence[Any]
AnyCertificate = Certificate | GroupCertificate


class Engine(ABC):
    """An engine with frames in partitions: it counts and computes; all else is the same for all engines."""

    # without these it reads no files
    packages: ClassVar[tuple[str, ...]]

    @abstractmethod
    def check(self, df: Any, numbers: Names = (), labels: Names = (), groups: Names = ()) -> None:
        """Refuse anything but a frame of this engine with these columns and their types."""

    @abstractmethod
    def source(self, df: Any, columns: Names, anomaly_label: object, called: str) -> Source:
        """Return the labelled scores of two columns, by the kinds in a third column."""

    @abstractmethod
    def grouped(self, df: Any, columns: Names, anomaly_label: object) -> GroupSource:
        """Return the labelled scores of two columns by the groups in a third."""

    @abstractmethod
    def traffic(self, df: Any, columns: checks.TrafficColumns) -> tuple[Source, int]:
        """Return the scores of traffic by the state of each point, and the number of points without one."""

    @abstractmethod
    def score_type(self, df: Any, score: str) -> ScoreType:
        """Return the type of a column of scores."""

    @abstractmethod
    def decided(self, df: Any, certificate: Any, score: str, group: str | None) -> Any:
        """Return the frame with the columns `verdict` and `prediction_set`, by group if that is a column."""

    @abstractmethod
    def numbers(self, df: Any) -> Iterable[Any]:
        """Return the names of all columns of numbers."""

    @abstractmethod
    def scored(self, df: Any, detector: Any, features: list[Any], score: str) -> Any:
        """Return the frame with a column of a detector's scores."""

    @abstractmethod
    def reading(self, found: "InspectedFiles", master: str | None) -> AbstractContextManager[Any]:
        """Yield a frame of `score`, `label` as a text without case, and perhaps `group`, out of files."""

    @abstractmethod
    def marked(self, frame: Any, score: str, choose: Callable[[checks.LabelCounts], Sequence[str]]) -> Any:
        """Return such a frame with labels that are true for anomalies, chosen by how often each occurs."""

    def calibrate(
        self,
        df: Any,
        guarantee: Guarantee | Request | None = None,
        *,
        score: str = "score",
        label: str = "label",
        by: str | None = None,
        together: bool = False,
        pool: bool = False,
        kinds: str | None = None,
        review: str | None = None,
        audit: str | None = None,
        anomaly_label: object = 1,
        overlap: str | Overlap | None = None,
    ) -> Any:
        """Return the certificate of the columns of a frame, byte for byte that of `calibrate_labelled`.

        Spark computes the frame in three jobs or more, the first job only the first rows; `df.cache()` avoids
        this if it is expensive. Dask examines one partition and then makes one pass, or up to four if that
        partition is unlike the others. Only counts and a few scores around the thresholds come back.

        Groups and kinds are counted first. One shuffle brings the rows of each group together, and workers
        calibrate them; pac_wrap must be installed there. One row for each group comes back. All kinds are
        calibrated together, in a few more jobs or passes.

        Parameters
        ----------
        df : DataFrame of Spark or Dask
            The labelled points.
        score, label, by, kinds : str
            The columns of scores and labels, and of groups or kinds, if any; a class without any kind in its
            rows is not divided. The other parameters are those of `calibrate_labelled`.
        review, audit : str
            For promises about traffic, which needs no labels: the columns of what reviews found (1, 0 or
            missing) and of the points that a coin drew for audit (1 or 0), if any; see `calibrate_traffic`.

        Examples
        --------
        >>> import dask.dataframe as dd
        >>> from pac_wrap.engines.dask import calibrate
        >>> columns = {"score": range(1000), "label": [0] * 500 + [1] * 500, "parity": ["even", "odd"] * 500}
        >>> df = dd.from_dict(columns, npartitions=4)
        >>> calibrate(df).regime.value, sorted(calibrate(df, by="parity").groups)
        ('separated', ['even', 'odd'])
        """
        if is_traffic(guarantee, review, audit, by=by, kinds=kinds, overlap=overlap):
            return self.certified_traffic(df, checks.TrafficColumns(score, review, audit), guarantee)
        asked = request_of_columns(guarantee, overlap, anomaly_label, by, together, pool, kinds)
        return self.certified(df, [one for one in (score, label, by, kinds) if one is not None], *asked)

    def certified_traffic(self, df: Any, columns: checks.TrafficColumns, guarantee: object) -> Certificate:
        self.check(df, [columns.score], columns.marks)
        columns.check(list(df.columns))
        return certify_traffic(*self.traffic(df, columns), guarantee, columns.audit is not None)

    def certify_curve(
        self,
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
        """Return the curve of two columns of a frame, byte for byte that of `pac_wrap.certify_curve`.

        Parameters
        ----------
        df, score, label : DataFrame of Spark or Dask and str
            The labelled points and the names of their columns. The rest is as in `pac_wrap.certify_curve`.

        Examples
        --------
        >>> import dask.dataframe as dd
        >>> from pac_wrap.engines.dask import certify_curve
        >>> df = dd.from_dict({"score": range(1000), "label": [0] * 900 + [1] * 100}, npartitions=4)
        >>> certify_curve(df).at(900.0).fnr.ceiling < 0.1
        True
        """
        request = CurveRequest(delta_fpr, delta_fnr, anomaly_label, top_fpr, top_fnr)
        return cast(Curve, self.certified(df, (score, label), request, anomaly_label))

    def certified(
        self, df: Any, columns: Names, request: Any, anomaly_label: object = 1, called: str = ""
    ) -> Any:
        """Return the certificate for a request, from columns of scores and labels, and of groups or kinds."""
        score, label, *third = columns
        by_group = isinstance(request, GroupRequest)
        self.check(df, [score], [label], third if by_group else ())
        require_columns(third, list(df.columns))
        checks.require_two(score, label)
        for name in third:
            checks.refuse_as_third(name, (score, label), "group" if by_group else "kind")
        if by_group:
            return certify_any(self.grouped(df, columns, anomaly_label), request)
        return certify_any(self.source(df, columns, anomaly_label, called), request)

    def decide(
        self, df: Any, certificate: AnyCertificate, *, score: str = "score", group: str | None = None
    ) -> Any:
        """Return the frame with the columns `verdict` and `prediction_set`, not yet computed.

        Missing scores get the verdict abstain. If the scores have a narrower type than the certificate, which
        may change verdicts, a `PrecisionWarning` says so. A certificate of groups needs the column `group`;
        groups that were never seen get abstain, and scores of a narrower type are refused. Spark decides by
        expressions of its own, and joins the rules of groups.

        Parameters
        ----------
        df : DataFrame of Spark or Dask
            The points.
        certificate : Certificate or GroupCertificate
            The certificate whose rule decides.
        score, group : str
            The column of scores, and the column of groups for a certificate of groups.

        Examples
        --------
        >>> import dask.dataframe as dd
        >>> from pac_wrap.engines.dask import calibrate, decide
        >>> df = dd.from_dict({"score": range(1000), "label": [0] * 900 + [1] * 100}, npartitions=4)
        >>> list(decide(df, calibrate(df)).columns)
        ['score', 'label', 'verdict', 'prediction_set']
        """
        if not isinstance(certificate, AnyCertificate):
            raise InputError(
                f"certificate must be a Certificate or a GroupCertificate, got {quoted(certificate)}; load"
                " a file with Certificate.load or GroupCertificate.load"
            )
        by_group = isinstance(certificate, GroupCertificate)
        if by_group != (group is not None):
            which = "of groups: name their column" if by_group else "of no groups: leave the column out"
            raise InputError(f"the certificate is {which}, with group")
        self.check(df, numbers=[score], groups=[group] if by_group else [])
        checks.refuse_added(df.columns, checks.ADDED)
        kind = self.score_type(df, score)
        if isinstance(certificate, GroupCertificate):
            checks.refuse_narrower(kind, certificate, score)
        # nothing is computed yet, so it is unknown whether such a score occurs
        elif values := certificate.undecidable(kind):
            warn(
                f"column {score!r} holds {kind} scores, but the certificate needs {certificate.score_type}:"
                f" scores rounded to {' or '.join(map(repr, values))} may get the wrong verdict; use"
                f" unrounded scores, or calibrate on {kind} scores",
                PrecisionWarning,
            )
        return self.decided(df, certificate, score, group)

    def score(
        self, df: Any, detector: Any, *, features: Sequence[str] | None = None, score: str = "score"
    ) -> Any:
        """Return the frame with a column of anomaly scores, not yet computed; higher is more anomalous.

        The features are the columns on which the detector was fitted if it stores their names, else all
        columns of numbers. Spark passes them as float64.

        Parameters
        ----------
        df : DataFrame of Spark or Dask
            The rows.
        detector : object
            The fitted detector that gives the scores, or a PACWrap around it.
        features : sequence of str, optional
            The columns that the detector gets.
        score : str
            The name of the new column.

        Examples
        --------
        >>> import dask.dataframe as dd
        >>> from pac_wrap.engines.dask import score
        >>> df = dd.from_dict({"score": range(1000), "label": [0] * 900 + [1] * 100}, npartitions=4)
        >>> list(score(df, lambda X: -X[:, 0], features=["score"], score="turned").columns)
        ['score', 'label', 'turned']
        """
        self.check(df)
        if features is None:
            features = list(detector.feature_names_in_ if knows_names(detector) else self.numbers(df))
        self.check(df, numbers=features)
        checks.refuse_added(df.columns, [score])
        wanted = getattr(detector, "n_features_in_", len(features)) or 0
        if len(features) != wanted or not features:
            got = ", ".join(map(str, features)) or "no column holds numbers"
            raise InputError(
                f"the detector was fitted on {wanted or 'some'} features, got {len(features)}: {got}; name"
                " its columns with features"
            )
        return self.scored(df, detector, list(features), score)


def import_package(name: str, extra: str) -> ModuleType:
    """Return the module with this name; if it is missing, the error names the extra that installs it."""
    try:
        return import_module(name)
    except ImportError as error:
        missing = (error.name or name).split(".")[0]
        raise MissingExtraError(
            f'{missing} is not installed; run pip install "pac-wrap-ad[{extra}]"'
        ) from error


def require_columns(wanted: Sequence[Any], columns: Sequence[Any]) -> None:
    """Refuse a frame that does not have each of the columns exactly once."""
    for name in wanted:
        if name not in columns:
            checks.require_columns([str(name)], map(str, columns))
        if list(columns).count(name) > 1:
            raise InputError(f"there are two columns named {name!r}; rename one of them")


def knows_names(detector: Any) -> bool:
    """Return whether a detector was fitted on a frame, and so needs the names of its columns."""
    return getattr(detector, "feature_names_in_", None) is not None


def scorer(detector: Any) -> Callable[[Any], Scores]:
    """Return the function that turns rows into scores: that of a fitted detector, or of a PACWrap."""
    # here, since they load scikit-learn, which calibrating does not need
    from pac_wrap.detectors.scores import AnomalyScorer, anomaly_scores

    own = isinstance(detector, AnomalyScorer)
    return detector.decision_function if own else partial(anomaly_scores, detector)
