"""Groups under one rule for all and under a rule of their own, measured on points that calibrated neither."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pac_wrap.base.rounding import shared_together
from pac_wrap.errors import UpsideDownWarning, VacuousWarning
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.calibrate import calibrate_groups
from pac_wrap.method.groups.values import Lookup
from pac_wrap.method.metrics import Metrics, Rate, evaluate, is_exceeded
from pac_wrap.method.tails.binomial import sf_at_most
from pac_wrap.paper.studies.group_scores import Scored, Split
from pac_wrap.series.points import Points
from pac_wrap.series.windows import Indices

Rule = Literal["one", "own"]
RULES: Final[tuple[Rule, ...]] = ("one", "own")
# how often, in one division, kept ceilings of all groups together may be taken for exceeded
SIGNIFICANT: Final = 0.05


@dataclass(frozen=True, slots=True)
class Group:
    """The rates of a group under one rule for all and under its own, and what its own promises.

    `labels` are its calibration points of each class, `enough` says of which class they suffice, `pooled`
    that it follows the rule of all groups with too few, and `dependent` which class's points are worth less
    than they seem, so that a warning comes.
    """

    name: str
    one: Metrics
    own: Metrics
    labels: tuple[int, int]
    enough: tuple[bool, bool]
    pooled: bool
    dependent: tuple[bool, bool]

    @property
    def vacuous(self) -> bool:
        """Whether it has too few labels for the promises of its own."""
        return not all(self.enough)

    @property
    def promised(self) -> tuple[bool, bool]:
        """Of which class its own rule keeps a promise; that of the pool is not its own."""
        normal, anomalous = (one and not self.pooled for one in self.enough)
        return normal, anomalous

    def rates(self, rule: Rule) -> tuple[Rate, Rate]:
        """Return FPR and FNR under a rule."""
        metrics: Metrics = getattr(self, rule)
        return metrics.fpr, metrics.fnr


@dataclass(frozen=True, slots=True)
class Measured:
    """One division of a data set with groups: the rates of all points together, and those of each group."""

    data: str
    split: Split
    ceilings: tuple[float, float]
    whole: Group
    groups: tuple[Group, ...]

    @property
    def level(self) -> float:
        """The level of each test: so that all of them together err in one division of twenty at most.

        Both rates of all groups that have points are tested, under either rule: eq. (53).
        """
        tests = sum(rate.n > 0 for group in self.groups for rate in group.rates("one"))
        return shared_together(SIGNIFICANT, max(1, tests))

    def above(self, rule: Rule) -> tuple[tuple[str, ...], ...]:
        """Return for each group which of its rates are significantly above a ceiling that the rule is for.

        Its own rule is for the classes of which it has labels enough; one rule for all is for both.
        """
        level = self.level

        def exceeded(group: Group) -> Iterator[str]:
            for place, (name, rate) in enumerate(zip(("FPR", "FNR"), group.rates(rule), strict=True)):
                for_it = rule == "one" or group.promised[place]
                if for_it and rate.n and sf_at_most(rate.count, rate.n, self.ceilings[place], level):
                    yield name

        return tuple(tuple(exceeded(group)) for group in self.groups)

    def count(self, rule: Rule) -> int:
        """Return how many groups are significantly above a ceiling."""
        return sum(map(bool, self.above(rule)))

    @property
    def mixture_above(self) -> tuple[str, ...]:
        """Which rates of all points are significantly above their ceilings under one rule: at 5 % each."""
        rates = zip(("FPR", "FNR"), self.ceilings, self.whole.rates("one"), strict=True)
        return tuple(name for name, ceiling, rate in rates if is_exceeded(ceiling, rate))


def measure(scored: Scored, split: Split, seed: int, *, warned: bool = True) -> Measured:
    """Return what one rule for all and a rule for each group do on the part that did not calibrate.

    `warned` says whether dependence is judged, which takes most of the time.
    """
    calibrating, testing = scored.divided(split, seed)
    scores, labels, groups = scored.scores, scored.labels, scored.groups
    mine = labels[calibrating]
    with warnings.catch_warnings():
        # what is not promised, and what is upside down, is shown
        warnings.simplefilter("ignore", VacuousWarning)
        warnings.simplefilter("ignore", UpsideDownWarning)
        pooled = calibrate(scores[calibrating[mine == 0]], scores[calibrating[mine == 1]], scored.asked)
        each = calibrate_groups(scores[calibrating], mine, groups[calibrating], scored.asked, pool=True)
    one, own = pooled.verdicts(scores[testing]), each.verdicts(scores[testing], groups[testing])
    following = dict(zip(each.groups, each.pooled.tolist(), strict=True))
    places = Lookup(scored.names).places(groups)
    points = scored.points if warned else None

    def group(place: int, name: str) -> Group:
        here = places[testing] == place
        mine = calibrating[places[calibrating] == place]
        made = each.certificates.get(name)
        return Group(
            name,
            evaluate(one[here], labels[testing][here]),
            evaluate(own[here], labels[testing][here]),
            (int((labels[mine] == 0).sum()), int((labels[mine] == 1).sum())),
            (False, False) if made is None else _enough(made),
            following.get(name, False),
            (False, False) if made is None or points is None else _dependent(points, made, mine),
        )

    whole = Group(
        "all together",
        evaluate(one, labels[testing]),
        evaluate(own, labels[testing]),
        (pooled.normal.n, pooled.anomalous.n),
        _enough(pooled),
        False,
        (False, False) if points is None else _dependent(points, pooled, calibrating),
    )
    ceilings = scored.asked.max_fpr or 1.0, scored.asked.max_fnr or 1.0
    found = tuple(group(place, name) for place, name in enumerate(scored.names))
    return Measured(scored.data, split, ceilings, whole, found)


def _enough(certificate: Certificate) -> tuple[bool, bool]:
    budgets = certificate.normal.budget, certificate.anomalous.budget
    normal, anomalous = (one is not None and one.errors is not None for one in budgets)
    return normal, anomalous


def _dependent(points: Points, certificate: Certificate, among: Indices) -> tuple[bool, bool]:
    """Return of which promised class a warning comes: its points are worth less than they seem."""
    found = []
    for anomalous, promised in enumerate(_enough(certificate)):
        worth = points.worth(certificate.thresholds, bool(anomalous), among) if promised else None
        found.append(worth is not None and worth.misleading)
    return found[0], found[1]
