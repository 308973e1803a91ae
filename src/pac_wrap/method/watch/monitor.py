"""The monitor: batch after batch it watches whether a certificate still keeps its promises."""

import os
from copy import copy
from dataclasses import replace
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.codec import MOST_BYTES, checksum_of
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate, no_certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.rule import Verdict
from pac_wrap.method.watch.alarm import Alarm
from pac_wrap.method.watch.batch import Batch, read_batch
from pac_wrap.method.watch.counted import Counts, Watch, watches_of
from pac_wrap.method.watch.kept import Kept
from pac_wrap.method.watch.state import MonitorState, after, read_state

# which verdict on which class is an error
_ERRORS: Final = {"FPR": (False, Verdict.ANOMALY), "FNR": (True, Verdict.NORMAL)}
_NONE: Final = np.empty(0, dtype=np.int64)
# the remedy for a certificate of kinds
KINDS_APART: Final = (
    "a monitor cannot tell kinds apart, and each has a ceiling of its own: evaluate new labels by kind, or"
    " watch a certificate that was made without kinds"
)


class Monitor(Kept):
    """Watches whether a certificate still keeps its promises, in batches of any size, forever.

    Each promise is watched by bets on a rate above its ceiling, whose wealth reaches 1/alpha with probability
    alpha at most, ever, as long as the ceiling is kept: eq. (84). So one may look after every row, and an
    alarm is no accident of looking often. Promises need labels. Without labels, undecided points are watched
    where the certificate bounds them and, with a curve, all scores. All watches share `alpha` equally, so it
    bounds the chance that any of them ever raises a false alarm: eq. (129). The chance that the certificate
    or the curve was wrong from the start comes on top: `Watch.delta`.

    Neither which rows get a label nor the order in which labels arrive may depend on scores or verdicts.
    Where the order may, feed whole batches with `together`. Otherwise, how rows are cut into batches changes
    nothing. With room for wrong labels, new ones are assumed to be wrong in no larger shares, which change
    with the prevalence. Rows without a score count nowhere. Several threads may feed one monitor.

    Parameters
    ----------
    certificate : Certificate
        What is promised.
    curve : Curve, optional
        Bands of the scores of both classes, from `certify_curve`: then scores are watched without labels.
    alpha : float
        The chance of a false alarm, ever, of all watches together.
    anomaly_label : object
        The label that marks an anomaly.

    Raises
    ------
    InputError
        If nothing is certified, or alpha does not lie strictly between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pac_wrap import Monitor, calibrate
    >>> rng = np.random.default_rng(0)
    >>> certificate = calibrate(rng.normal(size=1000), rng.normal(4, 1, size=1000))
    >>> monitor = Monitor(certificate)
    >>> for night in range(30):
    ...     scores = rng.normal(0.0 if night < 20 else 1.0, 1, size=500)  # the normal points drift in the end
    ...     _ = monitor.update(certificate.verdicts(scores), np.zeros(500), id=f"night {night}")
    >>> monitor.alarm.id, monitor.alarm.watch, monitor.alarm.since
    ('night 20', 'FPR', 10086)
    """

    def __init__(
        self,
        certificate: Certificate,
        curve: Curve | None = None,
        alpha: float = 0.01,
        *,
        anomaly_label: object = 1,
    ) -> None:
        if not isinstance(certificate, Certificate):
            raise no_certificate(
                certificate, GroupCertificate="use GroupMonitor", KindCertificate=KINDS_APART
            )
        if curve is not None and not isinstance(curve, Curve):
            raise InputError(f"curve must be a Curve, got {type(curve).__name__}; load one with Curve.load")
        alpha = check_rate("alpha", alpha)
        super().__init__()
        self.certificate, self._anomaly_label = certificate, anomaly_label
        self._state = MonitorState(
            certificate.checksum,
            alpha,
            rows=0,
            batches=0,
            watches=watches_of(certificate, curve, alpha),
            curve=None if curve is None else checksum_of(curve.bare.to_json()),
        )

    @property
    def alarm(self) -> Alarm | None:
        """The first alarm, None as long as there is none."""
        return next(iter(self._state.alarms), None)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms, the first of each watch, in the order in which they came."""
        return self._state.alarms

    @property
    def watches(self) -> tuple[Watch, ...]:
        """What is watched: how much was counted, and the wealth of each bet."""
        return self._state.watches

    @property
    def rows(self) -> int:
        """How many rows were fed, in all batches."""
        return self._state.rows

    @property
    def unscored(self) -> int:
        """How many of the rows had no score; they count nowhere."""
        return self._state.unscored

    @property
    def points(self) -> int:
        """How many points the watches have counted; as long as it is 0, nothing is known."""
        return sum(watch.n for watch in self.watches)

    @property
    def unwatched(self) -> tuple[str, ...]:
        """The promises that were asked for and are not watched, since nothing can contradict them."""
        watched = {watch.name for watch in self.watches}
        names = dict.fromkeys(one.name for one in self.certificate.guarantee.promises)
        return tuple(name for name in names if name not in watched)

    @property
    def alpha(self) -> float:
        """The chance of a false alarm that was asked for."""
        return self._state.alpha

    @property
    def past(self) -> tuple[int, ...]:
        """The rows at which the wealth of each watch was kept, `Watch.past`: at most 256, in equal steps."""
        step = self._state.step
        return tuple(range(step, self.rows + 1, step))

    def update(
        self,
        verdicts: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        scores: ArrayLike | None = None,
        id: str | None = None,
        late: bool = False,
        more: bool = False,
        together: bool = False,
    ) -> Alarm | None:
        """Take a batch of rows in the order in which they came; what is refused leaves all as it was.

        Parameters
        ----------
        verdicts : array-like of int
            1 (anomaly), 0 (normal) or -1 (abstain) for each row.
        labels : array-like, optional
            The label of each row; None, NaN or NA where there is none (yet).
        scores : array-like of float, optional
            The score of each row; NaN where there is none, and then the row counts nowhere. A monitor with a
            curve needs them.
        id : str, optional
            The name of the batch. One of the last 1,000 names is refused if it comes again, but once as that
            of late labels.
        late : bool
            Whether these rows were fed before without their labels. Then only the promises count them.
        more : bool
            Whether these rows go on with the batch that was fed last, under the same `id`.
        together : bool
            Whether all rows of the batch count together, whatever their order: eq. (130). Which rows make up
            the batch must not depend on their scores or verdicts: all labels of a day, say, once they are
            complete. An alarm then comes at the end of the batch.

        Returns
        -------
        Alarm or None
            The first alarm, whenever it was.

        Raises
        ------
        InputError
            If an array is none of its kind, the batch was fed before, or more of it is to count together.
        """
        batch = read_batch(verdicts, labels, scores, self._anomaly_label)
        with self._turn:
            state = self._state
            ids = after(state.ids, id, late, more, state.batches)
            refuse_parts(more, together)
            taken = _took(state, batch, late, id, together)
            self._state = replace(taken, batches=state.batches + (not more), ids=ids)
            return self.alarm

    def as_one_of_many(
        self, batch: Batch, late: bool, id: str | None, batches: int, together: bool
    ) -> "Monitor":
        """Return a monitor that has taken its rows of a batch of many; the ids are kept above.

        Parameters
        ----------
        batch : Batch
            Its rows.
        late : bool
            Whether they are labels of rows that were seen before.
        id : str or None
            The name of the batch.
        batches : int
            How many batches there were.
        together : bool
            Whether its rows count together.

        Returns
        -------
        Monitor
        """
        other = self.copy()
        other._state = replace(_took(self._state, batch, late, id, together), batches=batches)
        return other

    def to_json(self) -> str:
        """Return everything that was seen as JSON text: a few kilobytes, however many rows there were."""
        return self._state.to_json()

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Go on from a file, as if there had been no interruption.

        Parameters
        ----------
        path : str or path
            What `save` wrote, for the same certificate, curve and alpha.

        Returns
        -------
        Monitor
            This one.

        Raises
        ------
        CertificateError
            If the file is damaged, contradicts itself, or belongs to another certificate, curve or alpha.
        """
        with open(path, "rb") as file:
            return self.resumed(file.read(MOST_BYTES + 1))

    def resumed(self, text: str | bytes) -> Self:
        """Go on from what `to_json` gave, as if there had been no interruption.

        Parameters
        ----------
        text : str or bytes
            The text.

        Returns
        -------
        Monitor
            This one.
        """
        with self._turn:
            self._state = read_state(text, self._state)
        return self

    def copy(self) -> "Monitor":
        """Return a monitor that has seen the same, and goes its own way from here."""
        return copy(self)  # a state is never changed, only replaced

    def __str__(self) -> str:
        without = f", {self.unscored:,} of them without a score" if self.unscored else ""
        lines = [f"{self.rows:,} rows in {self._state.batches:,} batches{without}", *map(str, self.watches)]
        lines += [f"not watched: {name}, which nothing can contradict" for name in self.unwatched]
        return "\n".join([*lines, *(map(str, self.alarms) if self.alarms else [quiet(self.points)])])


