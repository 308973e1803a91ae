"""A monitor for each group of a certificate of groups, all under one alpha."""

import json
import os
from hashlib import sha256
from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import check_aligned, check_count, check_rate, check_same_length
from pac_wrap.base.codec import no_twins
from pac_wrap.base.text import quoted
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.values import NEVER, Group
from pac_wrap.method.metrics import as_verdicts
from pac_wrap.method.monitoring.alarm import Alarm
from pac_wrap.method.monitoring.monitor import Kept, Monitor, after, parts_of, quiet, read_batch, refuse_parts

_FORMAT: Final = "pac-wrap group monitor"
_SCHEMA: Final = 2
# what is counted over all groups
_COUNTS: Final = ("rows", "batches", "unseen", "unpromised")
_MOST_BYTES: Final = 10**9
_LONGEST_SHOWN: Final = 60


class GroupMonitor(Kept):
    """Watches the promises of all groups at once: a `Monitor` for each, under one alpha shared equally.

    Groups with too few labels that follow the rule of a pool are watched together, since the promise of the
    pool is about their mixture: their rows must come mixed, as often as at calibration, not sorted by group.
    A group with too few labels of one class is watched for the promise about the other class. Groups that are
    promised nothing, and groups never seen, are not watched; `unpromised` and `unseen` count their rows.
    Several threads may feed one monitor.

    Parameters
    ----------
    certificate : GroupCertificate
        What is promised, from `calibrate_groups`.
    alpha : float
        The chance that any watch of any group raises a false alarm, ever: eq. (129).
    anomaly_label : object
        The label that marks an anomaly.

    Raises
    ------
    InputError
        If no group is promised anything, or alpha does not lie strictly between 0 and 1.

    Examples
    --------
    >>> from pac_wrap import calibrate_groups
    >>> scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    >>> certificate = calibrate_groups(scores, labels, ["a"] * 200 + ["b"] * 200)
    >>> monitor = GroupMonitor(certificate)
    >>> monitor.update([1] * 20, ["b"] * 20, [0] * 20)
    >>> [(group, alarm.watch, alarm.row) for group, alarm in monitor.alarms]
    [('b', 'FPR', 3)]
    """

    def __init__(
        self, certificate: GroupCertificate, alpha: float = 0.01, *, anomaly_label: object = 1
    ) -> None:
        if not isinstance(certificate, GroupCertificate):
            raise InputError(
                f"certificate must be a GroupCertificate, got {type(certificate).__name__};"
                " for a certificate without groups use Monitor"
            )
        super().__init__()
        pooled = certificate.pooled
        self.certificate, self._anomaly_label = certificate, anomaly_label
        # the place of whoever watches each group, and last of one never seen; the pool is behind all groups
        watched = np.where(pooled, len(certificate.groups), np.arange(len(certificate.groups)))
        self._watchers = np.append(np.where(certificate.columns.watchable | pooled, watched, NEVER), NEVER)
        self.size = int(np.unique(self._watchers[self._watchers >= 0]).size)
        if not self.size:
            raise InputError("no group is promised anything, so nothing can be watched; label more points")
        self.alpha = check_rate("alpha", alpha)
        self._monitors: dict[int, Monitor] = {}
        self._ids: tuple[str, ...] = ()
        self.rows = self.batches = self.unseen = self.unpromised = 0

    @property
    def monitors(self) -> dict[Group | tuple[Group, ...], Monitor]:
        """The monitors of the groups that occurred so far; that of the pool under a tuple of its groups."""
        return {self._name(place): monitor for place, monitor in sorted(self._monitors.items())}

    @property
    def alarms(self) -> tuple[tuple[Group | tuple[Group, ...], Alarm], ...]:
        """Every alarm with its group; its rows are counted within the group."""
        return tuple((name, alarm) for name, one in self.monitors.items() for alarm in one.alarms)

    @property
    def alarm(self) -> tuple[Group | tuple[Group, ...], Alarm] | None:
        """The alarm of the first group that has one, None as long as none has."""
        return next(iter(self.alarms), None)

    def update(
        self,
        verdicts: ArrayLike,
        groups: ArrayLike,
        labels: ArrayLike | None = None,
        *,
        id: str | None = None,
        late: bool = False,
        more: bool = False,
        together: bool = False,
        scores: ArrayLike | None = None,
    ) -> None:
        """Take a batch of rows in the order in which they came; what is refused leaves all as it was.

        Parameters
        ----------
        verdicts : array-like of int
            1 (anomaly), 0 (normal) or -1 (abstain) for each row.
        groups : array-like
            The group of each row.
        labels : array-like, optional
            The label of each row; None, NaN or NA where there is none (yet).
        id : str, optional
            The name of the batch. One of the last 1,000 names is refused if it comes again, but once as that
            of late labels.
        late : bool
            Whether these rows were fed before without their labels.
        more : bool
            Whether these rows go on with the batch that was fed last, under the same `id`.
        together : bool
            Whether the rows of each group count together, whatever their order; see `Monitor.update`.
        scores : array-like of float, optional
            The score of each row; where it is NaN, the row counts nowhere.

        Raises
        ------
        InputError
            If an array is none of its kind, the batch was fed before, or more of it is to count together.
        """
        check_aligned("verdicts", verdicts, "groups", groups)
        given, places = as_verdicts(verdicts), self.certificate.lookup.places(groups)
        check_same_length("verdicts", given.size, "groups", places.size)
        if labels is not None:
            check_aligned("verdicts", verdicts, "labels", labels)
        batch = read_batch(given, labels, scores, self._anomaly_label)
        watchers = self._watchers[places]
        order = np.argsort(watchers, kind="stable")
        found, starts = np.unique(watchers[order], return_index=True)
        parts = parts_of(batch, np.split(order, starts[1:]))
        with self._turn:
            ids = after(self._ids, id, late, more, self.batches)
            refuse_parts(more, together)
            batches, monitors = self.batches + (not more), dict(self._monitors)
            for place, own in zip(found.tolist(), parts, strict=True):
                if place != NEVER:
                    before = monitors.get(place) or self._fresh(place)
                    monitors[place] = before.as_one_of_many(own, late, id, batches, together)
            unseen = int(np.count_nonzero(places == NEVER))
            self._monitors, self._ids, self.batches = monitors, ids, batches
            self.unseen, self.unpromised = (
                self.unseen + unseen,
                self.unpromised + int(np.count_nonzero(watchers == NEVER)) - unseen,
            )
            self.rows += given.size

    def to_json(self) -> str:
        """Return everything that was seen as JSON text."""
        facts = {"format": _FORMAT, "schema": _SCHEMA, "alpha": self.alpha, "certificate": self._digest}
        with self._turn:
            content = facts | {name: getattr(self, name) for name in _COUNTS}
            content["ids"] = list(self._ids)
            monitors = sorted(self._monitors.items())
        content["monitors"] = {str(place): one.to_json() for place, one in monitors}
        return json.dumps(content | {"checksum": _checksum(content)}) + "\n"

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Go on from a file, as if there had been no interruption.

        Parameters
        ----------
        path : str or path
            What `save` wrote, for the same certificate and alpha.

        Returns
        -------
        GroupMonitor
            This one.

        Raises
        ------
        CertificateError
            If the file is damaged, or belongs to another certificate or alpha.
        """
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
        try:
            content: Any = json.loads(text, object_pairs_hook=no_twins) if len(text) <= _MOST_BYTES else None
            sound = content.pop("checksum") == _checksum(content)
            facts = content["format"], content["schema"], content["alpha"], content["certificate"]
            places = {int(place): state for place, state in dict(content["monitors"]).items()}
            counts, ids = {name: content[name] for name in _COUNTS}, tuple(content["ids"])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CertificateError("this is no group monitor; is it the right file?") from error
        if facts != (_FORMAT, _SCHEMA, self.alpha, self._digest):
            raise CertificateError(
                "the group monitor belongs to another certificate, alpha or version; start a new one"
            )
        if not sound or not set(places) <= set(self._watchers.tolist()) - {NEVER}:
            raise CertificateError(
                "the group monitor was changed after it was written; go back to an older copy, or start again"
            )
        monitors = {place: self._fresh(place).resumed(state) for place, state in places.items()}
        for name in _COUNTS:
            check_count(name, counts[name])
        apart = counts["unseen"] + counts["unpromised"]
        if sum(one.rows for one in monitors.values()) + apart != counts["rows"]:
            raise CertificateError(
                "the group monitor contradicts itself: the rows of its groups are not its rows"
            )
        with self._turn:
            self._monitors, self._ids = monitors, ids
            vars(self).update(counts)
        return self

    def __str__(self) -> str:
        watched = f"{len(self._monitors):,} of {self.size:,} watched groups occurred"
        lines = [f"{called(name)}: {alarm}" for name, alarm in self.alarms]
        told = ["rows of alarms are counted within their group", *lines] if lines else [quiet(self.points)]
        head = f"{self.rows:,} rows in {self.batches:,} batches; {watched}"
        return "\n".join([head, *self.unwatched, *told])

    @property
    def points(self) -> int:
        """How many points the watches of all groups have counted; as long as it is 0, nothing is known."""
        return sum(one.points for one in self._monitors.values())

    @property
    def unwatched(self) -> tuple[str, ...]:
        """Sentences about what is not watched: rows without a score or a promise, and promises of groups."""
        unscored = sum(one.unscored for one in self._monitors.values())
        partly = sum(bool(one.unwatched) for one in self._monitors.values())
        told = {
            f"{unscored:,} rows without a score are not watched": unscored,
            f"{self.unseen:,} rows of groups never seen at calibration are not watched": self.unseen,
            f"{self.unpromised:,} rows of groups that are promised nothing are not watched": self.unpromised,
            f"{partly:,} groups are watched for one promise only: nothing can contradict the other": partly,
        }
        return tuple(sentence for sentence, count in told.items() if count)

    @property
    def _digest(self) -> str:
        return sha256(self.certificate.bare.to_json().encode()).hexdigest()

    def _fresh(self, place: int) -> Monitor:
        return Monitor(self._promised(place), alpha=self.alpha / self.size, anomaly_label=self._anomaly_label)

    def _promised(self, place: int) -> Certificate:
        groups, pool = self.certificate.groups, self.certificate.pool
        if place == len(groups) and pool is not None:
            return pool
        return self.certificate.certificates[groups[place]]

    def _name(self, place: int) -> Group | tuple[Group, ...]:
        groups = self.certificate.groups
        if place < len(groups):
            return groups[place]
        return tuple(groups[one] for one in np.flatnonzero(self.certificate.pooled).tolist())


def called(name: Group | tuple[Group, ...]) -> str:
    """Return what whoever is watched is called: a group as it is shown, or the pool of so many.

    >>> called("a"), called(None), called(("a", "b"))
    ("'a'", 'none', 'the pool of 2 groups')
    """
    if isinstance(name, tuple):
        return f"the pool of {len(name):,} groups"
    return "none" if name is None else quoted(name, _LONGEST_SHOWN)


def _checksum(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
