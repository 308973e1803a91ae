"""How many labels a low false alarm rate takes: alarms reviewed from the top, or points at random."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import beta, binom, norm

from benchmarks.peers import left_out, missing
from benchmarks.record import Aim, Measure, Result
from benchmarks.timing import Scale
from pac_wrap import Guarantee, ReviewQueue, Reviews
from pac_wrap.method.curves.band import band_of

CEILINGS = (1e-3, 1e-4)
DELTA = 0.05
POWER = 0.9
# shares of anomalies in traffic; a user states twice as many at most
SHARES = (0.01, 0.1)
DISTANCE = 3.0
# MAPIE's controllers try a hundred thresholds; the one in question is the 25th from the top
GRID, PLACE = 100, 25
# simulated runs at each ceiling
DRAWS = (200, 40)
OURS = "PAC-Wrap, reviewed from the top"
RANDOM = "PAC-Wrap, at random"
ABOUT = """\
One task for all: certify, at delta = {delta}, that at most the ceiling of normal points raise an alarm, and
raise alarms, with a chance of {power} (the power), from a threshold on whose true false positive rate is half
the ceiling. Normal scores are N(0, 1) and anomalous ones N({distance:g}, 1); their share is 1 % unless said.
*Labels* are the points that somebody has to look at, *rows* the unlabelled traffic that is needed beside.

*Reviewed from the top* is `ReviewQueue` with `max_fpr`, until no further review can lower the threshold. It
is told that at most twice the true share of points are anomalies. Its labels are one wrong alarm more than
the budget allows, and all anomalies above these: the more anomalies, the more labels. Without any review no
amount of traffic is enough here, since the anomalies alone raise more alarms than the ceiling. *At
random*: one label in a hundred falls on an anomaly, and says nothing about false alarms. MAPIE's controllers
try {grid} thresholds, spread evenly where the rate is at most twice the ceiling; what they tolerate is read
off the package's own test. nonconform needs Python 3.12, so its row is the formula it publishes: a band of
Kolmogorov and Smirnov at every threshold at once, with the quantile by its expansion where the package
simulates it. crepes promises less: that the rate is below the ceiling *on average* over calibrations.

*Labels*, *rows* and *chance above*, the chance that the true rate exceeds the ceiling, are exact: they follow
from binomial tails, and the mean number of reviews from one integral. The two *simulated* columns are means
of {draws} runs of the packages themselves. Where bounds hold at every threshold, or are shared among many,
one error budget does not say how often they fail: a dash."""


@dataclass(frozen=True)
class Method:
    """Whether k errors among n points keep a ceiling, and the share of points that are one at half of it."""

    keeps: Callable[[int, int, float], bool]
    share: float = 1.0

    def least(self, errors: int, ceiling: float) -> int:
        """Return the least n of which so many errors keep the ceiling."""
        high = max(1, ceil(errors / ceiling))
        while not self.keeps(errors, high, ceiling):
            high *= 2
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.keeps(errors, middle, ceiling) else (middle, high)
        return high

    def power(self, errors: int, n: int, ceiling: float) -> float:
        """Return the chance that a threshold at half the ceiling has no more errors."""
        return float(binom.cdf(errors, n, self.share * ceiling / 2))

    def enough(self, ceiling: float) -> tuple[int, int]:
        """Return the least n with the power, and its budget, which has the most power at its least n."""

        def powerful(errors: int) -> bool:
            return self.power(errors, self.least(errors, ceiling), ceiling) >= POWER

        low, high = -1, 1
        while not powerful(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if powerful(middle) else (middle, high)
        return self.least(high, ceiling), high


def reviewed(share: float) -> Method:
    """Return our promise of an FPR from traffic with a share of anomalies, with twice as many allowed."""

    def keeps(errors: int, n: int, ceiling: float) -> bool:
        budget = promised(ceiling, share).promises[0].budget(n).errors
        return budget is not None and errors <= budget

    return Method(keeps, 1.0 - share)


def promised(ceiling: float, share: float) -> Guarantee:
    """Return what is asked of traffic."""
    return Guarantee(max_fpr=ceiling, max_fnr=None, delta_fpr=DELTA, reviews=Reviews(max_anomalies=2 * share))


def random_labels(errors: int, n: int, ceiling: float) -> bool:
    """Return whether `calibrate` allows so many errors among n normal points."""
    asked = Guarantee(max_fpr=ceiling, max_fnr=None, delta_fpr=DELTA)
    budget = asked.promises[0].budget(n).errors
    return budget is not None and errors <= budget


def every_threshold(errors: int, n: int, ceiling: float) -> bool:
    """Return whether the bound of `certify_curve` at so many errors is within the ceiling."""
    return bool(band_of(n, DELTA).of([errors])[0] <= ceiling)


def smirnov(errors: int, n: int, ceiling: float) -> bool:
    """Return whether the rate and the width of a one-sided Kolmogorov-Smirnov band are within the ceiling.

    The quantile of the width has an error of order n^(-3/2): SciPy's `ksone` needs minutes at this n.
    """
    return errors / n + sqrt(-log(DELTA) / (2 * n)) - 1 / (6 * n) <= ceiling


def on_average(errors: int, n: int, ceiling: float) -> bool:
    """Return whether the p-value of a point with so many normal scores above it is within the ceiling."""
    return (errors + 1) / (n + 1) <= ceiling


def controlled(errors: int, n: int, ceiling: float, level: float = DELTA) -> bool:
    """Return whether MAPIE's test of one threshold accepts so many errors."""
    return bool(_p_values(np.array([errors]), n, ceiling)[0] <= level)


