"""Certificates of many groups as columns of numbers, in memory and in a file.

Facts that differ between groups have a column; shared facts are written once.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from math import copysign, inf, isnan, nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base import floats
from pac_wrap.base.codec import checksum, content_of
from pac_wrap.base.text import quoted
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method import certificate
from pac_wrap.method.certificate import Certificate, Overlap
from pac_wrap.method.groups.values import MOST_GROUPS, Group, as_groups, places_of, shown
from pac_wrap.method.promise import OF_DRAWS, Assumption, Guarantee, assumed_of, clause_of
from pac_wrap.method.provenance import Provenance, Traced, Traffic
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies import interface
from pac_wrap.method.strategies.interface import MINUS, NO_COUNT, Abstain, Decision, Found, Hold, asked_of
from pac_wrap.ranks.kernels import as_digest
from pac_wrap.tails.bounds import common_share, min_samples
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from pac_wrap.method.calibrate import Request

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Sums = NDArray[np.uint64]
MOST_BYTES: Final = 64_000_000
_HEADER: Final = {"format": "pac-wrap groups", "schema": 3}
NOUN: Final = "group certificate"
_SIGNS: Final = {"[": 200, "{": 200, ",": 30 * MOST_GROUPS}
# the fields of each class: those of `Found`, then those of its points
_TOLD: Final = ("rate", "delta", "budget", "thresholds", "ceilings", "deltas", "n", "digest", "beyond")
# how a file stores non-finite numbers
_INFINITE: Final[dict[float, Any]] = {inf: "inf", -inf: "-inf"}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The facts of many groups' certificates: an entry for each group, and a row for each class.

    `n`, `digest`, `beyond`, `budget` and `thresholds` are those of the clauses, `errors` the calibration
    points that the rule misjudges, `rule` normal_below and anomaly_from. The results of the promises follow
    from these: `rate` and `delta` belong to the budgets, `ceilings` and `deltas` are certified. NaN or -1
    stand for None. Of traffic, the classes are points that review did not find anomalous, and that it did.
    """

    n: Counts
    digest: Sums
    beyond: Counts
    errors: Counts
    budget: Counts
    thresholds: Numbers
    rule: Numbers
    rate: Numbers = field(metadata={"follows": True})
    delta: Numbers = field(metadata={"follows": True})
    ceilings: Numbers = field(metadata={"follows": True})
    deltas: Numbers = field(metadata={"follows": True})
    separable: Counts

    @classmethod
    def of(cls, made: Decision, **known: Any) -> "Columns":
        groups, found = known["n"].shape[1], [own or certificate.NOTHING for own in made.found]
        certified = np.broadcast_to(made.certified, groups)

        def column(kind: Any, numbers: Iterable[Any]) -> Any:
            return np.stack([np.broadcast_to(np.asarray(one, kind), groups) for one in numbers])

        rate, keys = column(np.float64, (own.rate for own in found)), (own.key for own in found)
        decided = {
            "budget": column(np.int64, (own.errors for own in found)),
            "thresholds": np.where(np.isnan(rate), nan, floats.from_order_keys(column(np.uint64, keys))),
            "rate": rate,
            "delta": column(np.float64, (own.delta for own in found)),
            "ceilings": np.where(certified, column(np.float64, (own.ceiling for own in found)), nan),
            "deltas": np.where(certified, column(np.float64, (own.level for own in found)), nan),
            "separable": column(np.int64, [NO_COUNT if made.separable is None else made.separable])[0],
        }
        return cls(**decided | known)

    @property
    def size(self) -> int:
        return int(self.n.shape[1])

    @property
    def certified(self) -> NDArray[np.bool_]:
        """A mask of the groups with their own rule; for others, no single threshold could be certified."""
        return np.asarray((~np.isnan(self.ceilings)).any(axis=0))

    @property
    def vacuous(self) -> NDArray[np.bool_]:
        """A mask of the groups with too few labels for a ceiling."""
        return np.asarray(((self.budget == NO_COUNT) & ~np.isnan(self.rate)).any(axis=0))

    @property
    def empty(self) -> NDArray[np.bool_]:
        return self.vacuous | ~self.certified

    @property
    def kept(self) -> NDArray[np.bool_]:
        """For each class, a mask of the groups with enough labels for its promise, whatever the other."""
        return np.asarray((self.budget != NO_COUNT) & ~np.isnan(self.ceilings))

    @property
    def watchable(self) -> NDArray[np.bool_]:
        """A mask of the groups with a promise that can be broken: a ceiling, and a verdict that occurs."""
        given = np.stack([self.rule[1] < inf, self.rule[0] > -inf])
        return np.asarray((given & ~np.isnan(self.ceilings)).any(axis=0))

    @property
    def undecided(self) -> Counts:
        """The number of calibration points of each class that each group's rule leaves undecided.

        If two thresholds are used although one would be enough, points between them are not counted.
        """
        overlapping = floats.order_keys(self.rule[0]) != floats.order_keys(self.rule[1])
        left = np.where(overlapping, np.maximum(0, self.beyond - self.errors), 0)
        return np.where(self.certified, left, self.n)

    @property
    def worst_first(self) -> NDArray[np.intp]:
        """The places of the groups: first those without a promise, then with most points undecided."""
        n = self.n.sum(axis=0)
        share = self.undecided.sum(axis=0) / np.maximum(1, n)
        return np.lexsort((np.arange(n.size), -n, -share, ~self.empty))

    def at(self, place: int, request: "Request", score_type: floats.ScoreType) -> Certificate:
        own = {column.name: getattr(self, column.name)[..., place].tolist() for column in fields(self)}
        (few, found), traffic = own["n"], None
        if request.guarantee.of_traffic:
            right = found - own["errors"][1]
            own["n"], own["digest"][1] = [few + found, 0], 0
            traffic = Traffic(few + found, None, found, None, own["errors"][0] + right, right, None)
        certified, clauses = not all(map(isnan, own["ceilings"])), []
        for label, one in enumerate(asked_of(request.guarantee)):
            rate, delta, errors, edge, ceiling, level, n, digest, beyond = (own[of][label] for of in _TOLD)
            # the smallest threshold above the number below zero is -0.0, which has its own key
            key = MINUS if isnan(edge) else floats.order_key(edge) - (not edge and copysign(1.0, edge) < 0.0)
            found, points = Found(rate, delta, errors, key, ceiling, level), (n, as_digest(digest))
            clauses.append(clause_of(one, found, points, interface.none_of(beyond), certified=certified))
        separable = interface.none_of(own["separable"])
        return Certificate(
            guarantee=request.guarantee,
            overlap=request.overlap,
            clauses=tuple(clauses),
            rule=Rule(*own["rule"]),
            score_type=score_type,
            separable=None if separable is None else bool(separable),
            assumptions=assumed_of(request.guarantee),
            traffic=traffic,
        )

    def same(self, other: "Columns", digits: float = 1e-9) -> NDArray[np.bool_]:
        """Return a mask of equal groups of two tables; rates, from SciPy, may differ in the last digits."""
        agree = np.ones(self.size, dtype=bool)
        for column in fields(self):
            one, two = np.atleast_2d(getattr(self, column.name), getattr(other, column.name))
            equal = (one == two) | ((one != one) & (two != two))
            if column.name in ("rate", "ceilings"):
                equal |= np.isclose(one, two, rtol=digits, atol=0.0)
            agree &= equal.all(axis=0)
        return agree

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return NotImplemented
        return other.size == self.size and bool(self.same(other, 0.0).all())

    def __hash__(self) -> int:
        return hash((self.size, int(self.digest.sum())))

    def permuted(self, order: NDArray[np.intp]) -> "Columns":
        return Columns(*(getattr(self, column.name)[..., order] for column in fields(self)))


