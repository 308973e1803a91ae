"""What labels can promise, and how many are likely to be needed, for the terminal."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table

from pac_wrap.base.floats import rounded_down, rounded_up
from pac_wrap.method.planning.plan import MOST_ERRORS, Need, Pilot, needed, stopping
from pac_wrap.method.promise import Guarantee, Promise
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.tails.binomial import cdf
from pac_wrap.tails.bounds import Budget, achievable_rate

CEILINGS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
CHANCES: Final = (0.5, 0.8, 0.9, 0.95)
# true rates that are planned for, as shares of a ceiling
SHARES: Final = (0.1, 0.2, 0.4, 0.6, 0.8)
POWER: Final = 0.9


def show_affordable(
    normal: int | None, anomalous: int | None, delta: float, asked: Sequence[float] = ()
) -> RenderableType:
    """Return which ceilings so many labels of each class can keep, and how many errors each tolerates.

    >>> show_affordable(None, 140, 0.05).row_count
    8
    """
    given = (("FPR", "normal", normal), ("FNR", "anomalous", anomalous))
    sides = [(name, kind, n) for name, kind, n in given if n is not None]
    table = Table(title=f"what can be promised, at delta = {rounded_up(delta)} each", title_justify="left")
    table.add_column("ceiling", justify="right")
    for name, kind, n in sides:
        least = f"from {rounded_up(achievable_rate(n, delta))} on" if n else "nothing yet"
        table.add_column(f"{name}: errors tolerated\namong {n:,} {kind},\n{least}", justify="right")
    for rate in sorted({*CEILINGS, *asked}):
        table.add_row(rounded_up(rate), *(_tolerated(Budget.of(n, rate, delta)) for _, _, n in sides))
    return table


def show_pilot(pilot: Pilot, guarantee: Guarantee) -> RenderableType:
    """Return how many fresh labels make it likely that one threshold keeps both ceilings: eq. (45)."""
    sides = list(zip(guarantee.promises, (pilot.normal, pilot.anomalous), strict=True))
    columns = [needed(promise, CHANCES, counted.within) for promise, counted in sides]
    table = Table(title="fresh labels until a promise is likely", title_justify="left")
    table.add_column("chance", justify="right")
    for promise, _ in sides:
        table.add_column(
            f"{promise.of.label} labels for\n{_asked(promise)}\n(errors tolerated)", justify="right"
        )
    for row, chance in enumerate(CHANCES):
        table.add_row(f"{100 * chance:.0f} %", *(_need(column[row]) for column in columns))
    found = [
        f"{promise.of.label}: {counted.errors:,} of {counted.n:,} are errors there;"
        f" {promise.name} <= {rounded_up(promise.ceiling)} has a chance of"
        f" {rounded_down(counted.below(promise.at_calibration), 100, 3)} %"
        for promise, counted in sides
    ]
    if any(None in column for column in columns):
        found.append(f"-: with no budget of up to {MOST_ERRORS:,} errors")
    return Group(
        f"the pilot's best threshold is {pilot.threshold!r}",
        *found,
        table,
        "Chances are those of each class by itself, from the pilot alone (Jeffreys' prior): a forecast and no"
        " promise, and a little rosy, since the pilot also chose the threshold.",
    )


def show_sequential(
    guarantee: Guarantee, looks: Looks, rates: Sequence[float] | None = None
) -> RenderableType:
    """Return when labels that are looked at as they come are likely to suffice, at a few true rates."""
    return Group(
        *(_sequential(promise, looks, rates) for promise in guarantee.promises),
        "True rates are those at the threshold that is looked at; which points are labelled must not depend"
        " on their scores. All at once: labels for one single look that succeeds with a chance of 90 %.",
    )


def _sequential(promise: Promise, looks: Looks, rates: Sequence[float] | None) -> RenderableType:
    table = Table(title=f"{promise.of.label} labels until {_asked(promise)}", title_justify="left")
    for name in ("true rate", "median", "90 % of runs", "expected", "success", "all at once"):
        table.add_column(name, justify="right")
    for rate in rates or [share * promise.at_calibration for share in SHARES]:
        found = stopping(promise, looks, rate)
        single = needed(promise, [POWER], partial(cdf, p=rate))[0]
        numbers = found.quantile(0.5), found.quantile(0.9), round(found.expected)
        table.add_row(
            f"{rate:.4g}",
            *map(_number, numbers),
            f"{rounded_down(found.success, 100, 3)} %",
            _number(None if single is None else single.labels),
        )
    first = next((n for n in looks.looks if looks.budget(promise, n).errors is not None), None)
    begins = "none has a budget" if first is None else f"the first that can succeed is at {first:,}"
    return Group(
        table,
        f"a look at every {looks.every:,} labels up to {looks.up_to:,}, one delta for all: local delta"
        f" {rounded_up(looks.local(promise))}; {begins}",
    )


def _asked(promise: Promise) -> str:
    room = "" if promise.room is None else f",\nwith room for {promise.room}"
    return f"{promise.name} <= {rounded_up(promise.ceiling)}, delta = {rounded_up(promise.delta)}{room}"


def _tolerated(budget: Budget) -> str:
    if budget.errors is None:
        return f"too few, {budget.missing:,} missing"
    return f"{budget.errors:,} ({rounded_down(budget.errors / budget.n, 100, 3)} %)"


def _need(need: Need | None) -> str:
    return "-" if need is None else f"{need.labels:,} ({need.errors:,})"


def _number(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"
