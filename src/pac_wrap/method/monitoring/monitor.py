"""The monitor of a certificate after deployment, and recalibration on new points."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from math import log
from threading import RLock
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments
from pac_wrap.base.codec import MOST_BYTES, MOST_SIGNS, checksum_of, content_of, encode, typed
from pac_wrap.base.files import held, write_whole
from pac_wrap.base.text import LONGEST, amount, quoted
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificate import Certificate, no_certificate
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.units import shares_of_units
from pac_wrap.method.groups.values import NEVER, Group, GroupColumn, text_of
from pac_wrap.method.metrics import as_verdicts
from pac_wrap.method.monitoring import alarm as watched
from pac_wrap.method.monitoring.alarm import Alarm, Counts, Points, Watch
from pac_wrap.method.monitoring.bets import SHARES_OF_UNITS
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.provenance import MOST_ANCESTORS, Lineage
from pac_wrap.method.rule import Verdict
from pac_wrap.method.traffic.calibrate import as_reviews, calibrate_traffic
from pac_wrap.version import __version__

_HEADER: Final = {"format": "pac-wrap monitor", "schema": 3}
_LARGEST_FILE: Final = 10**9
# how many points of the evidence's history are stored, and how many ids of batches
MOST_PARTS: Final = 256
MOST_IDS: Final = 1000
MOST_UNITS: Final = 5000
# which verdict on which label is an error
_ERRORS: Final = {"FPR": (0, Verdict.ANOMALY), "FNR": (1, Verdict.NORMAL)}
_NONE: Final = np.empty(0, dtype=np.int64)
# the mark of a row without a label; labels are 0 and 1
_UNLABELLED: Final = -1
_AGAIN: Final = "calibrate the new points as the old ones were"
# the remedy for a certificate of kinds
KINDS_APART: Final = (
    "a monitor cannot tell kinds apart, and each kind has its own ceiling; evaluate new labels by kind, or"
    " monitor a certificate without kinds"
)


class Batch(NamedTuple):
    """The verdicts of rows, whether each has a score, the labels (0, 1 or -1 for none), and the scores.

    Reviews of traffic are labels, too; `reviewed` tells whether all alarms have one. If rows are units,
    `shares` are the shares of errors of their normal and of their anomalous points.
    """

    verdicts: NDArray[np.int8]
    scored: NDArray[np.bool_]
    labels: NDArray[np.int8]
    scores: arguments.Scores | None = None
    reviewed: bool = False
    shares: NDArray[np.float64] | None = None

    def with_reviews(self, verdicts: ArrayLike, reviews: ArrayLike) -> "Batch":
        """Return the batch with the reviews of its alarms; it is refused while one has none."""
        arguments.check_aligned("verdicts", verdicts, "reviews", reviews)
        arguments.check_same_length("verdicts", self.verdicts.size, "reviews", np.size(reviews))
        labels, alarms = as_reviews(reviews, self.verdicts.size), self.verdicts == Verdict.ANOMALY
        if (waiting := np.flatnonzero(alarms & (labels == _UNLABELLED))).size:
            raise InputError(
                f"every alarm of a batch must be reviewed before the batch counts, got"
                f" {amount(waiting.size, 'alarm')} without a review, the first at position"
                f" {int(waiting[0])}; leave out reviews for now, and feed the batch again with late=True"
            )
        return self._replace(labels=labels, reviewed=True)

    def divided(self, watchers: Counts) -> Iterator[tuple[int, "Batch"]]:
        """Yield each unit with its part of the batch, without scores; `watchers` has the unit of each row."""
        order = np.argsort(watchers, kind="stable")
        found, starts = np.unique(watchers[order], return_index=True)
        for watcher, own in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            yield watcher, Batch(self.verdicts[own], self.scored[own], self.labels[own], None, self.reviewed)


def read_batch(
    verdicts: ArrayLike, labels: ArrayLike | None, scores: ArrayLike | None, anomaly_label: object
) -> Batch:
    """Return a batch of checked verdicts, labels and scores."""
    given, known = as_verdicts(verdicts), None
    scored, marks = np.ones(given.size, dtype=bool), np.full(given.size, _UNLABELLED, dtype=np.int8)
    if labels is not None:
        values, missing = _beside(verdicts, given.size, "labels", labels)
        if not missing.all():
            known_labels = values[~missing] if missing.any() else values
            marks[~missing] = arguments.as_anomaly_mask(known_labels, anomaly_label)
    if scores is not None:
        values, missing = _beside(verdicts, given.size, "scores", scores)
        known = arguments.as_scores(values[~missing] if missing.any() else values)
        scored, marks[missing] = ~missing, _UNLABELLED
    return Batch(given, scored, marks, known)


def _beside(
    verdicts: ArrayLike, size: int, name: str, column: ArrayLike
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return a column as long as the verdicts, and where it is masked or None, NaN or pandas' NA."""
    arguments.check_aligned("verdicts", verdicts, name, column)
    given: Any = column
    if isinstance(column, np.ma.MaskedArray) and np.ma.getmaskarray(column).any():
        given = column.data.astype(object)
        given[np.ma.getmaskarray(column)] = None
    plain = name == "labels" and isinstance(given, list | tuple)
    values = np.asarray(given, dtype=object) if plain else arguments.as_array(given, name)
    arguments.check_same_length("verdicts", size, name, values.size)
    if values.dtype.kind == "f":
        return values, np.asarray(np.isnan(values))
    if values.dtype.kind != "O":
        return values, np.zeros(values.shape, dtype=bool)
    return values, np.fromiter(map(_is_missing, values.flat), dtype=bool, count=values.size)


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither equal to itself nor not
        return True


