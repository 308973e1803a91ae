"""Certificates of many groups as columns of numbers, in memory and in a file.

What differs from group to group has a column, and what all share is written once.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from math import copysign, inf, isinf, isnan
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.codec import checksum, content_of
from pac_wrap.base.floats import ScoreType, is_flushed, order_key, order_keys, shared_together
from pac_wrap.base.text import quoted
from pac_wrap.errors import CertificateError, InputError
from pac_wrap.method.certificate import (
    Certificate,
    Overlap,
    Told,
    contradictions,
    inconsistencies,
    version_problems,
)
from pac_wrap.method.groups.values import MOST_GROUPS, Group, as_groups, places_of, shown
from pac_wrap.method.promise import OF_DRAWS, OF_SUBJECTS, Assumption, Guarantee, assumed, clause_of
from pac_wrap.method.provenance import Provenance, Traced
from pac_wrap.method.rule import Rule
from pac_wrap.method.strategies.hold import Hold
from pac_wrap.method.strategies.interface import NO_COUNT as NO_COUNT
from pac_wrap.method.strategies.interface import Abstain, Found, asked_of, none_of
from pac_wrap.ranks.kernels import as_digest
from pac_wrap.tails.bounds import Budget, common_share, keeps_together, min_samples
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from pac_wrap.method.calibrate import Request

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Sums = NDArray[np.uint64]
MOST_BYTES: Final = 64_000_000
FORMAT: Final = "pac-wrap groups"
_HEADER: Final = {"format": FORMAT, "schema": 3}
NOUN: Final = "group certificate"
_SIGNS: Final = {"[": 200, "{": 200, ",": 30 * MOST_GROUPS}
# follows from the rest
_DERIVED: Final = ("budget",)
_KINDS: Final[dict[str, Any]] = {
    "n": np.int64,
    "digest": np.uint64,
    "crossing": np.int64,
    "errors": np.int64,
    "separable": np.int64,
}


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What the certificates of many groups say: a place for each group, and where rows, normal first.

    `n`, `digest`, `crossing` are those of the evidence, `errors` the calibration points that the rule
    misjudges, `rate`, `delta` and `budget` those of the budgets, `thresholds` alarm_from and clear_below,
    `rule` normal_below and anomaly_from, `ceilings` and `deltas` those certified. NaN or -1 stand for None.
    """

    n: Counts
    digest: Sums
    crossing: Counts
    errors: Counts
    rate: Numbers
    delta: Numbers
    budget: Counts
    thresholds: Numbers
    rule: Numbers
    ceilings: Numbers
    deltas: Numbers
    separable: Counts

    @property
    def size(self) -> int:
        """How many groups there are."""
        return int(self.n.shape[1])

    @property
    def vacuous(self) -> NDArray[np.bool_]:
        """Which groups have too few labels of a promised class."""
        few: NDArray[np.bool_] = ((self.budget == NO_COUNT) & ~np.isnan(self.rate)).any(axis=0)
        return few

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Which groups are promised less than was asked for."""
        uncertified: NDArray[np.bool_] = np.isnan(self.deltas[0])
        return self.vacuous | uncertified

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Of which class each group has labels enough for its promise, even if the other lacks them."""
        unknown = np.isnan(self.ceilings) | np.isnan(self.deltas[0])
        promised: NDArray[np.bool_] = (self.budget != NO_COUNT) & ~unknown
        return promised

    @property
    def watchable(self) -> NDArray[np.bool_]:
        """Which groups have a promise that can be broken: a ceiling, and a verdict that is given at all."""
        given = np.stack([self.rule[1] < inf, self.rule[0] > -inf])
        promised = (given & ~np.isnan(self.ceilings)).any(axis=0) & ~np.isnan(self.deltas[0])
        return np.asarray(promised)

    def at(self, place: int, request: "Request", score_type: ScoreType) -> Certificate:
        """Return the certificate of a group, as `calibrate` makes it."""
        certified, asked, clauses = not isnan(self.deltas[0, place]), request.guarantee, []
        for label, one in enumerate(asked_of(asked)):
            edge = self.thresholds[label, place].item()
            edge = 0.0 if isnan(edge) else edge
            found = Found(
                self.rate[label, place].item(),
                self.delta[label, place].item(),
                self.budget[label, place].item(),
                # the least threshold above a number next to zero is -0.0, and has a key of its own
                order_key(edge) - (not edge and copysign(1.0, edge) < 0.0),
                self.ceilings[label, place].item(),
                self.deltas[label, place].item(),
            )
            points = self.n[label, place].item(), as_digest(self.digest[label, place].item())
            beyond = none_of(self.crossing[label, place].item())
            clauses.append(clause_of(one, found, points, beyond, certified=certified))
        separable = none_of(self.separable[place].item())
        return Certificate(
            guarantee=asked,
            overlap=request.overlap,
            clauses=tuple(clauses),
            rule=Rule(*self.rule[:, place].tolist()),
            score_type=score_type,
            separable=None if separable is None else bool(separable),
            assumptions=assumed(OF_DRAWS, **asked.rooms),
        )

    def same(self, other: "Columns") -> NDArray[np.bool_]:
        """Return where two tables of as many groups agree; rates, which are SciPy's, to the last digits."""
        agree = np.ones(self.size, dtype=bool)
        for column in fields(self):
            one, two = np.atleast_2d(getattr(self, column.name), getattr(other, column.name))
            if column.name in ("rate", "ceilings"):
                equal = np.isclose(one, two, rtol=1e-9, atol=0.0, equal_nan=True)
            else:
                equal = (one == two) | ((one != one) & (two != two))
            agree &= equal.all(axis=0)
        return agree

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns) or other.size != self.size:
            return NotImplemented if not isinstance(other, Columns) else False
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return all(np.array_equal(one, two, equal_nan=one.dtype.kind == "f") for one, two in pairs)

    def __hash__(self) -> int:
        return hash((self.size, int(self.digest.sum())))