def points_counted(n: Any, traffic: bool) -> Any:
    """Return how many points each promise counts: of traffic, all of both rows count for the first."""
    return np.stack([n[0] + n[1], 0 * n[1]]) if traffic else n


KINDS: Final[dict[Any, Any]] = {Counts: np.int64, Sums: np.uint64, Numbers: np.float64}
# what stands in a file, and what each of them holds
FILED: Final = {one.name: KINDS[one.type] for one in fields(Columns) if not one.metadata}


def shares_of(asked: Guarantee, overlap: Overlap, n: Counts, pool: bool) -> tuple[float, float]:
    """Return deltas with which all groups keep theirs, from the numbers of labels: eqs. (111) to (113)."""
    n, promises = points_counted(n, asked.of_traffic), [one.promise for one in asked_of(asked)]
    equal = [floats.shared_together(delta, n.shape[1]) for delta in (asked.delta_fpr, asked.delta_fnr)]
    if not isinstance(overlap, Abstain | Hold):
        return equal[0], equal[1]
    found = [asked.delta_fpr, asked.delta_fnr]
    while True:
        before = found[0], found[1]
        for label, sizes in enumerate(_samples(asked, n, before, pool)):
            promise = promises[label]
            if promise is None:
                found[label] = equal[label]
            elif promise.rate in overlap.keeps:
                found[label] = common_share(sizes, promise.at_calibration, promise.delta, before[label])
        # a lower delta leaves more groups to the pool, so that another one may be needed
        if not pool or before == (found[0], found[1]):
            break
    for label, promise in enumerate(promises):
        other = promises[1 - label]
        # what hold counts, it counts where the other, held class has labels enough: eq. (112)
        if promise is not None and other is not None and promise.rate not in overlap.keeps:
            enough = n[1 - label] >= min_samples(other.at_calibration, found[1 - label])
            counted = int(np.count_nonzero(enough & (n[label] > 0)))
            found[label] = floats.shared_together(promise.delta, counted)
    return found[0], found[1]