@dataclass(frozen=True, slots=True)
class Member:
    """A unit that is monitored by itself: a group, a pool, or all rows of a certificate without groups.

    `place` is its number among the groups, `step` the number of rows between two stored values of the past.
    """

    place: int
    watches: tuple[Watch, ...]
    rows: int = 0
    unscored: int = 0
    step: int = 1
    alarms: tuple[Alarm, ...] = ()

    @property
    def past(self) -> tuple[int, ...]:
        """The rows at which `Watch.past` recorded the evidence: at most 256, in equal steps."""
        return tuple(range(self.step, self.rows + 1, self.step))

    def fed(self, batch: Batch, id: str | None, *, late: bool, together: bool) -> "Member":
        """Return the member after more rows."""
        rows, step, watches = self.rows + batch.verdicts.size, self.step, self.watches
        while rows // step > MOST_PARTS:
            step *= 2
            watches = tuple(watch.after(watch.placed, watch.past[1::2]) for watch in watches)
        marks = np.arange(step - self.rows % step, batch.verdicts.size + 1, step, dtype=np.int64)
        alarmed = {alarm.watch for alarm in self.alarms}
        fed, alarms, span = [], list(self.alarms), (self.rows, rows)
        for watch in watches:
            points, watching = _points(watch, batch, late), watch.name not in alarmed
            after, alarm = watch.fed(points, span, marks, watching=watching, together=together)
            fed.append(after)
            alarms += [] if alarm is None else [replace(alarm, id=id)]
        unscored = self.unscored + int(np.count_nonzero(~batch.scored))
        ordered = tuple(sorted(alarms, key=lambda alarm: alarm.row))
        return Member(self.place, tuple(fed), rows, unscored, step, ordered)

    def unwatched(self, asked: Guarantee) -> dict[str, str]:
        """Return the requested promises that are not monitored, and why no data could contradict them."""
        names = {watch.name for watch in self.watches}
        unseen = [one for one in asked.promises if watched.name_of(one) not in names]
        traffic, never = asked.of_traffic, "no data can contradict it"
        return {one.name: watched.why_unseen(one, traffic) or never for one in unseen}

    def problems(self, fresh: "Member") -> Iterator[str]:
        """Yield contradictions within the state, or with the state before any row."""

        def unchanged(watch: Watch) -> tuple[object, ...]:
            sizes = len(watch.cells), len(watch.gains), len(watch.best), len(watch.began)
            return watch.name, watch.alpha, watch.delta, watch.ceiling, sizes

        if [*map(unchanged, self.watches)] != [*map(unchanged, fresh.watches)]:
            yield "it does not monitor what the certificate promises"
        if not 0 <= self.unscored <= self.rows or self.step < 1 or self.step & (self.step - 1):
            yield "a count is impossible"
            return
        parts = self.rows // self.step
        if parts > MOST_PARTS or any(len(watch.past) != parts for watch in self.watches):
            yield "its past does not fit its rows"
        if any(max(watch.n, *watch.began[::5]) > self.rows for watch in self.watches):
            yield "more is counted than there were rows"
        names = {watch.name: watch for watch in self.watches}
        for alarm in self.alarms:
            known = names.pop(alarm.watch, None)
            if known is None or not 0 < alarm.since <= alarm.row <= self.rows or not 0 < alarm.n <= known.n:
                yield "an alarm belongs to no monitored quantity, or to no row"
            elif alarm.log_evidence < -log(known.alpha) or not 0 <= alarm.count <= alarm.n:
                yield "the evidence of an alarm is too weak for an alarm"


