"""Groups: what one rule for all does to each of them, and what a rule of their own does."""

from collections.abc import Iterator, Sequence
from math import nan
from typing import Final

import numpy as np

from pac_wrap.method.metrics import Rate
from pac_wrap.method.tails.bounds import min_samples
from pac_wrap.paper.studies import nasa, smd
from pac_wrap.paper.studies.group_rates import RULES, SIGNIFICANT, Group, Measured, Rule, measure
from pac_wrap.paper.studies.group_scores import (
    ASKED_OF_PEOPLE,
    EVERY,
    LEARNED,
    SHARE,
    Residual,
    all_scored,
)
from pac_wrap.paper.studies.series_runs import LEVEL
from pac_wrap.paper.studies.study import Marks, Panel, PanelChart, Progress, Row, Study, StudyTable

DIVISIONS: Final = 20
NAMES: Final = {"smd": "server machines", "nasa": "NASA channels", "census": "people by sex and age"}
_SPLITS: Final = {"random": "at random", "blocks": "in blocks"}
_RATES: Final = ("FPR", "FNR")


def run(
    *,
    seed: int = 0,
    trials: int | None = None,
    quick: bool = False,
    progress: Progress = lambda share, text: None,
) -> Study:
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
    """Return what the first division shows, and how many groups are above a ceiling on average over all."""
    first = runs[0]
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
    row |= {f"mean, {name} rule": _mean(runs, name) for name in RULES}
    row |= {
        "too few labels": sum(group.vacuous for group in first.groups),
        "follow the pool": sum(group.pooled for group in first.groups),
        "warned of dependence": None,
        "undecided, one rule": first.whole.one.ambiguity.value,
        "undecided, own rule": first.whole.own.ambiguity.value,
    }
    if first.data != "census":
        row["warned of dependence"] = sum(any(group.dependent) for group in first.groups)
    return row


def _mean(runs: Sequence[Measured], rule: Rule) -> float:
    return float(np.mean([one.count(rule) for one in runs]))


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
        f" {SHARE:.0%} of the points calibrate both, and the rest measures them. *Server machines*, and *NASA"
        f" channels* with at least {needed} anomalous steps: each series has its own detector, the squared"
        f" residual of principal components ({residual.share:.0%} of the variance) of a step and of the mean"
        f" of the {residual.window} steps up to it. It learns from the training part, where the mean and the"
        " spread of its logarithm make it comparable across series. A point is every"
        f" {EVERY['smd']}th step of a machine, or every step of a channel; ceilings and deltas are {LEVEL}."
        f" *People*: boosted trees learn from {LEARNED:,} people of the census's training file who earns more"
        f" than 50,000 dollars; its test file is divided; ceilings and deltas are {ASKED_OF_PEOPLE.max_fpr}.",
        f"Points are divided *at random*, as in the paper, and *in blocks* of time: {smd.BLOCK:,} steps of a"
        f" machine (a day) with {smd.GAP} steps between the parts, {nasa.BLOCK} and {nasa.GAP} of a channel."
        f" Table and pictures show the first of {divisions} divisions, the means are over all of them.",
        "A group is *above* if one of its rates is significantly above the ceiling: an exact binomial test of"
        f" both rates of every group that has points, each at the level 1 - (1 - {SIGNIFICANT})^(1/m) for m"
        f" tests. If all groups keep their ceilings, some group is above in {SIGNIFICANT:.0%} of divisions at"
        " most. The test takes points for independent. Steps of a series are not, so it finds too much in"
        " blocks. An own rule is judged where it promises something: a group with too few labels of a class"
        " follows the rule of all such groups (*the pool*), whose promise is not its own."
        + (" Quick run: few groups." if quick else ""),
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
            f"What a promise about the mixture hides: the {title} of {group.name} ({NAMES[data]}) is"
            f" {rate.value:.2f} under a rule that is significantly above no ceiling over all groups."
        )
    series = [runs[0] for runs in found if runs[0].split == "blocks"]
    warned = sum(any(group.dependent) for one in series for group in one.groups)
    yield (
        "Own rules help against what differs between groups, and not against what differs between days. At"
        " random, test points are neighbours of calibration points, and own promises are kept as if points"
        " were independent, as they must be (docs/theory.md, eq. (20)). In blocks"
        f" {sum(one.count('own') for one in series)} of {_owners(series)} groups of series are above with"
        f" their own rules, and {warned} of {sum(len(one.groups) for one in series)} come with the warning"
        " that their points are worth less than they seem."
    )


def _owners(divisions: Sequence[Measured]) -> int:
    """Return how many groups have a rule that promises something of their own."""
    return sum(any(group.promised) for one in divisions for group in one.groups)


def _range(runs: Sequence[Measured], rule: Rule) -> str:
    counts = [one.count(rule) for one in runs]
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _hidden(one: Measured) -> Iterator[tuple[Rate, str, Group, str]]:
    """Yield each rate that is above under one rule, in a division in which that rule keeps both ceilings."""
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