def _samples(asked: Guarantee, n: Counts, shares: tuple[float, ...], pool: bool) -> tuple[Counts, Counts]:
    """Return the sizes of the samples of each class that have a promise, including the pool."""
    if not pool:
        return n[0], n[1]
    pairs = zip((asked.fpr, asked.fnr), shares, strict=True)
    least = [0 if one is None else min_samples(one.at_calibration, share) for one, share in pairs]
    few = (n < np.array(least)[:, None]).any(axis=0)
    together = n[:, few].sum(axis=1)
    if not few.any() or (together < least).any():  # then each group keeps what its own labels promise
        return n[0], n[1]
    normal, anomalous = (np.append(n[label, ~few], together[label]) for label in (0, 1))
    return normal, anomalous


@dataclass(frozen=True, slots=True)
class Head(Traced):
    """The facts that the certificates of all groups share."""

    asked: Guarantee
    overlap: Overlap
    together: bool
    score_type: floats.ScoreType = "float64"
    pool: Certificate | None = None
    assumptions: tuple[Assumption, ...] = OF_DRAWS
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False, metadata={"optional": True})


def written(head: dict[str, Any], groups: tuple[Group, ...], columns: Columns) -> str:
    """Return the text of a file: a line for each column, a single value if all groups have the same."""
    content = _HEADER | head | {"groups": list(groups)}
    for name in FILED:
        array = getattr(columns, name)
        rows = [_packed(row, name) for row in np.atleast_2d(array)]
        content[name] = rows if array.ndim == 2 else rows[0]
    content["checksum"] = checksum(content)
    lines = (
        f"  {json.dumps(name)}: {json.dumps(value, separators=(',', ':'), allow_nan=False)}"
        for name, value in content.items()
    )
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if len(text) > MOST_BYTES:
        raise InputError(
            f"a file of {len(groups):,} groups would have {len(text):,} bytes, but at most {MOST_BYTES:,} can"
            " be read; divide the groups between several certificates"
        )
    return text


def read(text: str | bytes) -> tuple[dict[str, Any], tuple[Group, ...], dict[str, Any]]:
    """Return the shared facts, the groups and the columns of a file, or raise a CertificateError."""
    content = content_of(text, _HEADER, NOUN, MOST_BYTES, _SIGNS)
    groups = _groups(content.pop("groups", None))
    arrays: dict[str, Any] = {}
    for name in FILED:
        value = content.pop(name, None)
        if name == "separable":
            arrays[name] = _unpacked(value, name, len(groups))
        elif isinstance(value, list) and len(value) == 2:
            arrays[name] = np.stack([_unpacked(row, name, len(groups)) for row in value])
        else:
            raise CertificateError(f"{NOUN}.{name} must be a list of two, normal first")
    return content, groups, arrays