def _points(watch: Watch, batch: Batch, late: bool) -> Points:
    """Return the places of the rows that a monitored quantity counts, and the cell of each."""
    alarms = batch.verdicts == Verdict.ANOMALY
    if watch.name == "alarms":  # points without a score come, too, and raise none
        return (_NONE, _NONE) if late else (np.arange(alarms.size), alarms.astype(np.int64))
    if watch.name in watched.REVIEWED:
        counted = alarms if watch.name == "wrong alarms" else np.ones_like(alarms)
        places = np.flatnonzero(counted & batch.reviewed)
        return places, (alarms & (batch.labels == 0))[places].astype(np.int64)
    if watch.name in _ERRORS:
        label, error = _ERRORS[watch.name]
        if batch.shares is not None:
            places = np.flatnonzero(~np.isnan(batch.shares[label]))
            steps = SHARES_OF_UNITS if watch.units == "units" else (0.0, 1.0)
            return places, np.searchsorted(steps, batch.shares[label][places], side="right") - 1
        places = np.flatnonzero(batch.labels == label)
        return places, (batch.verdicts[places] == error).astype(np.int64)
    if late or (watch.hull is not None and batch.scores is None):
        return _NONE, _NONE
    places = np.flatnonzero(batch.scored)
    if watch.hull is not None and batch.scores is not None:
        return places, watch.hull.cells(batch.scores)
    return places, (batch.verdicts[places] == Verdict.ABSTAIN).astype(np.int64)


@dataclass(frozen=True, slots=True)
class MonitorState:
    """The stored state of a monitor; `certificate` and `curve` are checksums."""

    certificate: str
    alpha: float
    rows: int
    batches: int
    unseen: int
    unpromised: int
    ids: tuple[str, ...]
    members: tuple[Member, ...]
    curve: str | None = field(default=None, metadata={"optional": True})
    units: tuple[str, ...] | None = field(default=None, metadata={"optional": True})
    version: str = __version__


def _ids_after(
    ids: tuple[str, ...], name: str | None, late: bool, more: bool, batches: int
) -> tuple[str, ...]:
    """Return the ids of batches after one more, or more of the last; an id that was fed before is refused."""
    if name is not None and (not isinstance(name, str) or not 0 < len(name) <= LONGEST):
        raise InputError(f"id must be a text of 1 to {LONGEST} characters, got {quoted(name)}")
    digest = None
    if name is not None:  # 64 bits of an id are stored, and other bits of an id of late labels
        digest = sha256(name.encode("utf-8", "surrogatepass") + b"\xff" * late).hexdigest()[:16]
    if more and (not batches or (digest is not None and ids[-1:] != (digest,))):
        raise InputError(f"more is for the batch that was fed last, which is not {quoted(name)}")
    if more or digest is None:
        return ids
    if digest in ids:
        raise InputError(
            f"the batch {quoted(name)} was fed before, so it is not counted again; give the rest of an"
            " incomplete batch another id"
        )
    return (*ids, digest)[-MOST_IDS:]


