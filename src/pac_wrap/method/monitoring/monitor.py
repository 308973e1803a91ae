"""The monitor: batch after batch it watches whether a certificate still keeps its promises."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import log
from threading import RLock
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    Scores,
    as_anomaly_mask,
    as_array,
    as_scores,
    check_aligned,
    check_rate,
    check_same_length,
)
from pac_wrap.base.codec import MOST_BYTES, checksum_of, decode, encode
from pac_wrap.base.files import held, write_whole
from pac_wrap.base.text import LONGEST, quoted
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method.certificates.certificate import Certificate, no_certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.metrics import as_verdicts
from pac_wrap.method.monitoring.alarm import Alarm
from pac_wrap.method.monitoring.counted import Counts, Watch, watches_of
from pac_wrap.method.rule import Verdict
from pac_wrap.version import __version__


class Kept:
    """What a monitor does with its file; a part of `Monitor` and `GroupMonitor`.

    One thread at a time changes a monitor, and others wait. What it holds is replaced, never changed, so a
    copy goes its own way.
    """

    def __init__(self) -> None:
        self._turn = RLock()

    def __getstate__(self) -> dict[str, Any]:
        with self._turn:
            return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, facts: dict[str, Any]) -> None:
        vars(self).update(facts, _turn=RLock())

    def to_json(self) -> str:
        """Return everything that was seen as JSON text."""
        raise NotImplementedError

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Go on from a file."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that was seen as a JSON file that appears whole or not at all.

        Parameters
        ----------
        path : str or path
            The file.
        """
        write_whole(path, self.to_json())

    @contextmanager
    def on(self, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Go on from a file if there is one, and save there at the end; no other process may meanwhile.

        Parameters
        ----------
        path : str or path
            The file. If something goes wrong within, it stays as it was.

        Returns
        -------
        context manager
            It gives this monitor.

        Raises
        ------
        OutputError
            If another process holds the file, or it cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pac_wrap import Monitor, calibrate
        >>> certificate = calibrate(range(1000), range(2000, 3000))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for night in ("Monday", "Tuesday"):
        ...         with Monitor(certificate).on(f"{folder}/watch.json") as monitor:
        ...             _ = monitor.update([0, 0, 1], [0, 0, 1], id=night)
        >>> monitor.rows
        6
        """
        with held(path):
            if os.path.exists(path):
                self.load(path)
            yield self
            self.save(path)


Places = NDArray[np.int64]
# the mark of a row without a label; others are 0 and 1
UNLABELLED: Final = -1


class Batch(NamedTuple):
    """The rows of a batch, and the places of those that count.

    `points` are the rows that are not known to lack a score, `labelled` those of them that have a label, and
    `scores` the scores of all points, None if no scores were given.
    """

    verdicts: NDArray[np.int8]
    points: Places
    labelled: Places
    anomalous: NDArray[np.bool_]
    scores: Scores | None

    @property
    def unscored(self) -> int:
        """How many rows lack a score; certificates speak of points that have one, so they count nowhere."""
        return self.verdicts.size - self.points.size


def read_batch(
    verdicts: ArrayLike, labels: ArrayLike | None, scores: ArrayLike | None, anomaly_label: object
) -> Batch:
    """Return a batch, or refuse what is no verdict, no label or no score."""
    given = as_verdicts(verdicts)
    labelled, anomalous = np.empty(0, dtype=np.int64), np.empty(0, dtype=bool)
    if labels is not None:
        check_aligned("verdicts", verdicts, "labels", labels)
        values = (
            np.asarray(labels, dtype=object) if _is_plain(labels) else as_array(_filled(labels), "labels")
        )
        check_same_length("verdicts", given.size, "labels", values.size)
        labelled = np.flatnonzero(~_missing(values))
        known = values if labelled.size == values.size else values[labelled]
        anomalous = as_anomaly_mask(known, anomaly_label) if labelled.size else anomalous
    if scores is None:
        return Batch(given, np.arange(given.size), labelled, anomalous, None)
    check_aligned("verdicts", verdicts, "scores", scores)
    values = as_array(_filled(scores), "scores")
    check_same_length("verdicts", given.size, "scores", values.size)
    missing = _missing(values)
    counts = ~missing[labelled]
    known = as_scores(values[~missing] if missing.any() else values)
    return Batch(given, np.flatnonzero(~missing), labelled[counts], anomalous[counts], known)


def parts_of(batch: Batch, rows: Sequence[Places]) -> Iterator[Batch]:
    """Yield a batch of each of several choices of the rows of one, without scores."""
    marks = np.full(batch.verdicts.size, UNLABELLED, dtype=np.int8)
    marks[batch.labelled] = batch.anomalous
    counts = np.zeros(batch.verdicts.size, dtype=bool)
    counts[batch.points] = True
    for own in rows:
        labelled = np.flatnonzero(marks[own] != UNLABELLED)
        yield Batch(
            batch.verdicts[own], np.flatnonzero(counts[own]), labelled, marks[own][labelled] == 1, None
        )


def check_id(name: object) -> str:
    """Return the id of a batch, or refuse it."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST:
        raise InputError(f"id must be a text of 1 to {LONGEST} characters, got {quoted(name)}")
    return name


def _is_plain(values: Any) -> bool:
    return isinstance(values, list | tuple)


def _filled(values: Any) -> Any:
    """Return masked values as missing ones."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        given = values.data.astype(object)
        given[np.ma.getmaskarray(values)] = None
        return given
    return values


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where an array holds None, NaN or pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    return np.fromiter((_is_missing(value) for value in values.flat), dtype=bool, count=values.size)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither equal to itself nor not
        return True


_HEADER: Final = {"format": "pac-wrap monitor", "schema": 2}
# how many parts of the past are kept, and how many ids of batches
MOST_PARTS: Final = 256
MOST_IDS: Final = 1000


@dataclass(frozen=True, slots=True)
class MonitorState:
    """Everything that a monitor has to remember; `certificate` and `curve` are their checksums.

    `unscored` of the rows had no score.
    """

    certificate: str
    alpha: float
    rows: int
    batches: int
    watches: tuple[Watch, ...]
    unscored: int = 0
    alarms: tuple[Alarm, ...] = ()
    ids: tuple[str, ...] = ()
    step: int = 1
    curve: str | None = field(default=None, metadata={"optional": True})
    version: str = __version__

    def with_room(self, rows: int) -> "MonitorState":
        """Return the state with its past in steps so large that so many rows have room."""
        state = self
        while rows // state.step > MOST_PARTS:
            watches = tuple(watch.thinned() for watch in state.watches)
            state = replace(state, step=2 * state.step, watches=watches)
        return state

    def to_json(self) -> str:
        """Return the state as JSON text."""
        return encode(self, _HEADER)


def read_state(text: str | bytes, fresh: MonitorState) -> MonitorState:
    """Return the state in a text, if it is whole, possible, and one of the same monitor as a fresh one."""
    state = decode(MonitorState, text, _HEADER)
    for name in ("certificate", "curve"):
        if getattr(state, name) != getattr(fresh, name):
            raise CertificateError(
                f"the monitor belongs to another {name}; start a new one, or name the {name} that it watches"
            )
    if state.alpha != fresh.alpha:
        raise CertificateError(
            f"the monitor was started with alpha = {state.alpha!r}, not {fresh.alpha!r}; alpha cannot change:"
            " give the same, or start a new one"
        )
    problem = next(_problems(state, fresh), None)
    if problem is not None:
        raise CertificateError(f"the monitor contradicts itself: {problem}; start a new one")
    for watch, new in zip(state.watches, fresh.watches, strict=True):
        watch.on(new.bets, new.hull, new.noisy)
    return state


def after(ids: tuple[str, ...], name: str | None, late: bool, more: bool, batches: int) -> tuple[str, ...]:
    """Return the ids of batches after one more, or after more of the last; one fed before is refused.

    The late labels of a batch have its name too, once.
    """
    digest = None if name is None else id_digest(check_id(name), late)
    if more:
        if not batches or (digest is not None and ids[-1:] != (digest,)):
            raise InputError(f"more is for the batch that was fed last, which is not {quoted(name)}")
        return ids
    if digest is None:
        return ids
    if digest in ids:
        raise InputError(
            f"the batch {quoted(name)} was fed before; nothing of it is counted again; the rest of one that"
            " was cut short goes under another id"
        )
    return (*ids, digest)[-MOST_IDS:]


def id_digest(name: str, late: bool = False) -> str:
    """Return what is kept of the id of a batch, or of its late labels: 64 bits.

    >>> id_digest("2026-11-17")
    '749763b3c8999e0b'
    """
    return sha256(name.encode("utf-8", "surrogatepass") + b"\xff" * late).hexdigest()[:16]


def _problems(state: MonitorState, fresh: MonitorState) -> Iterator[str]:
    """Yield what does not fit together."""
    if [_kind(watch) for watch in state.watches] != [_kind(watch) for watch in fresh.watches]:
        yield "it does not watch what the certificate promises"
    counted = 0 <= state.unscored <= state.rows and state.batches >= 0
    if not counted or state.step < 1 or state.step & (state.step - 1):
        yield "a count is impossible"
        return
    parts = state.rows // state.step
    if parts > MOST_PARTS or any(len(watch.past) != parts for watch in state.watches):
        yield "its past does not fit its rows"
    if any(max(watch.n, *watch.began[::5]) > state.rows for watch in state.watches):
        yield "more is counted than there were rows"
    if len(state.ids) > min(MOST_IDS, state.batches):
        yield "it has more ids than batches"
    names = {watch.name: watch for watch in state.watches}
    for alarm in state.alarms:
        known = names.pop(alarm.watch, None)
        if known is None or not 0 < alarm.since <= alarm.row <= state.rows or not 0 < alarm.n <= known.n:
            yield "an alarm is of no watch, or of no row"
        elif alarm.log_wealth < -log(known.alpha) or not 0 <= alarm.count <= alarm.n:
            yield "an alarm is weaker than alarms are"


def _kind(watch: Watch) -> tuple[object, ...]:
    """Return what never changes in a watch."""
    sizes = len(watch.cells), len(watch.gains), len(watch.best), len(watch.began)
    return watch.name, watch.alpha, watch.delta, watch.ceiling, sizes


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