def _p_values(errors: NDArray[Any], n: int, ceiling: float) -> NDArray[np.float64]:
    methods: Any = import_module("mapie.risk_control.methods")
    found = methods.compute_hoeffding_bentkus_p_value(errors / n, n, ceiling, binary=True)
    return np.asarray(found[:, 0], dtype=np.float64)


class Holm(Method):
    """MAPIE's default: of the thresholds that are left, the best is tested with delta shared among them."""

    def __init__(self) -> None:
        last = DELTA / (GRID - PLACE + 1)
        super().__init__(lambda errors, n, ceiling: controlled(errors, n, ceiling, last))

    def power(self, errors: int, n: int, ceiling: float) -> float:
        """Return the chance that the thresholds down to the one in question are all accepted in their turn.

        Errors of lower thresholds include those of higher ones, so the tests follow the order of the grid.
        """
        counts = np.arange(errors + 1)
        values = _p_values(counts, n, ceiling)
        step = 2 * ceiling / GRID
        chance = np.zeros(errors + 1)
        chance[0] = 1.0
        for place in range(1, PLACE + 1):
            # of the points that raise no alarm yet, each does so here with this chance
            more = step / (1 - (place - 1) * step)
            moved = sum(
                chance[k] * np.pad(binom.pmf(counts[: errors + 1 - k], n - k, more), (k, 0))
                for k in range(errors + 1)
                if chance[k]
            )
            chance = np.where(values <= DELTA / (GRID - place + 1), moved, 0.0)
        return float(chance.sum())


def simulated_control(n: int, ceiling: float, draws: int) -> float:
    """Return the share of draws in which MAPIE's controller accepts the threshold in question."""
    control: Any = import_module("mapie.risk_control._base_controller")
    random = np.random.default_rng(0)
    step, passed = 2 * ceiling / GRID, 0
    for _ in range(draws):
        errors = np.cumsum(random.multinomial(n, [*[step] * GRID, 1 - GRID * step])[:GRID])
        sizes = np.full((1, GRID), float(n))
        valid, _ = control.ltt_procedure(errors[np.newaxis] / n, np.array([[ceiling]]), DELTA, sizes, True)
        passed += PLACE - 1 in valid[0]
    return passed / draws


def expected_reviews(n: int, errors: int, share: float) -> float:
    """Return the mean number of reviews: one wrong alarm more than the budget, and the anomalies above them.

    The share of all points that are normal and at or above the last wrong one has the law Beta(k + 1, n - k).
    """

    def anomalies(rate: float) -> float:
        last = norm.isf(min(1.0, rate / (1 - share)))
        return float(share * norm.sf(last - DISTANCE) / (1 - rate))

    law = beta(errors + 1, n - errors)
    low, high = law.ppf([1e-12, 1 - 1e-12])
    mean, _ = quad(lambda rate: anomalies(rate) * law.pdf(rate), low, high)
    return errors + 1 + (n - errors - 1) * float(mean)