def _units_after(seen: tuple[str, ...], names: list[Any], late: bool) -> tuple[str, ...]:
    """Return the digests of units after more of them; a unit that was counted before is refused."""
    digests, before = [], set(seen)
    for name in names:
        text = str(text_of(name)).encode("utf-8", "surrogatepass")
        digests.append(sha256(text + b"\xff" * late).hexdigest()[:16])
        if digests[-1] in before:
            raise InputError(
                f"unit {quoted(name)} was counted before, so it is no new draw; feed all rows of a unit in"
                " one batch, and give what is independent a name of its own, such as the day of a machine"
            )
    return (*seen, *digests)[-MOST_UNITS:]


class Monitor:
    """Monitor after deployment whether a certificate still keeps its promises, and raise alarms.

    A monitor collects evidence that a rate exceeds its ceiling, and raises an alarm when the evidence reaches
    1/alpha. While the ceiling holds, an alarm ever occurs with probability at most alpha, eq. (84), so you
    may look after every row, for as long as you like. FPR and FNR need labels. Without labels, the monitor
    checks the share of undecided points, if the certificate bounds it, and with a curve the scores. All these
    quantities share `alpha` equally: eq. (129). The chance that the certificate or the curve was wrong from
    the start comes on top: `Watch.delta`.

    Neither the choice of labelled rows nor the order in which labels arrive may depend on scores or verdicts.
    If the order does, feed whole batches with `together`. Otherwise batches may be cut anywhere. If the
    certificate tolerates label noise, new labels are assumed to be no noisier; label noise changes with the
    prevalence. Rows without a score are not counted. Several threads may feed one monitor.

    A certificate of traffic needs `reviews` of alarms instead of labels: eq. (150). Points that raise no
    alarm need none. The rows of a batch count together, and false alarms once all its alarms are reviewed.
    Feed all batches, also those without an alarm, in the order in which they came.

    A certificate made with units needs the `units` of rows, and its rows and alarms count units: eq. (154).

    Each group of a `GroupCertificate` is monitored by itself, and the groups share alpha equally. The groups
    of a pool are monitored together: their rows must come mixed, in the shares of the calibration. Groups
    without a promise and new groups are not monitored; `unpromised` and `unseen` count their rows.

    Parameters
    ----------
    certificate : Certificate or GroupCertificate
        The promises to monitor; at least one must be certified.
    curve : Curve, optional
        A curve from `certify_curve`, to monitor scores without labels; not for groups.
    alpha : float
        The chance that there is ever a false alarm, over all monitored quantities together.
    anomaly_label : object
        The label that marks an anomaly.

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
        certificate: Certificate | GroupCertificate,
        curve: Curve | None = None,
        alpha: float = 0.01,
        *,
        anomaly_label: object = 1,
    ) -> None:
        if not isinstance(certificate, Certificate | GroupCertificate):
            raise no_certificate(certificate)
        if isinstance(certificate, Certificate) and certificate.by_kind:
            raise InputError(f"certificate must be without kinds; {KINDS_APART}")
        if curve is not None and not isinstance(curve, Curve):
            raise InputError(f"curve must be a Curve, got {type(curve).__name__}; load one with Curve.load")
        self._turn = RLock()
        self.certificate, self._curve, self._anomaly_label = certificate, curve, anomaly_label
        self.alpha = arguments.check_rate("alpha", alpha)
        self._ids: tuple[str, ...] = ()
        self._units: tuple[str, ...] = ()
        self.rows = self.batches = self.unseen = self.unpromised = 0
        self._members: dict[int, Member] = {}
        self.table = certificate if isinstance(certificate, GroupCertificate) else None
        self.asked = certificate.asked if isinstance(certificate, GroupCertificate) else certificate.guarantee
        self.in_units = certificate if isinstance(certificate, Certificate) and certificate.units else None
        if self.table is None:
            self._watchers, self.size = np.zeros(1, dtype=np.int64), 1
            self._members[0] = self._fresh(0)
            return
        if curve is not None:
            raise InputError("a curve is for a certificate without groups; remove it")
        # the unit that monitors each group, and last that of an unseen group; the pool comes after all groups
        pooled, count = self.table.pooled, len(self.table.groups)
        units = np.where(pooled, count, np.arange(count))
        self._watchers = np.append(np.where(self.table.columns.watchable | pooled, units, NEVER), NEVER)
        self.size = int(np.unique(self._watchers[self._watchers >= 0]).size)
        if not self.size:
            raise InputError("no group has a promise, so nothing can be monitored; label more points")

    def __getstate__(self) -> dict[str, Any]:
        with self._turn:
            return {name: value for name, value in vars(self).items() if name != "_turn"}

    def __setstate__(self, facts: dict[str, Any]) -> None:
        vars(self).update(facts, _turn=RLock())

    @property
    def members(self) -> dict[tuple[Group, ...], Member]:
        """The monitored groups that occurred: the key of a pool has several groups, that of all rows none."""
        return {self._groups(place): member for place, member in sorted(self._members.items())}

    @property
    def alarm(self) -> Alarm | None:
        """The first alarm, or None; with groups, that of the first group that has one."""
        return next(iter(self.alarms), None)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """All alarms, at most one of each kind per group, by group and then in the order they came."""
        alarmed = sorted((place, one.alarms) for place, one in self._members.items() if one.alarms)
        return tuple(alarm.of(self._groups(place)) for place, alarms in alarmed for alarm in alarms)

    @property
    def watches(self) -> tuple[Watch, ...]:
        """The monitored quantities of all groups that occurred, each with its counts and its evidence."""
        return tuple(watch for member in self.members.values() for watch in member.watches)

    @property
    def unscored(self) -> int:
        """How many rows had no score; they are not counted."""
        return sum(member.unscored for member in self._members.values())

    @property
    def points(self) -> int:
        """How many points were counted over all monitored quantities; while it is 0, nothing is known."""
        return sum(watch.n for member in self._members.values() for watch in member.watches)

    def update(
        self,
        verdicts: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        reviews: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        units: GroupColumn | None = None,
        scores: ArrayLike | None = None,
        id: str | None = None,
        late: bool = False,
        more: bool = False,
        together: bool | None = None,
    ) -> Alarm | None:
        """Add a batch of rows in the order in which they came, and return the first alarm so far, if any.

        A batch that raises an error changes nothing.

        Parameters
        ----------
        verdicts : array-like of int
            1 (anomaly), 0 (normal) or -1 (abstain) for each row.
        labels : array-like, optional
            The label of each row; None, NaN or NA for a row without a label (so far).
        reviews : array-like, optional
            For a certificate of traffic: 1 (right) or 0 (wrong) for each alarm; other rows may have none.
        groups : array-like, optional
            The group of each row, if the certificate has groups.
        units : array-like, optional
            The unit of each row, if the certificate was made with units. A unit counts once, with all of its
            rows in this batch, so a batch must hold the whole of it. A unit that comes again, among the last
            5,000, raises an error.
        scores : array-like of float, optional
            The score of each row; NaN for a row without one. A monitor with a curve needs scores.
        id : str, optional
            The name of the batch. The name of one of the last 1,000 batches raises an error, except once
            with `late`.
        late : bool
            Whether these rows were fed before without their labels or reviews, which alone count now.
        more : bool
            Whether these rows continue the batch that was fed last, under the same `id`.
        together : bool, optional
            Whether all rows of the batch, or of each group in it, count together, whatever their order: eq.
            (130); by default, those of traffic do. The choice of rows in the batch must not depend on their
            scores or verdicts: take, for example, all labels of a day once they are complete. An alarm then
            comes at the end of the batch.

        """
        places = self._places(verdicts, groups)
        if (labels if self.asked.of_traffic else reviews) is not None:
            raise InputError("reviews are for a certificate of traffic, and labels for any other; swap them")
        batch = read_batch(verdicts, labels, scores, self._anomaly_label)
        fed: list[Any] = []
        if (units is None) != (self.in_units is None):
            raise InputError(
                "the monitored certificate was made without units; remove units"
                if self.in_units is None
                else "the monitored certificate was made with units; pass the unit of each row as units"
            )
        if units is not None and self.in_units is not None:
            shares, names = shares_of_units(self.in_units, batch.verdicts, batch.labels, units, verdicts)
            fed = [name for name, own in zip(names, shares.T, strict=True) if not np.isnan(own).all()]
            none = np.zeros(shares.shape[1], dtype=np.int8)
            batch = Batch(none, none == 0, none, shares=shares)
        if reviews is not None:
            batch = batch.with_reviews(verdicts, reviews)
        rows, unseen, unpromised = batch.verdicts.size, 0, 0
        parts: list[tuple[int, Batch]] = [(0, batch)]
        if places is not None:
            arguments.check_same_length("verdicts", rows, "groups", places.size)
            watchers = self._watchers[places]
            unseen = int(np.count_nonzero(places == NEVER))
            unpromised = int(np.count_nonzero(watchers == NEVER)) - unseen
            parts = [part for part in batch.divided(watchers) if part[0] != NEVER]
        with self._turn:
            ids = _ids_after(self._ids, id, late, more, self.batches)
            seen = _units_after(self._units, fed, late)
            if more and together:
                raise InputError(
                    "rows that count together must be one batch; give all of them at once, without more"
                )
            # members are replaced, never changed, so that copies are independent
            members = dict(self._members)
            for place, own in parts:
                member = members.get(place) or self._fresh(place)
                whole = self.asked.of_traffic if together is None else together
                members[place] = member.fed(own, id, late=late, together=whole)
            self._members, self._ids, self._units = members, ids, seen
            self.rows, self.batches = self.rows + rows, self.batches + (not more)
            self.unseen, self.unpromised = self.unseen + unseen, self.unpromised + unpromised
            return self.alarm

    def to_json(self) -> str:
        """Return the state of the monitor as JSON text: a few kilobytes for each group that occurred."""
        with self._turn:
            return encode(self._state(), _HEADER)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state of the monitor as a JSON file, which appears complete or not at all.

        Parameters
        ----------
        path : str or path
            The file to write.
        """
        write_whole(path, self.to_json())

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Continue from a file, as if there had been no interruption, and return this monitor.

        Parameters
        ----------
        path : str or path
            A file that `save` wrote, for the same certificate, curve and alpha; others raise an error.
        """
        with open(path, "rb") as file:
            return self.resumed(file.read(min(MOST_BYTES * self.size, _LARGEST_FILE) + 1))

    def resumed(self, text: str | bytes) -> Self:
        """Continue from a text that `to_json` returned, as from a file, and return this monitor.

        Parameters
        ----------
        text : str or bytes
            The text of the state.
        """
        signs = {sign: most * self.size for sign, most in MOST_SIGNS.items()}
        most = min(MOST_BYTES * self.size, _LARGEST_FILE)
        content = content_of(text, _HEADER, "monitor", most, signs)
        state: MonitorState = typed(MonitorState, content, "monitor")
        mine = self._state()
        for name in ("certificate", "curve"):
            if getattr(state, name) != getattr(mine, name):
                raise CertificateError(
                    f"the monitor belongs to another {name}; start a new one, or pass the {name} that it"
                    " monitors"
                )
        if state.alpha != self.alpha:
            raise CertificateError(
                f"the monitor was started with alpha = {state.alpha!r}, not {self.alpha!r}; alpha cannot"
                " change: give the same, or start a new one"
            )
        problem = next(self._problems(state), None)
        if problem is not None:
            raise CertificateError(f"the monitor contradicts itself: {problem}; start a new one")
        with self._turn:
            self._members = {member.place: member for member in state.members}
            self._ids, self._units = state.ids, state.units or ()
            self.rows, self.batches = state.rows, state.batches
            self.unseen, self.unpromised = state.unseen, state.unpromised
        return self

    @contextmanager
    def on(self, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Return a context that continues from a file, if it exists, and saves to it at the end.

        Parameters
        ----------
        path : str or path
            The file, locked for other processes meanwhile. After an error in the context it is unchanged.
        """
        with held(path):
            if os.path.exists(path):
                self.load(path)
            yield self
            self.save(path)

    def __str__(self) -> str:
        rows = amount(self.rows, "row" if self.in_units is None else "unit")
        head = f"{rows} in {self.batches:,} batch{'es' * (self.batches != 1)}"
        if self.table is None:
            member = self._members[0]
            head += f", {self.unscored:,} of them without a score" if self.unscored else ""
            lines = [*map(str, member.watches)]
            unwatched = member.unwatched(self.asked).items()
            lines += [f"not monitored: {name}, since {why}" for name, why in unwatched]
        else:
            head += f"; {len(self._members):,} of {self.size:,} monitored groups occurred"
            lines = [*self.notes]
            lines += ["rows of alarms are counted within their group"] if self.alarms else []
        # without any point, the absence of an alarm means nothing
        quiet = "no alarm" if self.points else "no point was counted, so nothing is known"
        return "\n".join([head, *lines, *(map(str, self.alarms) if self.alarms else [quiet])])

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about rows and promises of groups that are not monitored."""
        partly = sum(bool(member.unwatched(self.asked)) for member in self._members.values())
        told = {
            f"not monitored: {amount(self.unscored, 'row')} without a score": self.unscored
            * (not self.asked.of_traffic),
            f"not monitored: {amount(self.unseen, 'row')} of groups never seen at calibration": self.unseen,
            f"not monitored: {amount(self.unpromised, 'row')} of groups without a promise": self.unpromised,
            f"monitored for one promise only: {amount(partly, 'group')}; the other cannot be broken": partly,
        }
        return tuple(sentence for sentence, count in told.items() if count)

    def _places(self, verdicts: ArrayLike, groups: ArrayLike | None) -> Counts | None:
        """Return the place of each row's group, None if the certificate has no groups."""
        if self.table is None:
            if groups is not None:
                raise InputError("the monitored certificate has no groups; remove groups")
            return None
        if groups is None:
            raise InputError("the monitored certificate has groups; pass the group of each row as groups")
        arguments.check_aligned("verdicts", verdicts, "groups", groups)
        return self.table.lookup.places(groups)

    def _fresh(self, place: int) -> Member:
        """Return the monitored unit at a place before any row: a group, the pool, or all rows."""
        one = self.certificate
        if isinstance(one, GroupCertificate):
            promised = one.pool if place == len(one.groups) else None
            one = promised or one.certificates[one.groups[place]]
        return Member(place, watched.watches_of(one, self._curve, self.alpha / self.size))

    def _groups(self, place: int) -> tuple[Group, ...]:
        """Return the groups that are monitored together at a place."""
        if self.table is None:
            return ()
        groups = self.table.groups
        if place < len(groups):
            return (groups[place],)
        return tuple(groups[one] for one in np.flatnonzero(self.table.pooled).tolist())

    @cached_property
    def _digests(self) -> tuple[str, str | None]:
        curve = None if self._curve is None else checksum_of(self._curve.bare.to_json())
        return checksum_of(self.certificate.bare.to_json()), curve

    def _state(self) -> MonitorState:
        certificate, curve = self._digests
        counts = self.rows, self.batches, self.unseen, self.unpromised
        members = tuple(member for _, member in sorted(self._members.items()))
        return MonitorState(certificate, self.alpha, *counts, self._ids, members, curve, self._units or None)

    def _problems(self, state: MonitorState) -> Iterator[str]:
        """Yield contradictions in a state, and give its quantities their bets."""
        places, lone = [member.place for member in state.members], self.table is None
        if len(set(places)) < len(places) or not set(places) <= set(self._watchers.tolist()) - {NEVER}:
            yield "it monitors groups without a promise"
            return
        if lone and not places:
            yield "it does not monitor what the certificate promises"
        apart = (state.unseen, state.unpromised, state.batches)
        if min(state.rows, *apart) < 0 or (lone and state.unseen + state.unpromised):
            yield "a count is impossible"
        for member in state.members:
            fresh = self._fresh(member.place)
            yield from member.problems(fresh)
            for watch, new in zip(member.watches, fresh.watches, strict=True):
                watch.on(new.hull, new.noisy, new.units)
        if sum(member.rows for member in state.members) + state.unseen + state.unpromised != state.rows:
            yield "the rows of its groups do not add up to its rows"
        if len(state.ids) > min(MOST_IDS, state.batches):
            yield "it has more ids than batches"
        if len(state.units or ()) > min(MOST_UNITS, state.rows * (self.in_units is not None)):
            yield "it has counted more units than there were"


