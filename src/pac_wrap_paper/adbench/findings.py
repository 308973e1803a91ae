"""What the study of ADBench shows, in sentences whose numbers come from the outcomes."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from pac_wrap_paper.adbench.leaderboard import Board, Standing
from pac_wrap_paper.adbench.measure import Outcomes
from pac_wrap_paper.adbench.methods import OURS
from pac_wrap_paper.adbench.scoring import Scored
from pac_wrap_paper.adbench.summary import SIDES, Summary, mean, middle, undecided
from pac_wrap_paper.studies.study import Spread


def share(found: Spread | float | None, digits: int = 0) -> str:
    """Return a share in percent, as a sentence has it.

    >>> share(0.0512), share(0.0512, 1), share(0.004)
    ('5 %', '5.1 %', '0.4 %')
    """
    value = found.mean if isinstance(found, Spread) else found
    if value is None:
        return "no"
    return f"{100 * value:.{max(digits, int(0 < value < 0.0095))}f} %"


def findings(summary: Summary, boards: Sequence[Board], failures: Sequence[Scored]) -> Iterator[str]:
    """Yield the findings: what people use, ours, what it costs, and the leaderboard."""
    yield from _theirs(summary)
    yield from _ours(summary)
    yield from _costs(summary, boards)
    yield from _orders(boards)
    if failures:
        names = ", ".join(sorted({f"{one.detector} on {one.table}" for one in failures}))
        yield f"Without scores, because training or scoring failed with the default settings: {names}."


def _theirs(summary: Summary) -> Iterator[str]:
    percentile, conformal = (
        summary.above(method, "FPR") for method in ("95th percentile of normals", "conformal (crepes)")
    )
    misses = summary.above("conformal (crepes)", "FNR")
    yield (
        "A 95th percentile of normal scores is set up for an FPR of 5 %; it is above that in"
        f" {share(percentile)} of the divisions. Conformal prediction keeps 5 % on average over"
        f" calibrations, and on a given one it does not in {share(conformal)} (FPR) and {share(misses)}"
        " (FNR): an average is not a confidence."
    )
    f1 = [summary.above("greatest F1", rate) for rate in SIDES]
    tuned = [summary.above("TunedThresholdClassifierCV", rate) for rate in SIDES]
    yield (
        "The rates that a tuned threshold shows on its own rows are no ceilings. With the greatest F1 the"
        f" FPR on other rows is above the one shown in {share(f1[0])} of the divisions and the FNR in"
        f" {share(f1[1])}, with TunedThresholdClassifierCV in {share(tuned[0])} and {share(tuned[1])}; half"
        " would be above without any tuning."
    )
    default, true = (summary.above(f"contamination{name}", "alarms") for name in (" .1", ", true share"))
    alarms = summary.mean_of("contamination, true share", "FNR")
    yield (
        "Contamination sets a share of alarms, not an error rate: with PyOD's default of .1 more than 10 %"
        f" of the other rows are alarms in {share(default)} of the divisions, with the true share more than"
        f" that share in {share(true)}, and {share(alarms)} of the anomalies are missed then."
    )
    mapie = summary.above("MAPIE, FPR", "FPR"), summary.above("MAPIE, recall", "FNR")
    nothing = [summary.over_tables(partial(undecided, method=f"MAPIE, {name}")) for name in ("FPR", "recall")]
    missed = [summary.over_tables(partial(_missed, method=method)) for method in ("MAPIE, FPR", "hold_fpr")]
    yield (
        "MAPIE's controller promises what hold_fpr and hold_fnr hold, and keeps it: it is above in"
        f" {share(mapie[0])} (FPR) and {share(mapie[1])} (FNR) of the divisions."
        f" It tries 100 thresholds, and none of them will do in {share(nothing[0])} and {share(nothing[1])}."
        f" Where it finds one for the FPR it misses {share(missed[0])} of the anomalies, and hold_fpr"
        f" {share(missed[1])} on the same divisions; hold_fpr also certifies the FNR."
    )


def _missed(one: Outcomes, method: str) -> float:
    """Return the FNR of a method on the divisions in which MAPIE found a threshold for the FPR."""
    found = np.flatnonzero(one.of("MAPIE, FPR", "decided") > 0.0)
    return mean(one.of(method, "FNR")[found])


def _ours(summary: Summary) -> Iterator[str]:
    above = [summary.above("abstain", rate) for rate in SIDES]
    chance = [summary.chance("abstain", rate) for rate in SIDES]
    whole = [summary.above("abstain", rate, whole=True) for rate in SIDES]
    yield (
        f"Abstain at .05/.05: on the other rows the FPR is above 5 % in {share(above[0], 1)} of the"
        f" divisions, where (20) allows {share(chance[0], 1)}, and the FNR in {share(above[1], 1)}, where it"
        f" allows {share(chance[1], 1)}; the other rows vary, too. On all held-out rows, the population that"
        f" a division draws from, it is {share(whole[0], 1)} and {share(whole[1], 1)}, where 5 % are"
        " promised."
    )
    everyone = [summary.judged("abstain", rate, everyone=True) for rate in SIDES]
    text = [
        f"{rate} {found.count} of {found.n} above, {found.expected:.1f} expected at most (p-value"
        f" {found.p_value:.2f})"
        for rate, found in zip(SIDES, everyone, strict=True)
        if found is not None
    ]
    yield (
        "Given the scores, divisions are independent draws, so the first one of every table and detector"
        f" can be judged together: {'; '.join(text)}."
    )
    free = (("hold_fnr", "FPR"), ("hold_fpr", "FNR"))
    found, expected = ([of(*one) for one in free] for of in (summary.above, summary.chance))
    yield (
        "Ceilings that come with the rows are kept no less, and no more cautiously: the FPR that hold_fnr"
        f" certifies is exceeded in {share(found[0], 1)} of the divisions, the FNR that hold_fpr certifies"
        f" in {share(found[1], 1)}; given the thresholds, {share(expected[0], 1)} and"
        f" {share(expected[1], 1)} had to be expected, exactly."
    )
    others = [(method, rate) for method in OURS for rate in SIDES]
    worst = max(others, key=lambda one: middle(summary.above(*one, whole=True)))
    yield (
        f"On all held-out rows none of the {len(others)} promises is broken in more than"
        f" {share(middle(summary.above(*worst, whole=True)), 1)} of the divisions ({worst[0]}, {worst[1]},"
        f" where at most {share(summary.chance(*worst, whole=True), 1)} is allowed): half of a table"
        " resembles the whole more than independent draws would."
    )


def _costs(summary: Summary, boards: Sequence[Board]) -> Iterator[str]:
    decided, conformal = (
        summary.mean_of("abstain", "decided"),
        summary.mean_of("conformal (crepes)", "decided"),
    )
    low = [board for board in boards if mean([one.decided for one in board.standings]) < 0.5]
    best = mean([board.by_decided.decided for board in boards])
    yield (
        f"The price: abstain decides {share(decided)} of the points on average over detectors, and less than"
        f" half on {len(low)} of {len(boards)} tables; with the best detector of each table {share(best)}."
        f" Conformal prediction, which promises less, decides {share(conformal)}."
    )
    few = [group[0].sizes[1] for group in summary.by_table.values()]
    lacking = sum(count < 59 for count in few)
    yield (
        f"On {lacking} of {len(few)} tables fewer than 59 anomalies calibrate: no FNR of 5 % can be promised"
        " there, and abstain calls nothing normal. Raise certifies what the labels can keep instead."
    )
    ceilings = [
        summary.over_tables(partial(_ceiling, method=method)) for method in ("raise", "curve", "curve at F1")
    ]
    missing = mean([float(np.isnan(one.of("raise", "max FPR")).mean() > 0.5) for one in summary.outcomes])
    yield (
        "A choice after looking has its price, too: where raise certifies a ceiling of both rates, it is"
        f" {middle(ceilings[0]):.3f} on average, and {middle(ceilings[1]):.3f} at the best threshold of the"
        " curve, which holds for every other one as well; at the threshold of greatest F1 it is"
        f" {middle(ceilings[2]):.3f}. For {share(missing)} of the pairs of table and detector raise finds no"
        " ceiling up to .5 in most divisions."
    )


def _ceiling(one: Outcomes, method: str) -> float:
    """Return the larger ceiling of a method on the divisions in which raise certifies one."""
    found = ~np.isnan(one.of("raise", "max FPR"))
    larger = np.fmax(one.of(method, "max FPR"), one.of(method, "max FNR"))
    return mean(np.where(np.isnan(larger), 1.0, larger)[found])


def _orders(boards: Sequence[Board]) -> Iterator[str]:
    ceiling, decided = (
        mean([board.agreement(field) for board in boards]) for field in ("ceiling", "decided")
    )
    same = [
        sum(board.by_auc == getattr(board, f"by_{field}") for board in boards)
        for field in ("ceiling", "decided")
    ]
    why = [
        mean([board.agreement(*fields) for board in boards])
        for fields in (("crossing", "ceiling"), ("ends", "decided"))
    ]
    yield (
        "Orders of detectors: by AUC and by the ceiling that raise certifies they agree with a mean rank"
        f" correlation of {ceiling:.2f}, and the same detector leads on {same[0]} of {len(boards)} tables;"
        f" by AUC and by the decided share with {decided:.2f} and {same[1]}."
    )
    yield (
        "Why they differ: the AUC averages over all thresholds. A balanced ceiling needs one point of the"
        f" curve, the equal error rate: the two orders agree at {why[0]:.2f}. The decided share needs the"
        " ends of both classes: what lies below the few lowest anomalies, and above the few highest"
        f" normals, that the error budgets leave. Its order agrees at {why[1]:.2f} with that of these"
        " shares."
    )
    for board in sorted(boards, key=lambda one: one.agreement("decided"))[:3]:
        first, other = board.inversion
        if other.decided > first.decided:
            yield (
                f"{board.table} (agreement {board.agreement('decided'):.2f}): {first.detector} has an AUC of"
                f" {first.auc:.3f} and decides {share(first.decided)}, {other.detector} has {other.auc:.3f}"
                f" and decides {share(other.decided)}. {_reason(first, other)}"
            )


def _reason(first: Standing, other: Standing) -> str:
    """Return which end of the scores makes the one decide less; if neither does, that labels are few."""
    low, high = other.cleared - first.cleared, other.alarmed - first.alarmed
    if max(low, high) <= 0.0:
        return "Neither end of all scores explains it: with few labels the ends vary between divisions."
    if low >= high:
        return (
            f"Below the lowest anomalies, where they may be cleared, lie {share(first.cleared)} of the rows"
            f" with the one and {share(other.cleared)} with the other."
        )
    return (
        f"Above the highest normals, where they may be flagged, lie {share(first.alarmed)} of the rows with"
        f" the one and {share(other.alarmed)} with the other."
    )
