"""A certificate on labelled scores, drawn in scikit-learn's manner."""

from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import Scores, as_anomaly_mask, as_scores, check_aligned, check_choice
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.metrics import Metrics, evaluate
from pac_wrap.report.figures.distributions import plot_boxes, plot_scores
from pac_wrap.report.figures.plan import plot_ambiguity, plot_plan
from pac_wrap.report.figures.rates import plot_held_out, plot_rates

if TYPE_CHECKING:
    from pac_wrap.detectors.estimator import PACWrap

Kind = Literal["scores", "boxes", "rates", "ambiguity", "held_out", "plan"]
_RATES = (0.01, 0.02, 0.05, 0.1, 0.2)


class CertificateDisplay:
    """A certificate, the scores it is shown on, and the figure of it.

    >>> from pac_wrap import calibrate_labelled
    >>> scores, labels = np.arange(400) / 100, np.repeat([0, 1], 200)
    >>> display = CertificateDisplay.from_scores(calibrate_labelled(scores, labels), scores, labels)
    >>> display.ax_.get_xlabel()
    'score (higher is more anomalous)'
    >>> display.plot("rates").ax_.get_ylabel()
    'error rate (% of class)'
    """

    ax_: Axes
    figure_: FigureBase

    def __init__(self, certificate: Certificate, normal: ArrayLike, anomalous: ArrayLike) -> None:
        self.certificate = certificate
        self.normal: Scores = as_scores(normal, "normal")
        self.anomalous: Scores = as_scores(anomalous, "anomalous")

    @classmethod
    def from_estimator(
        cls, wrap: "PACWrap", X: Any, y: ArrayLike, kind: Kind = "scores", **options: Any
    ) -> Self:
        """Return the display of a calibrated PACWrap on labelled rows, drawn."""
        check_aligned("X", X, "y", y)
        scores = wrap.decision_function(X)
        return cls.from_scores(
            wrap.certificate_, scores, y, kind, anomaly_label=wrap.anomaly_label, **options
        )

    @classmethod
    def from_scores(
        cls,
        certificate: Certificate,
        scores: ArrayLike,
        labels: ArrayLike,
        kind: Kind = "scores",
        *,
        anomaly_label: object = 1,
        **options: Any,
    ) -> Self:
        """Return the display of a certificate on labelled scores, drawn."""
        check_aligned("scores", scores, "labels", labels)
        given, mask = as_scores(scores), as_anomaly_mask(labels, anomaly_label)
        if given.size != mask.size:
            raise InputError(
                f"scores and labels must have the same length, got {given.size:,} and {mask.size:,}"
            )
        return cls(certificate, given[~mask], given[mask]).plot(kind, **options)

    @property
    def metrics(self) -> Metrics:
        """The rates of the certificate's verdicts on these scores."""
        scores = np.concatenate([self.normal, self.anomalous])
        labels = np.repeat([0, 1], [self.normal.size, self.anomalous.size])
        return evaluate(self.certificate.verdicts(scores), labels)

    def plot(
        self, kind: Kind = "scores", *, ax: Axes | None = None, dark: bool = False, **options: Any
    ) -> Self:
        """Draw one kind of figure and return the display."""
        check_choice("kind", kind, get_args(Kind))
        given: dict[str, Any] = {"ax": ax, "dark": dark, **options}
        match kind:
            case "scores":
                self.ax_ = plot_scores(self.certificate, self.normal, self.anomalous, **given)
            case "rates":
                self.ax_ = plot_rates(self.certificate, self.normal, self.anomalous, **given)
            case "boxes":
                self.ax_ = plot_boxes(self.certificate, normal=self.normal, anomalous=self.anomalous, **given)
            case "held_out":
                self.ax_ = plot_held_out(self.certificate, self.metrics, **given)
            case "ambiguity":
                given = {"rates": _RATES, "deltas": _RATES, **given}
                self.ax_ = plot_ambiguity(self.normal, self.anomalous, **given)
            case _:
                self.ax_ = plot_plan(**{"certificate": self.certificate, **given})
        self.figure_ = self.ax_.figure
        return self