def recalibrate(
    certificate: Certificate,
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    last: int | None = None,
    ledger: bool = True,
    anomaly_label: object = 1,
) -> Certificate:
    """Return a certificate for the same ceilings from new points; it names the certificate that it follows.

    A threshold that was read off a curve stays, and the new points bound both rates there. After an alarm,
    use points that came later: the points that raised the alarm were selected by their errors. Otherwise any
    window, or all points, will do, if it was chosen without looking at scores.

    Parameters
    ----------
    certificate : Certificate
        The certificate that the new one follows.
    scores, labels : array-like
        One score by the present detector, and one label, per new point; of traffic, one review or none.
    last : int, optional
        The number of points to use, counted from the end; by default all.
    ledger : bool
        Whether all certificates that follow each other share one delta, twice that of the first: the
        successors get a third of the first delta, a sixth, a tenth, and so on: eq. (92). Otherwise each has
        its own delta, and the chances that one of them fails add up. It cannot change within a lineage.
    anomaly_label : object
        The label that marks an anomaly.

    Returns
    -------
    Certificate
        The new certificate, with its `lineage`.

    Raises
    ------
    InputError
        If an argument has the wrong type, `ledger` differs from that of the lineage so far, or the strategy
        may certify more than its share of delta, as `Algorithm1(relax_delta=True)` does.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> first = calibrate(range(1000), range(2000, 3000))
    >>> scores, labels = [*range(2000), *range(3000, 5000)], [0] * 2000 + [1] * 2000
    >>> second = recalibrate(first, scores, labels)
    >>> round(first.guarantee.delta_fpr / second.guarantee.delta_fpr, 12), second.lineage.number
    (3.0, 1)
    """
    if not isinstance(certificate, Certificate):
        raise no_certificate(certificate, GroupCertificate=_AGAIN)
    traffic = certificate.traffic is not None
    if certificate.by_kind or (traffic and certificate.fnr.asked is not None):
        much = "kinds" if certificate.by_kind else "max_fnr of traffic"
        raise InputError(f"certificate must be without {much}; {_AGAIN}")
    arguments.check_aligned("scores", scores, "labels", labels)
    values = arguments.as_array(scores, "scores")
    marks = np.asarray(labels) if traffic else arguments.as_anomaly_mask(labels, anomaly_label)
    arguments.check_same_length("scores", values.size, "labels", marks.size)
    if last is not None:
        kept = arguments.check_positive("last", last)
        values, marks = values[-kept:], marks[-kept:]
    asked, place = successor(certificate, bool(ledger))
    if traffic:
        return replace(calibrate_traffic(values, marks, asked), lineage=place)
    made = calibrate(values[~marks], values[marks], asked, overlap=certificate.overlap)
    return replace(made, lineage=place)