def quiet(points: int) -> str:
    """Return what a monitor without an alarm says: to have seen nothing is not to have seen nothing wrong.

    >>> quiet(7), quiet(0)
    ('no alarm', 'no point was counted, so nothing is known')
    """
    return "no alarm" if points else "no point was counted, so nothing is known"


def refuse_parts(more: bool, together: bool) -> None:
    """Refuse a part of a batch where the whole batch counts together."""
    if more and together:
        raise InputError("rows that count together are one batch; give all of them at once, without more")


def _took(state: MonitorState, batch: Batch, late: bool, id: str | None, together: bool) -> MonitorState:
    """Return the state after more rows; which batch they belong to is kept elsewhere."""
    rows = batch.verdicts.size
    state = state.with_room(state.rows + rows)
    marks = np.arange(state.step - state.rows % state.step, rows + 1, state.step, dtype=np.int64)
    alarmed = {alarm.watch for alarm in state.alarms}
    watches, alarms = [], list(state.alarms)
    for watch in state.watches:
        points, watching = _points(watch, batch, late), watch.name not in alarmed
        if together:
            span = state.rows, state.rows + rows
            fed, alarm = watch.fed_together(points[1], span, marks, watching, id)
        else:
            fed, alarm = watch.fed(points, state.rows, marks, watching, id)
        watches.append(fed)
        alarms += [] if alarm is None else [alarm]
    return replace(
        state,
        rows=state.rows + rows,
        unscored=state.unscored + batch.unscored,
        watches=tuple(watches),
        alarms=tuple(sorted(alarms, key=lambda alarm: alarm.row)),
    )


def _points(watch: Watch, batch: Batch, late: bool) -> tuple[Counts, Counts]:
    """Return the places of the rows that are points of a watch, and the cells that they fall into."""
    if watch.name in _ERRORS:
        anomalous, error = _ERRORS[watch.name]
        places = batch.labelled[batch.anomalous == anomalous]
        return places, (batch.verdicts[places] == error).astype(np.int64)
    if late:
        return _NONE, _NONE
    if watch.hull is not None:
        return (_NONE, _NONE) if batch.scores is None else (batch.points, watch.hull.cells(batch.scores))
    return batch.points, (batch.verdicts[batch.points] == Verdict.ABSTAIN).astype(np.int64)
