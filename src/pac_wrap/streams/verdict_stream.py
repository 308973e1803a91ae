"""Verdicts for endless streams of scores: batches in, verdicts out, in constant memory."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import ON_MISSING, OnMissing, as_scores, check_choice, is_number, warn
from pac_wrap.errors import InputError, MissingScoreWarning
from pac_wrap.method.certificate import Certificate, no_certificate
from pac_wrap.method.monitoring.monitor import Monitor
from pac_wrap.method.rule import Rule, Verdict


class VerdictStream(Iterator[NDArray[np.int8]]):
    """The verdicts of a stream of scores: one int8 array for each batch, as `Certificate.verdicts` returns.

    A batch is read only when its verdicts are needed, so a slow reader slows the writer down, and at most one
    batch is in memory. `rows`, `normal`, `anomalous` and `abstained` count the verdicts so far, and `missing`
    counts the abstained points without a score. A refused batch is not counted, and the stream can continue
    with the next batch. Errors that `batches` raises are not caught.

    Parameters
    ----------
    rule : Certificate or Rule
        The certificate or rule that decides.
    batches : iterable of array-like
        The scores in batches; NaN is a missing score.
    on_missing : "abstain" or "stop"
        With "abstain", points without a score get the verdict abstain, and the first of them raises a
        `MissingScoreWarning`; with "stop", their batch is refused.
    monitor : Monitor, optional
        A monitor that receives the verdicts and scores of every batch.

    Raises
    ------
    InputError
        If rule or batches has the wrong type, if the monitor follows another rule, or, when a batch is read,
        if it does not hold scores.

    Examples
    --------
    >>> stream = VerdictStream(Rule(normal_below=0.3, anomaly_from=0.7), [[0.1, 0.5], [], [0.9]])
    >>> [verdicts.tolist() for verdicts in stream]
    [[0, -1], [], [1]]
    >>> stream
    VerdictStream(rows=3, normal=1, anomalous=1, abstained=1)
    """

    def __init__(
        self,
        rule: Certificate | Rule,
        batches: Iterable[ArrayLike],
        on_missing: OnMissing = "abstain",
        *,
        monitor: Monitor | None = None,
    ) -> None:
        check_choice("on_missing", on_missing, ON_MISSING)
        followed = rule.rule if isinstance(rule, Certificate) else rule
        if not isinstance(followed, Rule):
            raise no_certificate(
                rule,
                "rule must be a Certificate or a Rule",
                GroupCertificate="call its verdicts for each batch, with the groups",
            )
        try:
            self._batches = iter(batches)
        except TypeError as error:
            raise InputError(
                f"batches must be an iterable of arrays of scores, got {type(batches).__name__};"
                " pass a list or a generator of batches"
            ) from error
        if monitor is not None and not isinstance(monitor, Monitor):
            raise InputError(
                f"monitor must be a Monitor, got {type(monitor).__name__}; make one with Monitor(certificate)"
            )
        if monitor is not None:
            one = monitor.certificate
            watched = one.rule if isinstance(one, Certificate) else "groups"
            if watched != followed:
                raise InputError(
                    f"monitor must follow the rule that decides, {followed}, got one that follows {watched};"
                    " make it from the certificate that decides"
                )
        self._rule, self._on_missing, self._monitor = followed, on_missing, monitor
        self._pulled = 0
        self.normal = self.anomalous = self.abstained = self.missing = 0

    @property
    def rows(self) -> int:
        """The number of verdicts so far."""
        return self.normal + self.anomalous + self.abstained

    def __next__(self) -> NDArray[np.int8]:
        batch = next(self._batches)
        number = self._pulled
        self._pulled += 1
        try:
            scores = as_scores(batch, f"batch {number:,}", missing=self._on_missing == "abstain")
        except InputError as error:
            raise InputError(f"{error} (position {self.rows + _first_bad(batch):,} of the stream)") from error
        verdicts, missing = self._rule.decided(scores)
        if missing.size and not self.missing:
            warn(
                f"batch {number:,} has points without a score, the first at position"
                f" {self.rows + int(missing[0]):,} of the stream; they get the verdict abstain and count as"
                ' missing; on_missing="stop" refuses them',
                MissingScoreWarning,
            )
        anomalous = int(np.count_nonzero(verdicts == Verdict.ANOMALY))
        abstained = int(np.count_nonzero(verdicts == Verdict.ABSTAIN))
        self.normal += verdicts.size - anomalous - abstained
        self.anomalous += anomalous
        self.abstained += abstained
        self.missing += missing.size
        if self._monitor is not None:
            self._monitor.update(verdicts, scores=scores)
        return verdicts

    def __repr__(self) -> str:
        counts = f"normal={self.normal}, anomalous={self.anomalous}, abstained={self.abstained}"
        counts += f", missing={self.missing}" if self.missing else ""
        return f"{type(self).__name__}(rows={self.rows}, {counts})"


def _first_bad(batch: Any) -> int:
    """Return the position of the first value that is not a number, or 0 if the whole batch is wrong."""
    with suppress(Exception):  # whatever it is, it is refused already
        if np.ndim(batch) == 1:
            for position, value in enumerate(batch):
                if not isinstance(value, (bool, np.bool_)) and (not is_number(value) or value != value):
                    return position
    return 0
