"""The monitor: batch after batch it watches whether a certificate still keeps its promises."""

import os
from dataclasses import replace
from typing import Final, Self

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import check_rate
from pac_wrap.base.codec import MOST_BYTES, checksum_of
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
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


class Monitor(Kept):
    """Watches whether a certificate still keeps its promises, in batches of any size, forever.

    Each promise is watched by bets on a rate above its ceiling, whose wealth reaches 1/alpha with probability
    alpha at most, ever, as long as the ceiling is kept: eq. (84). So one may look after every row, and an
    alarm is no accident of looking often. `alpha` is shared equally among the promises, which need labels.
    Without labels, undecided points are watched where the certificate bounds them and, with a curve, all
    scores; each of these has an alpha of its own. The chance that the certificate or the curve was wrong from
    the start comes on top: `Watch.delta`.

    Which rows get a label must not depend on their scores or verdicts. With room for wrong labels, new ones
    are assumed to be wrong in no larger shares, which change with the prevalence. How rows are cut into
    batches changes nothing.

    Parameters
    ----------
    certificate : Certificate
        What is promised.
    curve : Curve, optional
        Bands of the scores of both classes, from `certify_curve`: then scores are watched without labels.
    alpha : float
        The chance of a false alarm, ever: of all promises together, and of each watch without labels.
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
            raise InputError(
                f"certificate must be a Certificate, got {type(certificate).__name__};"
                " load a file with Certificate.load"
            )
        if curve is not None and not isinstance(curve, Curve):
            raise InputError(f"curve must be a Curve, got {type(curve).__name__}; load one with Curve.load")
        alpha = check_rate("alpha", alpha)
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
    ) -> Alarm | None:
        """Take a batch of rows in the order in which they came; what is refused leaves all as it was.

        Parameters
        ----------
        verdicts : array-like of int
            1 (anomaly), 0 (normal) or -1 (abstain) for each row.
        labels : array-like, optional
            The label of each row; None, NaN or NA where there is none (yet).
        scores : array-like of float, optional
            The score of each row, for a monitor with a curve; NaN where there is none.
        id : str, optional
            The name of the batch. One of the last 1,000 names is refused if it comes again.
        late : bool
            Whether these rows were fed before without their labels. Then only the promises count them.
        more : bool
            Whether these rows go on with the batch that was fed last, under the same `id`.

        Returns
        -------
        Alarm or None
            The first alarm, whenever it was.

        Raises
        ------
        InputError
            If an array is none of its kind, or the batch was fed before.
        """
        ids = after(self._state.ids, id, more, self._state.batches)
        batch = read_batch(verdicts, labels, scores, self._anomaly_label)
        self._state = _took(self._state, batch, late, id)
        self._state = replace(self._state, batches=self._state.batches + (not more), ids=ids)
        return self.alarm

    def as_one_of_many(self, batch: Batch, late: bool, id: str | None, batches: int) -> "Monitor":
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

        Returns
        -------
        Monitor
        """
        other = self.copy()
        other._state = replace(_took(self._state, batch, late, id), batches=batches)
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
        self._state = read_state(text, self._state)
        return self

    def copy(self) -> "Monitor":
        """Return a monitor that has seen the same, and goes its own way from here."""
        other = object.__new__(Monitor)
        # a state is never changed, only replaced
        other.certificate, other._anomaly_label = self.certificate, self._anomaly_label
        other._state = self._state
        return other

    def __str__(self) -> str:
        lines = [f"{self.rows:,} rows in {self._state.batches:,} batches", *map(str, self.watches)]
        return "\n".join([*lines, *(map(str, self.alarms) if self.alarms else ["no alarm"])])


def _took(state: MonitorState, batch: Batch, late: bool, id: str | None) -> MonitorState:
    """Return the state after more rows; which batch they belong to is kept elsewhere."""
    rows = batch.verdicts.size
    state = state.with_room(state.rows + rows)
    marks = np.arange(state.step - state.rows % state.step, rows + 1, state.step, dtype=np.int64)
    alarmed = {alarm.watch for alarm in state.alarms}
    watches, alarms = [], list(state.alarms)
    for watch in state.watches:
        points = _points(watch, batch, late)
        fed, alarm = watch.fed(points, state.rows, marks, watch.name not in alarmed, id)
        watches.append(fed)
        alarms += [] if alarm is None else [alarm]
    return replace(
        state,
        rows=state.rows + rows,
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
        return batch.scored, watch.hull.cells(batch.scores)
    return np.arange(batch.verdicts.size), (batch.verdicts == Verdict.ABSTAIN).astype(np.int64)
