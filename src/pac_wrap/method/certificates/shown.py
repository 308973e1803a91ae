"""How a certificate shows itself: in words, as a report, as a figure, and in a notebook."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pac_wrap.method.alarms.precision import Prevalence
    from pac_wrap.method.metrics import Metrics


class Shown:
    """What a certificate can show of itself; a part of `Certificate`."""

    __slots__ = ()

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Sentences that say why the thresholds lie as they do, and which labels are missing."""
        from pac_wrap.report.sentences import diagnosis_of

        return diagnosis_of(self)  # type: ignore[arg-type]  # only a certificate has this part

    @property
    def shortfall(self) -> str | None:
        """What was asked for and is not promised, and what it would take; None if all of it is promised."""
        from pac_wrap.report.sentences import shortfall_of

        return shortfall_of(self)  # type: ignore[arg-type]  # as above

    def report(
        self,
        path: str | os.PathLike[str],
        normal: "ArrayLike | Mapping[str, ArrayLike] | None" = None,
        anomalous: "ArrayLike | Mapping[str, ArrayLike] | None" = None,
        *,
        prevalence: "Prevalence | None" = None,
        metrics: "Metrics | None" = None,
        detector: str | None = None,
    ) -> None:
        """Write a report: one HTML page that can be passed on, Markdown, JSON or a picture, by its name.

        Parameters
        ----------
        path : str or path
            The file: .html, .md or .json; .svg or .png with the scores.
        normal, anomalous : array-like of float, or mapping of kinds to such, optional
            The calibration scores of each class, which a certificate does not keep. With them the page shows
            both classes, and lets its reader choose another certified threshold.
        prevalence : float or pair of floats, optional
            The share of anomalies among future points; by default that of the calibration points.
        metrics : Metrics, optional
            Rates measured on points that were not used to calibrate; made by `evaluate`.
        detector : str, optional
            What the detector is called.

        Raises
        ------
        InputError
            If the scores are not those the certificate was made from, or the format is unknown.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> normal, anomalous = range(1000), range(900, 1900)
        >>> calibrate(normal, anomalous).report("report.pdf", normal, anomalous)
        Traceback (most recent call last):
        ...
        pac_wrap.errors.InputError: a report is written as .html, .md or .json, or drawn as .svg or .png, \
got 'report.pdf'; print the HTML file to get a PDF
        """
        from pac_wrap.report.render import write

        known: Any = {"metrics": metrics, "detector": detector, "prevalence": prevalence}
        write(self, path, normal, anomalous, **known)

    def plot(self, normal: ArrayLike, anomalous: ArrayLike, ax: "Axes | None" = None) -> "Axes":
        """Draw the scores of both classes with the thresholds; needs matplotlib.

        Parameters
        ----------
        normal, anomalous : array-like of float
            Scores of labelled points of each class.
        ax : Axes, optional
            Where to draw; by default a new figure, which a notebook shows.

        Returns
        -------
        Axes
            What was drawn on.

        Examples
        --------
        >>> from pac_wrap import calibrate
        >>> calibrate(range(1000), range(900, 1900)).plot(range(1000), range(900, 1900)).get_ylabel()
        'share of class (%)'
        """
        from pac_wrap.report.figures.scores import plot_scores

        return plot_scores(self, normal, anomalous, ax=ax)  # type: ignore[arg-type]  # as above

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from pac_wrap.report.render import notebook

        return notebook(self)

    def __str__(self) -> str:
        from pac_wrap.report.render import short

        return short(self)
