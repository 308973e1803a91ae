"""The strategy for labels that arrive one by one: requested ceilings, with one delta for all looks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar

from pac_wrap.base.arguments import as_float
from pac_wrap.base.floats import order_key, unsigned_zero
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.strategies import interface
from pac_wrap.method.strategies.interface import Asked, Claim, Decision, Key, Ranks, Strategy, one_threshold
from pac_wrap.tails.bounds import Budget, error_budget, exact_confidence
from pac_wrap.tails.levels import local_delta, looks_of


@dataclass(frozen=True, slots=True)
class Looks(Strategy):
    """Keep the requested ceilings at any look: the budget of each look has a local delta, eq. (38).

    There is a look at a class whenever `every` more of its points are labelled. One delta covers all looks,
    so the certificate of any look holds with the requested delta, and you may keep the first that succeeds:
    eq. (39). Between two looks the budget is that of the last one, eq. (43). `LabelUntil` makes the looks.

    Parameters
    ----------
    every : int
        The number of labels of a class from one look to the next.
    up_to : int
        The number of labels of a class at its last look.
    threshold : float, optional
        The single threshold to certify, fixed before any score was seen. By default it is found by rank, with
        abstention between two thresholds if the classes overlap.

    Examples
    --------
    >>> from pac_wrap import calibrate
    >>> certificate = calibrate(range(200), range(300, 500), overlap=Looks(every=20, up_to=2000))
    >>> certificate.fpr.budget.delta, certificate.fpr.budget.errors
    (0.0074044621, 2)
    """

    tag: ClassVar[str] = "looks"
    single: ClassVar[bool] = False
    multiplies: ClassVar[bool] = True
    one_sided: ClassVar[bool] = True
    fixed_sizes: ClassVar[bool] = False
    choices: ClassVar[str] = "look"
    unreached: ClassVar[str] = "the errors at the given threshold exceed their budgets"
    needs_more_labels = "All looks share one delta, so more labels are needed than with a single look."
    every: int = 20
    up_to: int = 2000
    threshold: float | None = field(default=None, metadata={"optional": True})

    def __post_init__(self) -> None:
        object.__setattr__(self, "every", looks_of(self.every, self.up_to).start)
        object.__setattr__(self, "up_to", int(self.up_to))
        if self.threshold is not None:
            tau = as_float(self.threshold)
            if not isfinite(tau):
                raise InputError(
                    f"threshold must be a finite number, or None to find it, got {quoted(self.threshold)}"
                )
            object.__setattr__(self, "threshold", unsigned_zero(tau))

    def at_score(self, claim: Claim) -> bool:
        return self.threshold is None

    @property
    def looks(self) -> range:
        """How many labels of a class there are at each look."""
        return looks_of(self.every, self.up_to)

    def tried(self, asked: Guarantee, sizes: tuple[int, int]) -> int:
        return len(self.looks)

    def local(self, promise: Promise) -> float:
        """Return the local delta of a promise: eq. (41)."""
        return local_delta(promise.at_calibration, promise.delta, self.every, self.up_to)

    def budget(self, promise: Promise, n: int) -> Budget:
        """Return the error budget of n points, that of the last look among them: eqs. (38) and (43)."""
        look = min(n, self.up_to) // self.every * self.every
        local = self.local(promise)
        rate = promise.at_calibration
        errors = error_budget(look, rate, local)
        return Budget(n, rate, local, errors, exact_confidence(n, rate, errors))

    def decide(self, asked: Sequence[Asked], ranks: Ranks) -> Decision:
        found = interface.kept(asked, ranks, self.budget)
        if self.threshold is None:
            return interface.between(asked, found, ranks)
        within: Any = True
        for one, own in zip(asked, found, strict=True):
            if own is not None:
                within = within & is_within(self.threshold, own.key, normal=one.normal)
        bound = interface.binding(asked, found, "normal"), interface.binding(asked, found, "anomalous")
        alarm, clear = (one and one[1] for one in bound)
        return Decision(found, *one_threshold(order_key(self.threshold), within), alarm, clear, within)

    def summary(self, claim: Claim) -> str:
        return (
            f"looks at every {self.every:,} labels of a class up to {self.up_to:,}, one delta for all"
            f"{self._where}; the choice of labelled points must not depend on their scores"
        )

    def explanation(self, claim: Claim) -> Iterator[str]:
        local = " and ".join(f"{self.local(promise):g} ({promise.name})" for promise in claim.asked)
        yield (
            f"The labels were looked at as they came, every {self.every:,} of a class up to {self.up_to:,}."
            f" The budget of each look has a local delta of {local}, so that one delta covers all looks, and"
            " stopping at the first success costs nothing more. The exact confidence above is that of one"
            f" look{self._where}."
        )
        yield "This holds only if the choice of labelled points did not depend on their scores."

    @property
    def _where(self) -> str:
        return "" if self.threshold is None else f"; the threshold {self.threshold!r} was fixed beforehand"


def is_within(tau: float, key: Key, *, normal: bool) -> Any:
    """Return whether the errors of a class at one threshold are within their budget: eq. (42)."""
    return key <= order_key(tau) if normal else key >= order_key(tau)