def simulated_reviews(n: int, ceiling: float, share: float, draws: int) -> tuple[float, float]:
    """Return the mean number of reviews, and the share of runs whose threshold alarms at half the ceiling."""
    random = np.random.default_rng(0)
    half = float(norm.isf(ceiling / 2))
    reviews, passed = 0, 0
    for _ in range(draws):
        anomaly = random.random(n) < share
        queue = ReviewQueue(random.normal(DISTANCE * anomaly), promised(ceiling, share))
        while not queue.done:
            rows = queue.next(1000)
            # stop as soon as so many are wrong that no further review helps
            rows = rows[: np.searchsorted(np.cumsum(~anomaly[rows]), queue.wrong_left or 0) + 1]
            queue.add(rows, anomaly[rows])
        reviews += int(np.isfinite(queue.reviews).sum())
        passed += queue.certificate.rule.anomaly_from <= half
    return reviews / draws, passed / draws


def exact(errors: int, n: int, ceiling: float) -> bool:
    """Return whether the exact binomial tail, here SciPy's, allows so many errors."""
    return bool(binom.cdf(errors, n, ceiling) <= DELTA)


def methods() -> dict[str, tuple[Method, bool]]:
    """Return the methods that need labels at random, and whether one budget says how often they fail."""
    found: dict[str, tuple[Method, bool]] = {
        RANDOM: (Method(random_labels), True),
        "the same, every threshold at once": (Method(every_threshold), False),
    }
    if not missing("mapie"):
        found["MAPIE, controller"] = Holm(), False
        found["MAPIE, controller, fixed sequence"] = Method(controlled), True
    found["nonconform, every threshold at once"] = Method(smirnov), False
    if not missing("crepes"):
        found["crepes, on average over calibrations"] = Method(on_average), True
    return found


def row(name: str, ceiling: float, cells: dict[str, float | None], least: float) -> list[Measure]:
    """Return the cells of a method at a ceiling; ours have aims."""
    bound = Aim("=" if name == RANDOM else "<=", least)
    aims = {"labels": bound, "chance above": Aim("<=", DELTA)} if name.startswith("PAC-Wrap") else {}
    return [
        Measure(f"{ceiling:g}: {name}", column, value, "labels", aims.get(column))
        for column, value in cells.items()
    ]


def measure(scale: Scale) -> Result:
    """Return the numbers of all methods."""
    ceilings: tuple[float, ...] = scale.pick((0.05,), CEILINGS, CEILINGS)
    draws = scale.pick((2,), DRAWS, DRAWS)
    measures: list[Measure] = []
    for ceiling, runs in zip(ceilings, draws, strict=True):
        least = ceil(Method(exact).enough(ceiling)[0] / (1 - SHARES[0]))
        for share in SHARES:
            n, errors = reviewed(share).enough(ceiling)
            looked, power = simulated_reviews(n, ceiling, share, runs)
            cells: dict[str, float | None] = {
                "labels": expected_reviews(n, errors, share),
                "rows": n,
                "chance above": float(binom.cdf(errors, n, ceiling * (1 - share))),
                "simulated labels": looked,
                "simulated power": power,
            }
            measures += row(f"{OURS}, {100 * share:g} % anomalies", ceiling, cells, least)
        for name, (method, single) in methods().items():
            n, errors = method.enough(ceiling)
            cells = {
                "labels": ceil(n / (1 - SHARES[0])),
                "rows": 0,
                "chance above": float(binom.cdf(errors, n, ceiling)) if single else None,
                "simulated power": simulated_control(n, ceiling, runs) if isinstance(method, Holm) else None,
            }
            measures += row(name, ceiling, cells, least)
    return Result(
        "reviewed",
        "Labels for a low false alarm rate",
        ABOUT.format(
            delta=DELTA, power=POWER, distance=DISTANCE, draws=" and ".join(map(str, draws)), grid=GRID
        ),
        scale.name,
        measures=tuple(measures),
        left_out=left_out(),
    )