def joined(parts: Iterable[Columns]) -> Columns:
    """Return the columns of several tables of groups as one."""
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    names = [field.name for field in fields(Columns)]
    return Columns(*(np.concatenate([getattr(one, name) for one in listed], axis=-1) for name in names))


def permuted(columns: Columns, order: NDArray[np.intp]) -> Columns:
    """Return the columns with the groups in another order."""
    return Columns(*(getattr(columns, field.name)[..., order] for field in fields(columns)))


def shares_of(asked: Guarantee, overlap: Overlap, n: Counts, pool: bool) -> tuple[float, float]:
    """Return the deltas of each group with which all groups keep what is asked together: eqs. (111) to (113).

    They depend on the numbers of labels alone, in whatever order the groups come.

    >>> n = np.array([[300, 300, 20], [300, 40, 20]])
    >>> shares_of(Guarantee(), Abstain(), n, pool=False)
    (0.03406, 0.05)
    """
    promises = asked.fpr, asked.fnr
    equal = [shared_together(delta, n.shape[1]) for delta in (asked.delta_fpr, asked.delta_fnr)]
    if not isinstance(overlap, Abstain | Hold):
        return equal[0], equal[1]
    found = [asked.delta_fpr, asked.delta_fnr]
    while True:
        before = found[0], found[1]
        for label, sizes in enumerate(_samples(asked, n, before, pool)):
            promise = promises[label]
            if promise is None:
                found[label] = equal[label]
            elif promise.name in overlap.keeps:
                found[label] = common_share(sizes, promise.at_calibration, promise.delta, before[label])
        # a lower delta leaves more groups to the pool, so that another one may be needed
        if not pool or before == (found[0], found[1]):
            break
    for label, promise in enumerate(promises):
        if promise is not None and promise.name not in overlap.keeps:
            found[label] = _counted_share(asked, n, label, found[1 - label])
    return found[0], found[1]


def are_kept(asked: Guarantee, overlap: Overlap, n: Counts, pool: bool, shares: tuple[float, float]) -> bool:
    """Return whether all groups keep what is asked together if each has these deltas: eqs. (111) to (113)."""
    samples = _samples(asked, n, shares, pool)
    for label, promise in enumerate((asked.fpr, asked.fnr)):
        delta = (asked.delta_fpr, asked.delta_fnr)[label]
        if shares[label] <= shared_together(delta, n.shape[1]):
            continue
        if promise is None or not isinstance(overlap, Abstain | Hold):
            return False
        if promise.name in overlap.keeps:
            if not keeps_together(samples[label], promise.at_calibration, shares[label], promise.delta):
                return False
        elif shares[label] > _counted_share(asked, n, label, shares[1 - label]):
            return False
    return True


def _counted_share(asked: Guarantee, n: Counts, label: int, held: float) -> float:
    """Return the delta of the class that `hold` counts, where the other, held one has its own: eq. (112)."""
    other, promise = (asked.fpr, asked.fnr)[1 - label], (asked.fpr, asked.fnr)[label]
    assert other is not None  # nothing is held with a single ceiling
    assert promise is not None
    counted = (n[1 - label] >= min_samples(other.at_calibration, held)) & (n[label] > 0)
    return shared_together(promise.delta, int(np.count_nonzero(counted)))