def successor(certificate: Certificate, ledger: bool) -> tuple[Guarantee, Lineage]:
    """Return the guarantee and the lineage of the certificate that follows this one."""
    overlap = certificate.overlap
    if certificate.units is not None:
        raise InputError(f"certificate must be without units; {_AGAIN}")
    if not overlap.proved:
        raise InputError(
            f"the confidence of {overlap} is not guaranteed, so the deltas of certificates that follow each"
            " other do not add up; calibrate with a correction first"
        )
    if ledger and not overlap.keeps_delta:
        raise InputError(
            f"{overlap} may certify more than its share of delta, so certificates that follow each other"
            " cannot share one; give each its own, with ledger=False or --own-delta"
        )
    before, asked, digest = certificate.lineage, certificate.guarantee, certificate.checksum
    if before is None:
        place = Lineage(1, ledger, asked.delta_fpr, asked.delta_fnr, (digest,))
    elif before.ledger != ledger:
        so_far = "share one delta" if before.ledger else "each have their own delta"
        raise InputError(
            f"the certificates of this lineage {so_far}, which cannot change; pass ledger={before.ledger}, or"
            " start a new lineage with calibrate"
        )
    else:
        ancestors = (*before.ancestors, digest)[-MOST_ANCESTORS:]
        place = replace(before, number=before.number + 1, ancestors=ancestors)
    deltas = place.delta(place.delta_fpr), place.delta(place.delta_fnr)
    return replace(asked, delta_fpr=deltas[0], delta_fnr=deltas[1]), place
