"""What is asked for or certified: two ceilings with their deltas, and the error budget each one allows."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

from pac_wrap.binomial import confidence, error_budget, min_samples, upper_bound
from pac_wrap.errors import InputError
from pac_wrap.foreign import quoted
from pac_wrap.inputs import check_count, check_rate

_LEAST_CEILING: Final = 1e-15


@dataclass(frozen=True, slots=True)
class Guarantee:
    """Ceilings of the two error rates on future data, each with its own delta.

    A ceiling of None promises nothing on that side; the other threshold then decides alone.

    >>> Guarantee(max_fpr=0.01, max_fnr=0.1).joint_delta
    0.1
    >>> Guarantee(max_fpr=0.01, max_fnr=None).joint_delta
    0.05
    """

    max_fpr: float | None = 0.05
    max_fnr: float | None = 0.05
    delta_fpr: float = 0.05
    delta_fnr: float = 0.05

    def __post_init__(self) -> None:
        if self.max_fpr is None and self.max_fnr is None:
            raise InputError("max_fpr and max_fnr are both None; promise at least one of them")
        for name in ("max_fpr", "max_fnr", "delta_fpr", "delta_fnr"):
            value = getattr(self, name)
            if value is not None or name.startswith("delta"):
                object.__setattr__(self, name, check_rate(name, value))
        for name in ("max_fpr", "max_fnr"):
            ceiling = getattr(self, name)
            if ceiling is not None and ceiling < _LEAST_CEILING:
                raise InputError(
                    f"{name} must be at least {_LEAST_CEILING}, got {ceiling!r};"
                    " no number of labels certifies less"
                )

    @property
    def joint_delta(self) -> float:
        """Chance that some promised ceiling does not hold, at most: eq. (12)."""
        promised = ((self.max_fpr, self.delta_fpr), (self.max_fnr, self.delta_fnr))
        return sum(delta for ceiling, delta in promised if ceiling is not None)

    def __str__(self) -> str:
        sides = (("FPR", self.max_fpr, self.delta_fpr), ("FNR", self.max_fnr, self.delta_fnr))
        return ", ".join(
            f"{name} <= {rounded_up(ceiling)} (confidence {rounded_down(confidence_left(delta))})"
            for name, ceiling, delta in sides
            if ceiling is not None
        )


def rounded_up(rate: float, unit: int = 1) -> str:
    """Return a ceiling or a delta with four digits, never below the true one; `unit` is 100 for percent.

    >>> rounded_up(0.758641), rounded_up(0.05), rounded_up(0.0431201, 100)
    ('0.7587', '0.05', '4.313')
    """
    return _written(Context(prec=4, rounding=ROUND_CEILING).multiply(Decimal(repr(float(rate))), unit))


def rounded_down(share: Decimal | float, unit: int = 1, digits: int = 6) -> str:
    """Return a confidence with so many digits, never above the true one; `unit` is 100 for percent.

    >>> rounded_down(0.95), rounded_down(0.999999999), rounded_down(0.957742, 100, 4)
    ('0.95', '0.999999', '95.77')
    """
    exact = share if isinstance(share, Decimal) else Decimal(repr(float(share)))
    return _written(Context(prec=digits, rounding=ROUND_FLOOR).multiply(exact, unit))


def confidence_left(*deltas: float) -> Decimal:
    """Return 1 minus the deltas, never more than that is; 0 where they leave nothing.

    >>> confidence_left(0.1, 0.2), confidence_left(0.6, 0.6)
    (Decimal('0.7'), Decimal('0'))
    """
    floor = Context(prec=28, rounding=ROUND_FLOOR)
    left = Decimal(1)
    for delta in deltas:
        left = floor.subtract(left, Decimal(repr(float(delta))))
    return max(left, Decimal(0))


def _written(number: Decimal) -> str:
    short = number.normalize()
    return f"{short:f}" if short == 0 or short.adjusted() > -20 else str(short)


@dataclass(frozen=True, slots=True)
class Budget:
    """The most errors that n points of one class may show under a ceiling, F(errors; n, rate) <= delta.

    `errors` is None where n is too small; `confidence` is the exact one, 1 - F(errors; n, rate).

    >>> Budget.of(2000, 0.05, 0.05).errors
    83
    >>> Budget.of(35, 0.05, 0.05).missing
    24
    """

    n: int
    rate: float
    delta: float
    errors: int | None
    confidence: float

    def __post_init__(self) -> None:
        check_count("n", self.n)
        check_rate("rate", self.rate)
        check_rate("delta", self.delta)
        if not 0.0 <= self.confidence <= 1.0:
            raise InputError(f"confidence must lie between 0 and 1, got {self.confidence!r}")

    @classmethod
    def of(cls, n: int, rate: float, delta: float) -> "Budget":
        """Return the budget of n points: eq. (2)."""
        errors = error_budget(n, rate, delta)
        return cls(n, rate, delta, errors, confidence(n, rate, errors))

    @classmethod
    def fpr(cls, n: int, guarantee: Guarantee, shares: int = 1) -> "Budget":
        """Return the budget of n normal points; `shares` divides delta among that many promises."""
        assert guarantee.max_fpr is not None
        return cls.of(n, guarantee.max_fpr, guarantee.delta_fpr / shares)

    @classmethod
    def fnr(cls, n: int, guarantee: Guarantee, shares: int = 1) -> "Budget":
        """Return the budget of n anomalous points; `shares` divides delta among that many promises."""
        assert guarantee.max_fnr is not None
        return cls.of(n, guarantee.max_fnr, guarantee.delta_fnr / shares)

    @classmethod
    def spent(cls, errors: int, n: int, delta: float) -> "Budget | None":
        """Return the smallest rate for which `errors` is within budget, or None if that is no less than 1.

        A rate below the least ceiling that can be asked for is raised to it.
        """
        rate = max(upper_bound(errors, n, delta), _LEAST_CEILING)
        return None if rate >= 1.0 else cls.of(n, rate, delta)

    @property
    def missing(self) -> int:
        """How many more labels the ceiling needs before anything can be declared."""
        return max(0, min_samples(self.rate, self.delta) - self.n)


def as_guarantee(given: Guarantee | None) -> Guarantee:
    """Return what was asked for: the usual promise for None, and nothing but a `Guarantee` else.

    >>> as_guarantee(None).max_fpr
    0.05
    """
    asked = Guarantee() if given is None else given
    if not isinstance(asked, Guarantee):
        raise InputError(f"guarantee must be a Guarantee, got {quoted(asked)}; write Guarantee(max_fpr=0.05)")
    return asked