def _samples(asked: Guarantee, n: Counts, shares: tuple[float, ...], pool: bool) -> tuple[Counts, Counts]:
    """Return the sizes of the samples of each class that have a promise, the pool being one of them."""
    if not pool:
        return n[0], n[1]
    least = [
        0 if promise is None else min_samples(promise.at_calibration, share)
        for promise, share in zip((asked.fpr, asked.fnr), shares, strict=True)
    ]
    few = (n < np.array(least)[:, None]).any(axis=0)
    together = n[:, few].sum(axis=1)
    if not few.any() or (together < least).any():  # then each group keeps what its own labels promise
        return n[0], n[1]
    normal, anomalous = (np.append(n[label, ~few], together[label]) for label in (0, 1))
    return normal, anomalous


@dataclass(frozen=True, slots=True)
class Head(Traced):
    """What the certificates of all groups share."""

    asked: Guarantee
    overlap: Overlap
    together: bool
    score_type: ScoreType = "float64"
    pool: Certificate | None = None
    # the deltas of each group where all hold together, those of the FPR and of the FNR
    shares: tuple[float, float] | None = None
    assumptions: tuple[Assumption, ...] = OF_DRAWS
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False, metadata={"optional": True})


def with_shares(asked: Guarantee, shares: tuple[float, float] | None) -> Guarantee:
    """Return what each group is asked for, with its share of delta where all are to keep it together.

    >>> with_shares(Guarantee(), (0.001, 0.002)).delta_fnr
    0.002
    """
    return asked if shares is None else replace(asked, delta_fpr=shares[0], delta_fnr=shares[1])


def written(head: dict[str, Any], groups: tuple[Group, ...], columns: Columns) -> str:
    """Return the text of a file: a line for each column, with a single value where all groups have it."""
    body: dict[str, Any] = {"groups": list(groups)}
    for column in fields(columns):
        if column.name not in _DERIVED:
            array = getattr(columns, column.name)
            rows = [_packed(row, column.name) for row in np.atleast_2d(array)]
            body[column.name] = rows if array.ndim == 2 else rows[0]
    content = _HEADER | head | body
    lines = [f"  {json.dumps(name)}: {_compact(value)}" for name, value in content.items()]
    lines.append(f'  "checksum": "{checksum(content)}"')
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    if len(text) > MOST_BYTES:
        raise InputError(
            f"a file of {len(groups):,} groups would have {len(text):,} bytes, and at most {MOST_BYTES:,} are"
            " read; divide the groups between several certificates"
        )
    return text


def read(text: str | bytes) -> tuple[dict[str, Any], tuple[Group, ...], Columns]:
    """Return the head, the groups and the columns of a file, or raise a CertificateError."""
    content = content_of(text, _HEADER, NOUN, MOST_BYTES, _SIGNS)
    groups = _groups(content.pop("groups", None))
    arrays: dict[str, Any] = {}
    for column in fields(Columns):
        if column.name in _DERIVED:
            continue
        value = content.pop(column.name, None)
        if column.name == "separable":
            arrays[column.name] = _unpacked(value, column.name, len(groups))
            continue
        if not isinstance(value, list) or len(value) != 2:
            raise CertificateError(f"{NOUN}.{column.name} must be a list of two, normal first")
        arrays[column.name] = np.stack([_unpacked(one, column.name, len(groups)) for one in value])
    try:
        budget = np.stack(
            [_budgets(*(arrays[name][label] for name in ("n", "rate", "delta"))) for label in (0, 1)]
        )
    except InputError as error:
        raise CertificateError(f"the {NOUN} is not possible: {error}") from error
    return content, groups, Columns(budget=budget, **arrays)


def problems(head: Head, groups: tuple[Group, ...], columns: Columns, request: "Request") -> Iterator[str]:
    """Yield what in a certificate of groups contradicts itself; `request` is that of each group."""
    yield from version_problems(head.version)
    if head.assumptions not in (assumed(one, **head.asked.rooms) for one in (OF_DRAWS, OF_SUBJECTS)):
        yield "these are not the assumptions of draws"
    if (head.shares is not None) is not head.together:
        yield "groups that hold together have shares of delta, and others have none"
    elif head.shares is not None and not are_kept(
        head.asked, head.overlap, columns.n, head.pool is not None, head.shares
    ):
        yield "with these shares of delta, groups of these sizes do not hold together"
    yield from _column_problems(columns, groups, request, head.score_type)
    if head.pool is None:
        return
    few = columns.n[:, columns.vacuous].sum(axis=1).tolist()
    if few != [head.pool.fpr.n, head.pool.fnr.n]:
        yield "the pool does not hold the points of the groups with too few labels"
    if (head.pool.guarantee, head.pool.overlap) != (request.guarantee, request.overlap):
        yield "the pool was not asked for what the groups were"
    yield from (f"the pool: {problem}" for problem in inconsistencies(head.pool))


