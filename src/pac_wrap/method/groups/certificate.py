"""The certificates of all groups of a table, and the verdicts that follow them."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base import arguments, floats
from pac_wrap.base.arguments import OnMissing, Scores
from pac_wrap.base.codec import SavedAsJSON, plain, typed
from pac_wrap.errors import InputError
from pac_wrap.method import promise
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificate import Certificate, inconsistencies, version_problems
from pac_wrap.method.groups import columns as tables
from pac_wrap.method.groups.columns import Columns, Head, Numbers
from pac_wrap.method.groups.measure import Gaps, GroupMeasured, gaps_of, measured, tallied
from pac_wrap.method.groups.values import Codes, Group, GroupColumn, Lookup
from pac_wrap.method.rule import Verdict
from pac_wrap.method.strategies.interface import asked_of

if TYPE_CHECKING:
    from pac_wrap.method.verify import Verification

# lines of a certificate that a notebook shows
_NOTEBOOK: Final = 12


class Certificates(Mapping[Group, Certificate]):
    """The certificate of each group by its value (7 is "7"), the worst first; each is made on demand."""

    def __init__(self, table: "GroupCertificate") -> None:
        self._table, self._request = table, table.request

    def __getitem__(self, group: Group) -> Certificate:
        place = self._table.lookup.place(group)
        if place is None:
            raise KeyError(group)
        one = self._table.columns.at(place, self._request, self._table.score_type)
        return replace(one, assumptions=self._table.assumptions)

    def __iter__(self) -> Iterator[Group]:
        return (self._table.groups[place] for place in self._table.columns.worst_first.tolist())

    def __len__(self) -> int:
        return len(self._table.groups)


# rows at a time: their thresholds and masks stay in the cache
_CHUNK: Final = 1 << 16


def sets_of(exclusions: Numbers, scores: Scores, places: Codes) -> NDArray[np.bool_]:
    """Return which labels are possible for each score, by the exclusions at its place: eq. (11)."""
    alarm, clear = exclusions
    never, open_ = np.isnan(alarm) | (alarm == inf), np.isnan(clear)
    ends = [floats.order_keys(np.nan_to_num(end, posinf=inf, neginf=-inf)) for end in (alarm, clear)]
    missing = np.isnan(scores)
    values = floats.order_keys(np.where(missing, 0.0, scores))
    normal = missing | never[places] | (values < ends[0][places])
    return np.stack([normal, missing | open_[places] | (values >= ends[1][places])], axis=1)


def decided(rules: Numbers, scores: Scores, places: Codes) -> NDArray[np.int8]:
    """Return the verdict on each score by the rule at its place; every rule abstains on NaN."""
    low, high = rules
    # if the processor flushes subnormals to zero, only keys distinguish them
    keyed = floats.flushes()
    ends = (floats.order_keys(low), floats.order_keys(high)) if keyed else (low, high)
    # inf is never reached; a single threshold at inf declares every point normal
    never, everything = high == inf, low == inf
    unusual = bool(everything.any())
    verdicts = np.empty(scores.size, dtype=np.int8)
    for start in range(0, scores.size, _CHUNK):
        part, place = scores[start : start + _CHUNK], places[start : start + _CHUNK]
        missing = np.isnan(part)
        values = floats.order_keys(np.where(missing, 0.0, part)) if keyed else part
        with np.errstate(invalid="ignore"):
            alarm = values >= ends[1][place]
            alarm &= ~never[place]
            clear = values < ends[0][place]
        if unusual:
            clear |= everything[place]
        found = verdicts[start : start + _CHUNK]
        found[:] = Verdict.ABSTAIN
        found[alarm] = Verdict.ANOMALY
        found[clear] = Verdict.NORMAL
        found[missing] = Verdict.ABSTAIN
    return verdicts


def jointly(certificate: Head, *deltas: float) -> Decimal:
    """Return the confidence that ceilings with these deltas hold together: eqs. (53) and (97)."""
    if certificate.overlap.multiplies and promise.are_independent(certificate.assumptions):
        return floats.kept_together(*map(floats.confidence_left, deltas))
    return floats.confidence_left(*deltas)


@dataclass(frozen=True, slots=True)
class GroupCertificate(Head, SavedAsJSON):
    """A rule and a promise for each group of points; made by `calibrate_labelled`.

    Parameters
    ----------
    asked : Guarantee
        The promises that were asked for, of each group or of all groups together.
    together : bool
        Whether the promises of all groups hold together, with the requested deltas: eq. (53).
    pool : Certificate, optional
        That of all groups with too few labels, taken as one: eq. (55). It is about their mixture alone.
    overlap, score_type, assumptions, version, provenance : object
        As in a `Certificate`.
    shares : tuple of float, optional
        The deltas of the FPR and of the FNR in each group if all promises hold together: eq. (111).
    groups : tuple
        The value of each group: a text, a number, true or false, or None for missing values.
    columns : Columns
        The facts of all certificates, with an entry for each group.

    Examples
    --------
    >>> from pac_wrap import calibrate_labelled
    >>> scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    >>> certificate = calibrate_labelled(scores, labels, by=["a"] * 200 + ["b"] * 200)
    >>> certificate.certificates["a"].regime.value
    'separated'
    >>> certificate.verdicts([50, 250, 250], ["a", "b", "never seen"])
    array([ 0,  1, -1], dtype=int8)
    """

    shares: tuple[float, float] | None = field(default=None, kw_only=True)
    groups: tuple[Group, ...] = field(kw_only=True)
    columns: Columns = field(kw_only=True, repr=False)
    # made on demand
    _lookup: Lookup | None = field(default=None, init=False, repr=False, compare=False)

    _noun: ClassVar[str] = tables.NOUN
    _most_bytes: ClassVar[int] = tables.MOST_BYTES

    @property
    def request(self) -> Request:
        """The request of each single group, with its share of delta."""
        asked = self.asked if self.shares is None else promise.with_deltas(self.asked, *self.shares)
        return Request(asked, self.overlap)

    @property
    def confidence(self) -> float | None:
        """The confidence that all groups' ceilings hold together: (53), (97); None without `together`."""
        deltas = (one.delta for one in self.asked.promises)
        return floats.float_below(jointly(self, *deltas)) if self.together else None

    @property
    def certificates(self) -> Mapping[Group, Certificate]:
        """The certificate of each group by its value, as `calibrate` gives it, the worst group first."""
        return Certificates(self)

    @property
    def pooled(self) -> NDArray[np.bool_]:
        """A mask of the groups that follow the rule of the pool, since their own labels are too few."""
        return self.columns.vacuous & (self.pool is not None and not self.pool.empty)

    @property
    def empty(self) -> bool:
        """Whether a requested ceiling is certified for no group, neither alone nor in the pool."""
        kept: NDArray[np.bool_] = self.columns.kept | self.pooled
        pairs = zip(asked_of(self.asked), kept, strict=True)
        return any(one.promise is not None and not own.any() for one, own in pairs)

    @property
    def lookup(self) -> Lookup:
        """The place of each group, by its text."""
        found = self._lookup or Lookup(self.groups)
        object.__setattr__(self, "_lookup", found)
        return found

    @property
    def rules(self) -> Numbers:
        """The two ends of each group's rule, with those of an unseen group last."""
        pool = None if self.pool is None else (self.pool.rule.normal_below, self.pool.rule.anomaly_from)
        return self._with_pool(self.columns.rule, pool, (-inf, inf))

    @property
    def exclusions(self) -> Numbers:
        """The thresholds of each group's prediction sets, as `Certificate.exclusions`; NaN for none."""
        low, high = self.columns.rule
        alarm, clear = floats.order_keys(np.nan_to_num(self.columns.thresholds, posinf=inf, neginf=-inf))
        single = floats.order_keys(low) == floats.order_keys(high)
        found = np.where((alarm <= clear) & ~single, self.columns.rule, self.columns.rule[::-1])
        # a single threshold at inf declares every point normal, and rules out nothing
        found[1, single & (high == inf)] = np.nan
        for label, one in enumerate(asked_of(self.asked)):
            if one.promise is None:
                found[label] = np.nan
        own = np.where(self.columns.certified, found, np.array([[inf], [-inf]]))
        ends = None if self.pool is None else self.pool.exclusions
        return self._with_pool(own, ends and (ends.alarm_from, ends.clear_below), (inf, -inf))

    def _with_pool(self, own: Numbers, pool: Any, never: tuple[float, float]) -> Numbers:
        """Return the ends of each group's rule, or of its pool's, with those of an unseen group last."""
        if pool is not None:
            own = np.where(self.pooled, np.array(pool, dtype=np.float64)[:, None], own)
        return np.append(own, np.array(never)[:, None], axis=1)

    def verdicts(
        self, scores: ArrayLike, groups: GroupColumn, *, on_missing: OnMissing = "abstain"
    ) -> NDArray[np.int8]:
        """Return the verdict on each score by the rule of its group: 1 (anomaly), 0 (normal) or -1 (abstain).

        The other parameters are those of `Certificate.verdicts`.

        Parameters
        ----------
        groups : array-like
            The group of each point; points of an unseen group get the verdict -1.
        """
        return decided(self.rules, *self._judged(scores, groups, on_missing))

    def prediction_sets(
        self, scores: ArrayLike, groups: GroupColumn, *, on_missing: OnMissing = "abstain"
    ) -> NDArray[np.bool_]:
        """Return for each score whether label 0 and label 1 are possible, in two columns: eq. (11).

        The parameters are those of `verdicts`; for points without a score both are possible.
        """
        return sets_of(self.exclusions, *self._judged(scores, groups, on_missing))

    def _judged(self, scores: ArrayLike, groups: GroupColumn, on_missing: OnMissing) -> tuple[Scores, Codes]:
        """Return the scores and the places of their groups, after checking them; NaN is a missing score."""
        arguments.check_aligned("scores", scores, "groups", groups)
        given = arguments.as_array(scores, "scores")
        if given.ndim != 1 or given.dtype.kind not in "biuf":
            raise InputError(f"scores must be a column of numbers, got {given.dtype} of shape {given.shape}")
        places = self.lookup.places(groups)
        arguments.check_same_length("scores", given.size, "groups", places.size)
        arguments.check_choice("on_missing", on_missing, arguments.ON_MISSING)
        arguments.abstained_or_stopped(arguments.missing_places(given), given.size, on_missing)
        return floats.widened(given), places

    def evaluate(
        self, scores: ArrayLike, labels: ArrayLike, groups: GroupColumn, *, anomaly_label: object = 1
    ) -> GroupMeasured:
        """Return the error rates of each group on held-out labelled points.

        Parameters
        ----------
        scores, labels, groups : array-like
            The scores, labels and groups of the points, as for `calibrate_labelled`.
        anomaly_label : object
            The label that marks an anomaly.
        """
        arguments.check_aligned("scores", scores, "labels", labels)
        verdicts, marks = self.verdicts(scores, groups), arguments.as_anomaly_mask(labels, anomaly_label)
        arguments.check_same_length("scores", verdicts.size, "labels", marks.size)
        return measured(self, tallied(verdicts, marks, self.lookup.places(groups), len(self.groups)))

    def verify(
        self, scores: ArrayLike, labels: ArrayLike, groups: GroupColumn, *, anomaly_label: object = 1
    ) -> "Verification":
        """Make all certificates again from the calibration points, in any order, and return the differences.

        The parameters are those of `evaluate`. Printed, it lists the differences of the first few groups.

        Examples
        --------
        >>> from pac_wrap import calibrate_labelled
        >>> scores, labels, groups = range(200), [0] * 100 + [1] * 100, ["a"] * 200
        >>> certificate = calibrate_labelled(scores, labels, by=groups)
        >>> bool(certificate.verify(scores[::-1], labels[::-1], groups))
        True
        """
        from pac_wrap.method.verify import verify_groups

        return verify_groups(self, scores, labels, groups, anomaly_label)

    def gaps(self, delta: float = 0.05) -> "Gaps":
        """Return bounds of the difference of the error rates of any two groups, each by its own rule: (58).

        Groups that follow the rule of a pool have too few labels for a comparison.

        Parameters
        ----------
        delta : float
            The chance, for each rate, that any two groups differ by more, besides the deltas of the promises.
        """
        promise.refuse_tolerance(self.asked, "a gap between groups", "calibrate without it to compare them")
        return gaps_of(self, delta)

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
        """Write a report as a self-contained HTML page, Markdown or JSON, by the file's name.

        The other parameters are those of `Certificate.report`.

        Parameters
        ----------
        scores, labels, groups, anomaly_label : array-like and object, optional
            The calibration points, which a certificate does not store; with them, the page draws the scores
            of the worst groups. Other points raise an error.
        measured : GroupMeasured, optional
            Error rates on held-out labelled points, made by `evaluate`.
        """
        from pac_wrap.report.groups import scores_by_group
        from pac_wrap.report.render import check_ending, write

        check_ending(path)
        write(self, path, scores_by_group(self, scores, labels, groups, anomaly_label), detector, measured)

    def _repr_html_(self) -> str:
        from pac_wrap.report.render import notebook

        return notebook(self, lines=_NOTEBOOK)

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """Sentences that tell which groups have no promise, and why."""
        from pac_wrap.report.groups import diagnosis_of_groups

        return diagnosis_of_groups(self)

    def to_json(self) -> str:
        """Return the certificate as JSON text: the shared facts once, and columns with an entry per group."""
        head = Head(**{one.name: getattr(self, one.name) for one in fields(Head)})
        return tables.written(plain(head), self.groups, self.columns)

    @classmethod
    def _read(cls, text: str | bytes) -> Self:
        content, groups, filed = tables.read(text)
        head: Head = typed(Head, content, cls._noun)
        asked, shares = head.asked, None
        if head.together:
            shares = tables.shares_of(asked, head.overlap, filed["n"], head.pool is not None)
            asked = promise.with_deltas(asked, *shares)
        columns = tables.columns_again(Request(asked, head.overlap), groups, filed, head.score_type)
        shared_by_all = {one.name: getattr(head, one.name) for one in fields(Head)}
        return cls(**shared_by_all, shares=shares, groups=groups, columns=columns)

    def _problems(self) -> Iterator[str]:
        yield from version_problems(self.version)
        if self.assumptions != promise.assumed_of(self.asked):
            yield "these are not the assumptions of draws"
        if self.pool is None:
            return
        if self.columns.n[:, self.columns.vacuous].sum(axis=1).tolist() != [self.pool.fpr.n, self.pool.fnr.n]:
            yield "the pool does not hold the points of the groups with too few labels"
        if Request(self.pool.guarantee, self.pool.overlap) != self.request:
            yield "the request of the pool differs from that of the groups"
        yield from (f"the pool: {problem}" for problem in inconsistencies(self.pool))
