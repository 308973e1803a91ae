"""Groups: the error rates of each group under one rule for all and under a rule of its own."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import expm1, log1p, nan
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.preprocessing import StandardScaler

from pac_wrap import (
    Certificate,
    Guarantee,
    UpsideDownWarning,
    VacuousWarning,
    calibrate,
    calibrate_labelled,
    evaluate,
)
from pac_wrap.method.metrics import Metrics
from pac_wrap.series import Points, SeriesSplit, several_series, window_points
from pac_wrap.tails import Rate, min_samples
from pac_wrap_paper.data import load
from pac_wrap_paper.data.series import smd_machines
from pac_wrap_paper.data.store import results_of
from pac_wrap_paper.data.tabular import census_people
from pac_wrap_paper.studies import nasa, smd
from pac_wrap_paper.studies.charts import Marks, Panel, PanelChart
from pac_wrap_paper.studies.scored import Training
from pac_wrap_paper.studies.series_runs import ASKED as ASKED_OF_SERIES
from pac_wrap_paper.studies.series_runs import LEVEL, divide
from pac_wrap_paper.studies.study import Floats, Indices, Progress, Row, Study, StudyTable, is_above, silent

Split = Literal["random", "blocks"]
SHARE: Final = 0.5
# the distance of single steps
EVERY: Final = {"smd": 5, "nasa": 1}
_BLOCKS: Final = {"smd": (smd.BLOCK, smd.GAP), "nasa": (nasa.BLOCK, nasa.GAP)}
ASKED_OF_PEOPLE: Final = Guarantee(max_fpr=0.05, max_fnr=0.05)
LEARNED: Final = 20_000
_ENDS: Final = (30, 40, 50, 60, 70)
BANDS: Final = ("below 30", "30 to 39", "40 to 49", "50 to 59", "60 to 69", "70 on")


class Residual(BaseEstimator):
    """The part of a step, and of the mean of the steps before it, that principal components do not explain.

    They explain `share` of the variance of the training part; a value further than `clip` of its standard
    deviations from the mean counts as that far.
    """

    def __init__(self, window: int = 30, share: float = 0.9, clip: float = 20.0, least: float = 1e-6) -> None:
        self.window, self.share, self.clip, self.least = window, share, clip, least

    def fit(self, X: NDArray[Any], y: object = None) -> Self:
        """Learn from the steps of a series, in their order."""
        rows = self._rows(X)
        self.scaler_ = StandardScaler().fit(rows)
        # a series that never changes has no components
        still = not self.scaler_.var_.any()
        self.components_ = None if still else PCA(n_components=self.share).fit(self._scaled(rows))
        return self

    def decision_function(self, X: NDArray[Any]) -> Floats:
        """Return the squared residual of each step, higher for a more anomalous step."""
        rows = self._scaled(self._rows(X))
        if self.components_ is not None:
            rows = rows - self.components_.inverse_transform(self.components_.transform(rows))
        return np.asarray(np.maximum((rows**2).sum(axis=1), self.least))

    def _rows(self, X: NDArray[Any]) -> NDArray[np.float64]:
        steps = np.asarray(X, dtype=np.float64)
        sums = np.vstack([np.zeros(steps.shape[1]), np.cumsum(steps, axis=0)])
        ends = np.arange(1, len(steps) + 1)
        starts = np.maximum(0, ends - self.window)
        return np.hstack([steps, (sums[ends] - sums[starts]) / (ends - starts)[:, None]])

    def _scaled(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.clip(self.scaler_.transform(rows), -self.clip, self.clip))


class Scored(NamedTuple):
    """Points with their groups, and how they are divided; `points` are those of series, in time."""

    data: str
    asked: Guarantee
    scores: Floats
    labels: NDArray[np.int8]
    groups: NDArray[np.object_]
    names: tuple[str, ...]
    splits: tuple[Split, ...]
    points: Points | None = None

    def divided(self, split: Split, seed: int) -> SeriesSplit:
        """Return which points calibrate and which are measured."""
        if self.points is None:
            points = window_points(self.scores, self.labels)
            return points.divided(np.random.default_rng([seed, 17]), calibration=SHARE)
        return divide(
            self.points, seed, blocks=_BLOCKS[self.data] if split == "blocks" else None, share=SHARE
        )


def scores_of(
    data: str, names: Sequence[str], progress: Progress
) -> tuple[list[Floats], list[NDArray[np.int8]]]:
    """Return the scores and labels of each series, scored by its own detector, from the cache if possible."""
    trainings = [Training(data, name, Residual(), normalise=True) for name in names]
    scores = results_of(trainings, progress, "training")
    return scores, [load(data, name).y[-one.size :] for name, one in zip(names, scores, strict=True)]


def scored_series(data: str, names: Sequence[str], progress: Progress) -> Scored:
    """Return the steps of several series, each scored by its own detector."""
    scores, labels = scores_of(data, names, progress)
    points = several_series(
        names, [one.size for one in scores], np.concatenate(scores), np.concatenate(labels), every=EVERY[data]
    )
    short = tuple(name.removeprefix("machine-") for name in points.names)
    groups = np.array(short, dtype=object)[points.series]
    return Scored(
        data, ASKED_OF_SERIES, points.scores, points.labels, groups, short, ("random", "blocks"), points
    )


def scored_people(train: int, seed: int = 0) -> Scored:
    """Return the people of the census's test file as boosted trees score them, by sex and age."""
    people = census_people()
    learned = np.random.default_rng(seed).permutation(people.n_train)[:train]
    trees = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
    trees.fit(people.X[learned], people.y[learned])
    rest = slice(people.n_train, None)
    bands = np.array(BANDS, dtype=object)[np.searchsorted(_ENDS, people.age[rest], side="right")]
    sexes = np.where(people.male[rest], "men, ", "women, ").astype(object)
    names = tuple(f"{sex}, {band}" for sex in ("men", "women") for band in BANDS)
    scores = np.asarray(trees.decision_function(people.X[rest]))
    return Scored("census", ASKED_OF_PEOPLE, scores, people.y[rest], sexes + bands, names, ("random",))