def columns_again(
    request: "Request", groups: tuple[Group, ...], filed: dict[str, Any], score_type: floats.ScoreType
) -> Columns:
    """Return the columns of a file, after checking that the decision made again agrees with them."""

    def refuse(checks: Iterable[tuple[Any, str]]) -> None:
        for wrong, text in checks:
            for place in np.flatnonzero(np.broadcast_to(wrong, len(groups)))[:1].tolist():
                raise InputError(f"group {shown(groups[place])}: {text}")

    n, errors, budget, edges = (filed[name] for name in ("n", "errors", "budget", "thresholds"))
    asked, strategy = asked_of(request.guarantee), request.overlap
    keys, blank = floats.order_keys(np.where(np.isnan(edges), 0.0, edges)), np.full(len(groups), nan)
    told = certificate.Told(
        n=points_counted(n, request.guarantee.of_traffic),
        found=[Found(blank, blank, *own, blank, blank) for own in zip(budget, keys, strict=True)],
        edges=edges,
        beyond=filed["beyond"],
        rule=tuple(filed["rule"]),
        certified=blank,
        separable=filed["separable"],
        score_type=score_type,
    )
    refuse(certificate.impossibilities(asked, strategy, told))
    made = certificate.replayed(asked, strategy, told)
    columns = Columns.of(made, **filed)
    numbers = zip(columns.rate, columns.delta, budget, keys, columns.ceilings, columns.deltas, strict=True)
    told = told._replace(found=[Found(*row) for row in numbers], certified=columns.certified)
    single = isinstance(strategy, Abstain) & ~np.isnan(columns.rate)
    beyond = (single & (errors > np.maximum(budget, 0))).any(axis=0)
    refuse(
        (
            (((errors < 0) | (errors > n)).any(axis=0), "the number of errors is impossible"),
            (beyond, "the rule has more errors than its budget"),
            (((n == 0) & (filed["digest"] != 0)).any(axis=0), "the digest of no scores is 0"),
            *certificate.differences(asked, strategy, told, made),
        )
    )
    return columns


def _groups(value: Any) -> tuple[Group, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_GROUPS:
        raise CertificateError(f"{NOUN}.groups must be a list of 1 to {MOST_GROUPS:,} groups")
    strange = set(map(type, value)) - {str, int, float, bool, type(None)}
    if strange:
        raise CertificateError(f"{NOUN}.groups must be texts, numbers, true, false or null")
    try:
        groups = tuple(as_groups(value))
    except InputError as error:
        raise CertificateError(f"the {NOUN} is not possible: {error}") from error
    if len(places_of(groups)) < len(groups):
        raise CertificateError(f"the {NOUN} names a group twice")
    return groups


def _packed(row: Any, name: str) -> Any:
    """Return a row of a column for JSON: one value if all are the same."""
    bits = row.view(np.int64)  # -0.0 is not 0.0
    same = bool((bits == bits[:1]).all() or (row != row).all())
    listed = (row[:1] if same else row).tolist()
    if name == "digest":
        digits = np.array(listed, dtype=">u8").tobytes().hex()
        listed = [digits[start : start + 16] for start in range(0, len(digits), 16)]
    elif row.dtype.kind == "f":
        if any(map(floats.is_flushed, listed)):
            raise CertificateError(
                f"{name} holds a subnormal number, which this process would write as 0; call"
                " torch.set_flush_denormal(False) before you save"
            )
        listed = [None if one != one else _INFINITE.get(one, one) for one in listed]
    elif (row < 0).any():
        listed = [None if one == NO_COUNT else one for one in listed]
    return listed[0] if same else listed


def _unpacked(value: Any, name: str, size: int) -> Any:
    kind = FILED[name]
    listed = value if isinstance(value, list) else [value]
    if isinstance(value, list) and len(value) != size:
        raise CertificateError(
            f"{NOUN}.{name} must have an entry for each of {size:,} groups, got {len(value):,}"
        )
    try:
        if name == "digest":
            digits = "".join(listed)
            if set(map(len, listed)) != {16} or not digits.isalnum() or digits != digits.lower():
                raise ValueError("a digest has 16 hexadecimal digits")
            array = np.frombuffer(bytes.fromhex(digits), dtype=">u8").astype(kind)
        elif kind is np.int64:
            array = np.array([NO_COUNT if one is None else _count(one) for one in listed], dtype=kind)
        else:
            array = np.array([_number(one) for one in listed], dtype=kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise CertificateError(f"{NOUN}.{name} is not a column of its kind: {error}") from error
    return array if isinstance(value, list) else np.repeat(array, size)


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{quoted(value)} is not a count")
    return value


def _number(value: Any) -> float:
    if value is None:
        return np.nan
    if value in ("inf", "-inf") or type(value) in (int, float):
        return float(value)
    raise ValueError(f"{quoted(value)} is not a number")
