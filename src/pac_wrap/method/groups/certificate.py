"""The certificates of all groups of a table, and the verdicts that follow them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from math import inf
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import (
    Scores,
    as_anomaly_mask,
    as_array,
    check_aligned,
    check_choice,
    check_same_length,
)
from pac_wrap.base.codec import plain, typed
from pac_wrap.base.filed import Filed
from pac_wrap.base.floats import widened
from pac_wrap.base.missing import ON_MISSING, OnMissing, abstained_or_stopped, missing_places
from pac_wrap.base.rounding import confidence_left, float_below, kept_together
from pac_wrap.errors import InputError
from pac_wrap.method.calibrate import Request
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.columns import Columns, Numbers
from pac_wrap.method.groups.file import MOST_BYTES, NOUN, Head, problems, read, with_shares, written
from pac_wrap.method.groups.gaps import Gaps, gaps_of
from pac_wrap.method.groups.listing import Certificates, Row, rows_of
from pac_wrap.method.groups.measure import GroupMeasured, measured, tallied
from pac_wrap.method.groups.rules import decided, exclusions_of, sets_of, with_pool
from pac_wrap.method.groups.shown import ShownGroups
from pac_wrap.method.groups.values import Codes, Group, GroupColumn, Lookup
from pac_wrap.method.promise import refuse_room
from pac_wrap.method.sampling import are_independent


@dataclass(frozen=True, slots=True)
class GroupCertificate(ShownGroups, Head, Filed):
    """A rule and a promise for each group; made by `calibrate_groups`, never by hand.

    Parameters
    ----------
    asked : Guarantee
        What was asked for: of each group, or of all groups together.
    overlap : Strategy
        What was done where the classes overlap.
    together : bool
        Whether the promises of all groups hold at once, with the deltas asked for: eq. (53).
    score_type : "float64", "float32" or "float16"
        The type of the calibrating scores.
    pool : Certificate, optional
        The certificate of all groups with too few labels, taken as one: eq. (55). Its promise is about their
        mixture, not about any one of them.
    assumptions : tuple of Assumption
        What the promises assume.
    shares : tuple of float, optional
        The deltas of the FPR and of the FNR in each group where all hold together: eq. (111).
    version : str
        The version of the package that made it.
    provenance : Provenance, optional
        Where the scores came from. It stands apart: `==` and `verify_groups` do not look at it.
    groups : tuple
        The value of each group: a text, a number, true or false, or None for what was missing.
    columns : Columns
        What the certificate of each group says.

    Examples
    --------
    >>> from pac_wrap import calibrate_groups
    >>> scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    >>> certificate = calibrate_groups(scores, labels, ["a"] * 200 + ["b"] * 200)
    >>> certificate.certificates["a"].regime.value
    'separated'
    >>> certificate.verdicts([50, 250, 250], ["a", "b", "never seen"])
    array([ 0,  1, -1], dtype=int8)
    """

    groups: tuple[Group, ...] = field(kw_only=True)
    columns: Columns = field(kw_only=True, repr=False)
    # made when first asked for
    _lookup: Lookup | None = field(default=None, init=False, repr=False, compare=False)

    _noun: ClassVar[str] = NOUN
    _most_bytes: ClassVar[int] = MOST_BYTES

    @property
    def request(self) -> Request:
        """What each group by itself was asked for, with its share of delta."""
        return Request(with_shares(self.asked, self.shares), self.overlap)

    @property
    def confidence(self) -> float | None:
        """How surely all ceilings of all groups hold together, eqs. (53) and (97); None if they need not."""
        if not self.together:
            return None
        sure = [confidence_left(promise.delta) for promise in self.asked.promises]
        if self.overlap.multiplies and are_independent(self.assumptions):
            return float_below(kept_together(*sure))
        return float_below(confidence_left(*(promise.delta for promise in self.asked.promises)))

    @property
    def certificates(self) -> Mapping[Group, Certificate]:
        """The certificate of each group by its value, the worst first: what `calibrate` gives for it."""
        return Certificates(
            self.groups,
            self.columns,
            self.lookup.place,
            partial(self.columns.at, request=self.request, score_type=self.score_type),
        )

    @property
    def pooled(self) -> NDArray[np.bool_]:
        """Which groups follow the rule of the pool, since they have too few labels for one of their own."""
        follow = self.pool is not None and not self.pool.empty
        return self.columns.vacuous & follow

    @property
    def empty(self) -> bool:
        """Whether a rate that was asked for is promised to no group, by itself or as a part of the pool."""
        kept: NDArray[np.bool_] = self.columns.kept | self.pooled
        asked = (self.asked.fpr, self.asked.fnr)
        return any(one is not None and not kept[label].any() for label, one in enumerate(asked))

    @property
    def lookup(self) -> Lookup:
        """Where each group stands, by its text."""
        if self._lookup is None:
            object.__setattr__(self, "_lookup", Lookup(self.groups))
        assert self._lookup is not None
        return self._lookup

    @property
    def rules(self) -> Numbers:
        """The two ends of each group's rule, and last those of a group that was never seen."""
        pool = None if self.pool is None else (self.pool.rule.normal_below, self.pool.rule.anomaly_from)
        return with_pool(self.columns.rule, self.pooled, pool, (-inf, inf))

    def verdicts(
        self, scores: ArrayLike, groups: GroupColumn, *, on_missing: OnMissing = "abstain"
    ) -> NDArray[np.int8]:
        """Return the verdict on each score, following the rule of its group.

        Parameters
        ----------
        scores : array-like of float
            One score per point; infinities are scores too, and NaN is a missing one.
        groups : array-like
            The group of each point; one that was never seen is abstained on.
        on_missing : "abstain" or "stop"
            Whether missing scores are abstained on, with a warning that counts them, or refused.

        Returns
        -------
        ndarray of int8
            1 (anomaly), 0 (normal) or -1 (abstain) for each score.

        """
        return decided(self.rules, *self._judged(scores, groups, on_missing))

    def prediction_sets(
        self, scores: ArrayLike, groups: GroupColumn, *, on_missing: OnMissing = "abstain"
    ) -> NDArray[np.bool_]:
        """Return which labels each score leaves possible, by the certificate of its group: eq. (11).

        Parameters
        ----------
        scores, groups : array-like
            As for `verdicts`.
        on_missing : "abstain" or "stop"
            Whether points without a score keep both labels, with a warning that counts them, or are refused.

        Returns
        -------
        ndarray of bool, shape (n, 2)
            Is label 0, is label 1 still possible?
        """
        return sets_of(self.exclusions, *self._judged(scores, groups, on_missing))

    def _judged(self, scores: ArrayLike, groups: GroupColumn, on_missing: OnMissing) -> tuple[Scores, Codes]:
        """Return the scores and the places of their groups, if they fit together; NaN is what is missing."""
        check_aligned("scores", scores, "groups", groups)
        given = as_array(scores, "scores")
        if given.ndim != 1 or given.dtype.kind not in "biuf":
            raise InputError(f"scores must be a column of numbers, got {given.dtype} of shape {given.shape}")
        places = self.lookup.places(groups)
        check_same_length("scores", given.size, "groups", places.size)
        check_choice("on_missing", on_missing, ON_MISSING)
        abstained_or_stopped(missing_places(given), given.size, on_missing)
        return widened(given), places

    def evaluate(
        self, scores: ArrayLike, labels: ArrayLike, groups: GroupColumn, *, anomaly_label: object = 1
    ) -> GroupMeasured:
        """Return how the rules do on labelled points that were not used to calibrate, group by group.

        Parameters
        ----------
        scores, labels, groups : array-like
            As in `calibrate_groups`.
        anomaly_label : object
            The label that marks an anomaly.

        Returns
        -------
        GroupMeasured
            The rates of each group, and which of them significantly exceed their ceilings.
        """
        check_aligned("scores", scores, "labels", labels)
        verdicts, marks = self.verdicts(scores, groups), as_anomaly_mask(labels, anomaly_label)
        check_same_length("scores", verdicts.size, "labels", marks.size)
        counts = tallied(verdicts, marks, self.lookup.places(groups), len(self.groups))
        return measured(self.columns, self.groups, self.pooled, counts, self.asked.label_noise)

    @property
    def exclusions(self) -> Numbers:
        """What each group's prediction sets follow, as `Certificate.exclusions`; NaN rules nothing out."""
        ends = None if self.pool is None else self.pool.exclusions
        pool = None if ends is None else (ends.alarm_from, ends.clear_below)
        own = exclusions_of(self.columns, self.asked, self.score_type)
        return with_pool(own, self.pooled, pool, (inf, -inf))

    def rows(self) -> Iterator[Row]:
        """Yield what is to be said of each group, the worst first.

        Returns
        -------
        iterator of Row
        """
        yield from rows_of(self.certificates, self.columns, self.groups, self.pooled)

    def gaps(self, delta: float = 0.05) -> "Gaps":
        """Return how far the error rates of any two groups can be apart, each with its own rule: eq. (58).

        Groups that follow the rule of a pool have too few labels to be compared.

        Parameters
        ----------
        delta : float
            The chance, for each rate, that some pair of groups is farther apart. It comes on top of the
            deltas of the promises.

        Returns
        -------
        Gaps
        """
        refuse_room(self.asked, "a gap between groups", "calibrate without it to compare them")
        return gaps_of(self.columns, self.groups, self.request, self.pooled, delta)

    def to_json(self) -> str:
        """Return the certificate as JSON text: what all groups share once, and columns of numbers."""
        head = Head(**{one.name: getattr(self, one.name) for one in fields(Head)})
        return written(plain(head), self.groups, self.columns)

    @classmethod
    def _read(cls, text: str | bytes) -> Self:
        content, groups, columns = read(text)
        head: Head = typed(Head, content, cls._noun)
        shared_by_all = {one.name: getattr(head, one.name) for one in fields(Head)}
        return cls(**shared_by_all, groups=groups, columns=columns)

    def _problems(self) -> Iterator[str]:
        return problems(self, self.groups, self.columns, self.request)