def all_scored(quick: bool, progress: Progress) -> Iterator[Scored]:
    """Yield the three data sets with their groups; a quick look takes the first few of each."""
    yield scored_series("smd", smd_machines()[: 4 if quick else None], progress)
    yield scored_series("nasa", nasa.usable_channels(SHARE, 6 if quick else None), progress)
    progress(0.0, "scoring census")
    yield scored_people(2_000 if quick else LEARNED)


Rule = Literal["one", "own"]
RULES: Final[tuple[Rule, ...]] = ("one", "own")
# how often, in one division, kept ceilings of all groups together may be taken for exceeded
SIGNIFICANT: Final = 0.05


@dataclass(frozen=True, slots=True)
class Group:
    """The rates of a group under one rule for all and under its own, and what its own promises.

    `labels` are its calibration points of each class, `enough` says of which class they suffice, `pooled`
    that it follows the rule of all groups with too few, and `dependent` which class's points depend on each
    other so much that the certificate warns.
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
        """Whether it has too few labels for promises of its own."""
        return not all(self.enough)

    @property
    def promised(self) -> tuple[bool, bool]:
        """The classes for which its own rule keeps a promise; the promise of the pool is not its own."""
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
        """The level of each test, so that all of them together err in at most one division of twenty.

        Both rates of all groups that have points are tested, under either rule: eq. (53).
        """
        tests = sum(rate.n > 0 for group in self.groups for rate in group.rates("one"))
        return -expm1(log1p(-SIGNIFICANT) / max(1, tests))

    def above(self, rule: Rule) -> tuple[tuple[str, ...], ...]:
        """Return for each group which of its rates are significantly above a promised ceiling.

        Its own rule promises ceilings of the classes with enough labels; one rule for all promises both.
        """
        level = self.level

        def exceeded(group: Group) -> Iterator[str]:
            for place, (name, rate) in enumerate(zip(("FPR", "FNR"), group.rates(rule), strict=True)):
                for_it = rule == "one" or group.promised[place]
                if for_it and is_above(rate, self.ceilings[place], level):
                    yield name

        return tuple(tuple(exceeded(group)) for group in self.groups)

    def count(self, rule: Rule) -> int:
        """Return how many groups are significantly above a ceiling."""
        return sum(map(bool, self.above(rule)))

    @property
    def mixture_above(self) -> tuple[str, ...]:
        """Which rates of all points are significantly above their ceilings under one rule: at 5 % each."""
        rates = zip(("FPR", "FNR"), self.ceilings, self.whole.rates("one"), strict=True)
        return tuple(name for name, ceiling, rate in rates if is_above(rate, ceiling))


def measure(scored: Scored, split: Split, seed: int, *, warned: bool = True) -> Measured:
    """Return the rates of one rule for all and of a rule for each group on the part that did not calibrate.

    `warned` says whether dependence is judged, which takes most of the time.
    """
    division = scored.divided(split, seed)
    calibrating, testing = division.calibration, division.test
    scores, labels, groups = scored.scores, scored.labels, scored.groups
    mine = labels[calibrating]
    with warnings.catch_warnings():
        # classes without a promise and reversed scores are shown
        warnings.simplefilter("ignore", VacuousWarning)
        warnings.simplefilter("ignore", UpsideDownWarning)
        pooled = calibrate(scores[calibrating[mine == 0]], scores[calibrating[mine == 1]], scored.asked)
        each = calibrate_labelled(scores[calibrating], mine, scored.asked, pool=True, by=groups[calibrating])
    one, own = pooled.verdicts(scores[testing]), each.verdicts(scores[testing], groups[testing])
    following = dict(zip(each.groups, each.pooled.tolist(), strict=True))
    number = {name: place for place, name in enumerate(scored.names)}
    places = np.array([number[name] for name in groups.tolist()])
    points = scored.points if warned else None

    def group(name: str, here: NDArray[np.bool_], mine: Indices, made: Certificate | None) -> Group:
        return Group(
            name,
            evaluate(one[here], labels[testing][here]),
            evaluate(own[here], labels[testing][here]),
            (int((labels[mine] == 0).sum()), int((labels[mine] == 1).sum())),
            (False, False) if made is None else _enough(made),
            following.get(name, False),
            (False, False) if made is None or points is None else _dependent(points, made, mine),
        )

    whole = group("all together", np.ones(testing.size, dtype=bool), calibrating, pooled)
    found = tuple(
        group(
            name,
            places[testing] == place,
            calibrating[places[calibrating] == place],
            each.certificates.get(name),
        )
        for place, name in enumerate(scored.names)
    )
    ceilings = scored.asked.max_fpr or 1.0, scored.asked.max_fnr or 1.0
    return Measured(scored.data, split, ceilings, whole, found)


def _enough(certificate: Certificate) -> tuple[bool, bool]:
    return certificate.fpr.errors is not None, certificate.fnr.errors is not None


def _dependent(points: Points, certificate: Certificate, among: Indices) -> tuple[bool, bool]:
    """Return the promised classes whose points depend on each other, so that the certificate warns."""
    found = []
    for anomalous, promised in enumerate(_enough(certificate)):
        size = points.effective_size(certificate.thresholds, bool(anomalous), among) if promised else None
        found.append(size is not None and size.misleading)
    return found[0], found[1]


DIVISIONS: Final = 20
NAMES: Final = {"smd": "server machines", "nasa": "NASA channels", "census": "people by sex and age"}
_SPLITS: Final = {"random": "at random", "blocks": "in blocks"}
_RATES: Final = ("FPR", "FNR")


def run(seed: int = 0, trials: int | None = None, quick: bool = False, progress: Progress = silent) -> Study:
    """Return the rates of each group under one rule and under its own, over `trials` divisions, 20."""
    divisions = (3 if quick else DIVISIONS) if trials is None else trials
    found: list[list[Measured]] = []
    for place, scored in enumerate(all_scored(quick, progress)):
        for split in scored.splits:
            runs = []
            for number in range(divisions):
                share = (place + number / divisions) / len(NAMES)
                progress(share, f"dividing {scored.data} {_SPLITS[split]}")
                runs.append(measure(scored, split, seed + number, warned=number == 0))
            found.append(runs)
    return Study(
        question="groups",
        title="Groups",
        setting=_setting(divisions, quick),
        tables=(
            StudyTable("totals", "Groups above a ceiling", tuple(map(_total, found))),
            StudyTable(
                "rates",
                "Every group, in the first division",
                tuple(row for runs in found for row in _rows(runs[0])),
                detail=True,
            ),
        ),
        findings=tuple(_findings(found)),
        charts=tuple(_chart(runs[0]) for runs in found),
    )


def _total(runs: Sequence[Measured]) -> Row:
    """Return the row of the first division, with the mean number of groups above a ceiling over all."""
    first = runs[0]
    warned = sum(any(group.dependent) for group in first.groups)
    row: Row = {
        "groups": NAMES[first.data],
        "divided": _SPLITS[first.split],
        "n": len(first.groups),
        "ceilings": first.ceilings[0],
        "FPR of all": first.whole.one.fpr,
        "FNR of all": first.whole.one.fnr,
        "above, one rule": first.count("one"),
        "above, own rule": first.count("own"),
    }
    row |= {f"mean, {name} rule": float(np.mean([one.count(name) for one in runs])) for name in RULES}
    row |= {
        "too few labels": sum(group.vacuous for group in first.groups),
        "follow the pool": sum(group.pooled for group in first.groups),
        "warned of dependence": None if first.data == "census" else warned,
        "undecided, one rule": first.whole.one.ambiguity.value,
        "undecided, own rule": first.whole.own.ambiguity.value,
    }
    return row


def _rows(first: Measured) -> Iterator[Row]:
    above = [first.above(rule) for rule in RULES]
    for place, group in enumerate(first.groups):
        yield {
            "data": first.data,
            "divided": _SPLITS[first.split],
            "group": group.name,
            "normal labels": group.labels[0],
            "anomalous labels": group.labels[1],
            **{
                f"{name}, {rule} rule": rate
                for rule in RULES
                for name, rate in zip(_RATES, group.rates(rule), strict=True)
            },
            **{f"above, {rule} rule": " and ".join(above[at][place]) for at, rule in enumerate(RULES)},
            "too few labels": group.vacuous,
            "follows the pool": group.pooled,
            "warned, normal": group.dependent[0],
            "warned, anomalous": group.dependent[1],
        }


def _setting(divisions: int, quick: bool) -> tuple[str, ...]:
    residual, needed = Residual(), round(min_samples(LEVEL, LEVEL) / SHARE)
    return (
        "A certificate of all points (*one rule*) is compared with a certificate for each group (*own rule*):"
        f" {100 * SHARE:.0f} % of the points calibrate both, and the rest measures them. *Server machines*,"
        f" and *NASA channels* with at least {needed} anomalous steps: each series has its own detector, the"
        f" squared residual of principal components ({100 * residual.share:.0f} % of the variance) of a step"
        f" and of the mean of the {residual.window} steps up to it. It learns from the training part, where"
        " the mean and the spread of its logarithm make it comparable across series. A point is every"
        f" {EVERY['smd']}th step of a machine, or every step of a channel; ceilings and deltas are {LEVEL}."
        f" *People*: boosted trees learn from {LEARNED:,} people of the census's training file who earns more"
        f" than 50,000 dollars; its test file is divided; ceilings and deltas are {ASKED_OF_PEOPLE.max_fpr}.",
        f"Points are divided *at random*, as in the paper, and *in blocks* of time: {smd.BLOCK:,} steps of a"
        f" machine (a day) with {smd.GAP} steps between the parts, {nasa.BLOCK} and {nasa.GAP} of a channel."
        f" Table and pictures show the first of {divisions} divisions, the means are over all of them.",
        "A group is *above* if one of its rates is significantly above the ceiling: an exact binomial test of"
        f" both rates of every group that has points, each at the level 1 - (1 - {SIGNIFICANT})^(1/m) for m"
        f" tests. If all groups keep their ceilings, some group is above in {100 * SIGNIFICANT:.0f} % of"
        " divisions at most. The test assumes independent points. Steps of a series are not independent, so"
        " in blocks it finds too many groups above. An own rule is judged where it promises something: a"
        " group with too few labels of a class follows the rule of all such groups (*the pool*), whose"
        " promise is not its own." + (" Quick run: few groups." if quick else ""),
    )


def _findings(found: Sequence[Sequence[Measured]]) -> Iterator[str]:
    for runs in found:
        first, name = runs[0], NAMES[runs[0].data]
        broken = " and ".join(first.mixture_above)
        rates = " and ".join(
            f"{title} {rate.value:.3f}" for title, rate in zip(_RATES, first.whole.rates("one"), strict=True)
        )
        failed = sum(bool(one.mixture_above) for one in runs)
        yield (
            f"{name[0].upper()}{name[1:]}, divided {_SPLITS[first.split]}: over all groups one rule is"
            f" significantly above {f'its ceiling of the {broken}' if broken else 'no ceiling'} ({rates}); of"
            f" {len(first.groups)} groups {first.count('one')} are above with it. Of {_owners([first])} that"
            f" have a rule of their own {first.count('own')} are above with that. Over {len(runs)} divisions"
            f" {_range(runs, 'one')} groups are above with one rule, {_range(runs, 'own')} with their own,"
            f" and all groups together with one rule in {failed} of them."
        )
    hidden = [one for runs in found for one in _hidden(runs[0])]
    if hidden:
        rate, title, group, data = max(hidden, key=lambda one: one[0].value)
        yield (
            f"A promise about the mixture can hide a group: the {title} of {group.name} ({NAMES[data]}) is"
            f" {rate.value:.2f} under a rule that is significantly above no ceiling over all groups."
        )
    series = [runs[0] for runs in found if runs[0].split == "blocks"]
    warned = sum(any(group.dependent) for one in series for group in one.groups)
    yield (
        "Own rules help against what differs between groups, and not against what differs between days. At"
        " random, test points are neighbours of calibration points, and own promises are kept as if points"
        " were independent, as eq. (20) of docs/theory.md requires. In blocks"
        f" {sum(one.count('own') for one in series)} of {_owners(series)} groups of series are above with"
        f" their own rules, and {warned} of {sum(len(one.groups) for one in series)} come with the warning"
        " that their points depend on each other."
    )


def _owners(divisions: Sequence[Measured]) -> int:
    """Return how many groups have a promise of their own."""
    return sum(any(group.promised) for one in divisions for group in one.groups)


def _range(runs: Sequence[Measured], rule: Rule) -> str:
    counts = [one.count(rule) for one in runs]
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _hidden(one: Measured) -> Iterator[tuple[Rate, str, Group, str]]:
    """Yield each rate of a group that is above under one rule, though that rule keeps both ceilings."""
    if one.mixture_above:
        return
    for group, above in zip(one.groups, one.above("one"), strict=True):
        for title, rate in zip(_RATES, group.rates("one"), strict=True):
            if title in above:
                yield rate, title, group, one.data


def _chart(first: Measured) -> PanelChart:
    """Return both rates of each group, those of series in the order of their FPR under one rule."""
    groups = list(first.groups)
    if first.data != "census":
        groups.sort(key=lambda group: (-group.one.fpr.value, group.one.fnr.value))
    lines = (first.whole, *groups)

    def marks(label: str, rule: Rule, place: int) -> Marks:
        above = {group.name: names for group, names in zip(first.groups, first.above(rule), strict=True)}
        if rule == "one":
            above[first.whole.name] = first.mixture_above
        rates = [line.rates(rule)[place] for line in lines]
        shown = [
            rate.n > 0 and (rule == "one" or line is first.whole or line.promised[place])
            for rate, line in zip(rates, lines, strict=True)
        ]
        value, low, high = (
            tuple(getattr(rate, end) if show else nan for rate, show in zip(rates, shown, strict=True))
            for end in ("value", "low", "high")
        )
        filled = (
            show and _RATES[place] in above.get(line.name, ())
            for line, show in zip(lines, shown, strict=True)
        )
        return Marks(label, rule, value, low, high, tuple(filled))

    def panel(place: int) -> Panel:
        return Panel(
            ("false alarms: FPR (%)", "missed anomalies: FNR (%)")[place],
            (marks("one rule for all", "one", place), marks("a rule for each group", "own", place)),
            first.ceilings[place],
            "ceiling",
            ("", *("" if group.promised[place] else "too few labels" for group in groups)),
        )

    name = first.data if first.data == "census" else f"{first.data}-{first.split}"
    divided = "" if first.data == "census" else f", divided {_SPLITS[first.split]}"
    title = f"{NAMES[first.data]}{divided}: error rates on the other half, with 95 % intervals"
    return PanelChart(
        name,
        title[0].upper() + title[1:],
        tuple(line.name for line in lines),
        (panel(0), panel(1)),
        "filled: significantly above",
    )
