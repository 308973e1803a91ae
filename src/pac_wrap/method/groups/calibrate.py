"""Labelled scores with their groups in, a certificate for each group out."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from math import log
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlogy

from pac_wrap.base.arguments import (
    Scores,
    as_labelled,
    check_choice,
    frames_inside,
    type_of,
)
from pac_wrap.base.floats import ScoreType, from_order_keys
from pac_wrap.errors import InputError, UpsideDownWarning, VacuousWarning
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.certify import CHANGES, answered, signed
from pac_wrap.method.groups.block import Block, calibrated
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.columns import Columns, Counts, Numbers, joined, permuted, shares_of
from pac_wrap.method.groups.file import with_shares
from pac_wrap.method.groups.part import Part
from pac_wrap.method.groups.values import Group, GroupColumn, groups_beside, in_order, shown
from pac_wrap.method.request import Request
from pac_wrap.method.sampling import OF_DRAWS, OF_POOL, assumed
from pac_wrap.method.source import CLASSES, Source
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.ranks.memory import RankedInMemory

# up to there the binomial bound holds for points of several groups: eq. (56)
_MOST_DELTA: Final = 0.25
_MOST_CEILING: Final = 0.5
# how often groups that are not upside down may be taken for it, and the points an AUC is taken on at most
_LEVEL: Final = 0.01
_POINTS: Final = 10_000


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """What a calibration of groups is asked for, checked apart from any score."""

    request: Request
    together: bool = False
    pool: bool = False

    def __post_init__(self) -> None:
        check_choice("together", self.together, (True, False))
        check_choice("pool", self.pool, (True, False))
        if not self.pool:
            return
        if not isinstance(self.request.overlap, Abstain):
            raise InputError(
                f'pool goes with overlap="abstain" only, got "{self.request.overlap.word}"; what it proves'
                " for points of several groups is not proved for others"
            )
        for promise in self.request.guarantee.promises:
            if promise.ceiling > _MOST_CEILING or promise.delta > _MOST_DELTA:
                raise InputError(
                    f"pool needs ceilings up to {_MOST_CEILING} and deltas up to {_MOST_DELTA}, got {promise}"
                )

    def certify(
        self, blocks: Iterable[Block], n: Counts, groups: tuple[Group, ...], score_type: ScoreType
    ) -> GroupCertificate:
        """Return the certificate of groups that come in blocks, in their order, wherever they come from."""
        each = self.each(n)
        parts: list[Columns] = []
        left: list[tuple[Scores, Scores]] = []
        areas: list[Numbers] = []
        for block in blocks:
            parts.append(calibrated(each, block, score_type))
            areas.append(block.areas())
            if self.pool and (few := parts[-1].vacuous).any():
                left.append(_points(block, few))
        pool = _pooled(each, left, score_type) if left else None
        return self.certificate(joined(parts), np.concatenate(areas), groups, score_type, pool)

    def each(self, n: Counts) -> Request:
        """Return what each group is asked for, with its share of delta; `n` as in `certify`."""
        # one pair of deltas for all groups, whatever their counts
        return Request(with_shares(self.request.guarantee.fixed, self._shares(n)), self.request.overlap)

    def _shares(self, n: Counts) -> tuple[float, float] | None:
        if not self.together:
            return None
        return shares_of(self.request.guarantee, self.request.overlap, n, self.pool)

    def certificate(
        self,
        columns: Columns,
        areas: Numbers,
        groups: tuple[Group, ...],
        score_type: ScoreType,
        pool: Certificate | None,
    ) -> GroupCertificate:
        """Return the certificate of groups whose columns are known; warn if scores are upside down."""
        _warn_if_upside_down(areas, columns.n, groups)
        rooms = self.request.guarantee.rooms
        if pool is not None:
            pool = replace(pool, assumptions=assumed(OF_POOL, **rooms))
        return GroupCertificate(
            asked=self.request.guarantee.fixed,
            overlap=self.request.overlap,
            together=self.together,
            score_type=score_type,
            pool=pool,
            shares=self._shares(columns.n),
            groups=groups,
            columns=columns,
            assumptions=assumed(OF_DRAWS, **rooms),
        )


def certify_labelled_groups(
    request: GroupRequest, scores: ArrayLike, labels: ArrayLike, groups: GroupColumn
) -> GroupCertificate:
    """Return what a request gets from columns in memory."""
    given, values, mask = as_labelled(scores, labels, request.request.anomaly_label)
    found, kind = groups_beside(scores, values.size, groups), type_of(given)
    block = Block.of(values, mask, found.codes, len(found.values))
    return request.certify([block], block.n, found.values, kind)


class GroupSource(Protocol):
    """Labelled scores by group, wherever they live."""

    groups: tuple[Group, ...]
    # how many normal and anomalous points each group has
    n: Counts

    @property
    def score_type(self) -> ScoreType:
        """The type of the scores."""

    def calibrated(self, request: Request) -> Part:
        """Return what each group gets, calibrated where its rows lie, in the order of the groups."""

    def pooled(self, places: Counts) -> Source:
        """Return the points of some groups, taken as one."""

    def origin(self) -> dict[str, Any]:
        """Return where the scores came from, as a provenance has it."""


def certify_groups(source: GroupSource, request: GroupRequest) -> GroupCertificate:
    """Return what a request gets from groups, wherever they live, in the order that they have in memory."""
    each = request.each(source.n)
    part = source.calibrated(each)
    if not np.array_equal(part.columns.n, source.n):
        raise InputError(CHANGES)
    order = np.array(sorted(part.places, key=lambda place: in_order(source.groups[place])), dtype=np.intp)
    columns, pool = permuted(part.columns, order), None
    if request.pool and (few := part.columns.vacuous).any():
        pooled = source.pooled(part.places[few])
        pool = pooled.answer(CLASSES, partial(answered, each))
    groups = tuple(source.groups[place] for place in order)
    made = request.certificate(columns, part.areas[order], groups, source.score_type, pool)
    return warned_of_groups(signed(source, made))


def warned_of_groups(certificate: GroupCertificate) -> GroupCertificate:
    """Return a certificate after warning of the groups to which nothing useful is promised."""
    if texts := certificate.diagnosis:
        warnings.warn("; ".join(texts), VacuousWarning, stacklevel=frames_inside() + 1)
    return certificate


def _points(block: Block, chosen: NDArray[np.bool_]) -> tuple[Scores, Scores]:
    """Return the normal and the anomalous scores of some groups of a block."""
    rows = np.repeat(chosen, np.diff(block.starts))
    normal, anomalous = (from_order_keys(block.keys[rows & (block.marks == mark)]) for mark in (False, True))
    return normal, anomalous


def _pooled(request: Request, parts: list[tuple[Scores, Scores]], score_type: ScoreType) -> Certificate:
    """Return the certificate of the points of several groups taken as one: eq. (55)."""
    normal, anomalous = (np.concatenate(scores) for scores in zip(*parts, strict=True))
    classes = RankedInMemory(normal, "normal", 1), RankedInMemory(anomalous, "anomalous", 1)
    return request.certify(*classes, score_type=score_type)


def _warn_if_upside_down(areas: Numbers, n: Counts, groups: tuple[Group, ...]) -> None:
    """Warn if anomalies score significantly lower than normal points in a group, at 1 % for all: eq. (25)."""
    area = np.where(np.isnan(areas), 0.5, areas)
    divergence = log(2.0) + xlogy(area, area) + xlogy(1.0 - area, 1.0 - area)
    strength = np.where(area < 0.5, np.minimum(n.min(axis=0), _POINTS) * divergence, 0.0)
    found = int(np.count_nonzero(strength >= log(len(groups) / _LEVEL)))
    if found:
        worst = int(np.argmax(strength))
        warnings.warn(
            f"anomalies score lower than normal points in {found:,} of {len(groups):,} groups, most clearly"
            f" in {shown(groups[worst])} (AUC {area[worst]:.3f}); if the scores are upside down, negate them",
            UpsideDownWarning,
            stacklevel=frames_inside() + 1,
        )