def _column_problems(
    columns: Columns, groups: tuple[Group, ...], request: "Request", kind: ScoreType
) -> Iterator[str]:
    asked = asked_of(request.guarantee)
    edges = np.where(np.isnan(columns.thresholds), 0.0, columns.thresholds)
    certified = ~np.isnan(columns.deltas[0])
    told = Told(
        n=columns.n,
        found=[
            Found(
                columns.rate[p],
                columns.delta[p],
                columns.budget[p],
                keys,
                columns.ceilings[p],
                columns.deltas[p],
            )
            for p, keys in enumerate(map(order_keys, edges))
        ],
        edges=columns.thresholds,
        beyond=columns.crossing,
        rule=(columns.rule[0], columns.rule[1]),
        certified=certified,
        separable=columns.separable,
        score_type=kind,
    )
    misjudged = (columns.errors < 0) | (columns.errors > columns.n)
    few = np.maximum(columns.budget, 0)
    single = isinstance(request.overlap, Abstain) & ~np.isnan(columns.rate)
    checks = (
        (misjudged.any(axis=0), "there cannot be so many errors"),
        ((single & (columns.errors > few)).any(axis=0), "the rule has more errors than its budget"),
        (((columns.n == 0) & (columns.digest != 0)).any(axis=0), "the digest of no scores is 0"),
        ((certified != ~np.isnan(columns.deltas[1])), "what is certified has two deltas"),
    )
    for wrong, text in (*checks, *contradictions(asked, request.overlap, told)):
        for place in np.flatnonzero(np.broadcast_to(wrong, columns.size))[:1].tolist():
            yield f"group {shown(groups[place])}: {text}"


def _budgets(n: Any, rate: Any, delta: Any) -> Any:
    found = np.full(n.size, NO_COUNT)
    promised = np.flatnonzero(~np.isnan(rate))
    asked = list(zip(n[promised].tolist(), rate[promised].tolist(), delta[promised].tolist(), strict=True))
    errors = {one: Budget.of(*one).errors for one in set(asked)}
    found[promised] = [NO_COUNT if errors[one] is None else errors[one] for one in asked]
    return found


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
    """Return a row of a column as JSON has it: one value if all are the same."""
    same = row.size > 0 and bool((row == row[0]).all() or (row != row).all())
    listed = (row[:1] if same else row).tolist()
    if name == "digest":
        digits = np.array(listed, dtype=">u8").tobytes().hex()
        listed = [digits[start : start + 16] for start in range(0, len(digits), 16)]
    elif row.dtype.kind == "f":
        if any(map(is_flushed, listed)):
            raise CertificateError(
                f"{name} holds a subnormal number, which this process would write as 0, since it flushes"
                " them; call torch.set_flush_denormal(False) before you save"
            )
        listed = [_plain(one) for one in listed]
    elif (row < 0).any():
        listed = [None if one == NO_COUNT else one for one in listed]
    return listed[0] if same else listed


def _unpacked(value: Any, name: str, size: int) -> Any:
    """Return a row of a column; anything that is none is refused."""
    kind = _KINDS.get(name, np.float64)
    listed = value if isinstance(value, list) else [value]
    if isinstance(value, list) and len(value) != size:
        raise CertificateError(
            f"{NOUN}.{name} must have a place for each of {size:,} groups, got {len(value):,}"
        )
    try:
        if name == "digest":
            array = np.frombuffer(_bytes(listed), dtype=">u8").astype(kind)
        elif kind is np.int64:
            array = np.array([NO_COUNT if one is None else _count(one) for one in listed], dtype=kind)
        else:
            array = np.array([_number(one) for one in listed], dtype=kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise CertificateError(f"{NOUN}.{name} is not a column of its kind: {error}") from error
    return array if isinstance(value, list) else np.repeat(array, size)


def _bytes(digests: list[Any]) -> bytes:
    digits = "".join(digests)
    if set(map(len, digests)) != {16} or not digits.isalnum() or digits != digits.lower():
        raise ValueError("a digest has 16 hexadecimal digits")
    return bytes.fromhex(digits)


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


def _plain(value: float) -> Any:
    if value != value:
        return None
    return ("inf" if value > 0 else "-inf") if isinf(value) else value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
