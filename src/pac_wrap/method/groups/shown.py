"""How a certificate of groups shows itself: in words, as a report, and in a notebook."""

import os
from typing import Any

from numpy.typing import ArrayLike

from pac_wrap.method.groups.values import GroupColumn


class ShownGroups:
    """What a certificate of groups can show of itself; a part of `GroupCertificate`."""

    __slots__ = ()

    def report(
        self,
        path: str | os.PathLike[str],
        scores: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        groups: GroupColumn | None = None,
        *,
        anomaly_label: object = 1,
        detector: str | None = None,
        measured: Any = None,
    ) -> None:
        """Write a report: one HTML page that can be passed on, or Markdown or JSON, by the name of the file.

        Parameters
        ----------
        path : str or path
            The file: .html, .md or .json.
        scores, labels, groups : array-like, optional
            What the certificate was made from, which it does not keep; with them the page draws the scores of
            the worst groups.
        anomaly_label : object
            The label that marks an anomaly.
        detector : str, optional
            What the detector is called.
        measured : GroupMeasured, optional
            What `evaluate` gives for labelled points that were not used to calibrate.

        Raises
        ------
        InputError
            If the format is unknown, or the scores are not those the certificate was made from: how many
            each group has, and the digests of those drawn.
        """
        from pac_wrap.report.pages.formats import check_suffix
        from pac_wrap.report.pages.groups import page_of_groups, scores_by_group
        from pac_wrap.report.pages.parts import write_parts

        check_suffix(path)
        own: Any = self
        drawn = scores_by_group(own, scores, labels, groups, anomaly_label)
        write_parts(page_of_groups(own, drawn, detector, measured), path)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        from pac_wrap.report.pages.groups import notebook_of_groups

        return notebook_of_groups(self)  # type: ignore[arg-type]  # only a certificate has this part

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Sentences that say which groups are promised nothing, and why."""
        from pac_wrap.report.words.groups import diagnosis_of_groups

        return diagnosis_of_groups(self)  # type: ignore[arg-type]  # only a certificate has this part

    def __str__(self) -> str:
        from pac_wrap.report.words.groups import lines_of_groups

        lines = lines_of_groups(self)  # type: ignore[arg-type]  # as above
        return "\n".join(f"{name:<10} {text}" for name, text in lines)
