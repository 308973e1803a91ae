"""What a certificate of groups says in words, the worst group first."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pac_wrap.base.floats import rounded_down, rounded_up
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate, Row
from pac_wrap.method.groups.gaps import Gap
from pac_wrap.method.groups.measure import GroupMeasured
from pac_wrap.method.groups.values import shown
from pac_wrap.method.metrics import Rate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.robust.noise import NEW_LABELS
from pac_wrap.method.thresholds import Regime
from pac_wrap.report.words.certificate import note_lines
from pac_wrap.report.words.numbers import confidence, exact

# groups that are listed before the rest is only counted
LISTED: Final = 20
_LONGEST: Final = 40
# the columns of a table of measured rates
MEASURED: Final = ("group", "points", "FPR (max)", "FNR (max)", "abstained", "verdict")


def lines_of_groups(certificate: GroupCertificate) -> list[tuple[str, str]]:
    """Return what a certificate of groups says, as pairs of a heading and a text; a heading may be empty."""
    count = len(certificate.groups)
    whom, each = "of each group by itself", certificate.request.guarantee
    if certificate.together:
        joint = rounded_down(certificate.confidence or 0.0)
        shares = " and ".join(rounded_up(promise.delta) for promise in each.promises)
        whom = f"of all {count:,} groups at once, everything with {joint}; each group has delta = {shares}"
    lines = [("asked", f"{certificate.asked}"), ("", whom), ("groups", "; ".join(_counted(certificate)))]
    lines += [("pool", text) for text in _pool(certificate)]
    heading = "worst"
    for row in islice(certificate.rows(), LISTED):
        lines.append((heading, line_of(row, each)))
        heading = ""
    if count > LISTED:
        lines.append(("", f"and {count - LISTED:,} more"))
    lines.append(("unseen", "a group that is not in the calibration table is left undecided"))
    texts = map(str, certificate.assumptions)
    lines += [("" if i else "assumes", f"{text}, in each group") for i, text in enumerate(texts)]
    return lines + list(note_lines(certificate.provenance))


def show_groups(certificate: GroupCertificate, measured: GroupMeasured) -> RenderableType:
    """Return the measured rates of each group next to its ceilings, the worst first."""
    table = Table(
        title="measured, the worst group first", title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    first, *numbers, last = MEASURED
    table.add_column(first, overflow="fold", min_width=8)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(last)
    rows = measured_rows(certificate, measured)
    for name, *cells in islice(rows, LISTED):
        table.add_row(Text(line(name)), *cells)
    more = sum(1 for _ in rows)
    notes = [f"and {more:,} more groups"] * (more > 0)
    return Group(table, *notes, *measured_notes(certificate, measured))


def measured_notes(certificate: GroupCertificate, measured: GroupMeasured) -> tuple[str, ...]:
    """Return what is to be said below the measured rates of groups."""
    noise = (NEW_LABELS,) * (certificate.asked.label_noise is not None)
    unseen = (f"{measured.unseen:,} rows are in groups never seen, and undecided",) * (measured.unseen > 0)
    return (*unseen, "exceeded: significantly, by one exact test of all groups at 5 %", *noise)


def measured_rows(certificate: GroupCertificate, measured: GroupMeasured) -> Iterator[tuple[str, ...]]:
    """Yield the measured rates of each group as `MEASURED` names them, the worst first."""
    over: dict[str, list[str]] = {}
    for group, rate in measured.exceeded:
        over.setdefault(shown(group), []).append(rate)
    for group, metrics in measured.worst_first():
        place = certificate.lookup.place(group)
        mine = ~certificate.pooled[place] & certificate.columns.kept[:, place]
        limits = certificate.columns.ceilings[:, place]
        ceilings = [float(limit) if kept else None for limit, kept in zip(limits, mine, strict=True)]
        broken = over.get(shown(group), [])
        pairs = zip((metrics.fpr, metrics.fnr), ceilings, strict=True)
        above = any(ceiling is not None and rate.value > ceiling for rate, ceiling in pairs)
        verdict = "no promise" if not mine.any() else "above, not significantly" if above else "kept"
        verdict = f"{' and '.join(broken)} exceeded" if broken else verdict
        cells = [_rate(*pair) for pair in zip((metrics.fpr, metrics.fnr), ceilings, strict=True)]
        left = f"{metrics.ambiguity.value:.4f}"
        yield shown(group), f"{metrics.err.n:,}", *cells, left, verdict


def _rate(rate: Rate, ceiling: float | None) -> str:
    limit = "none" if ceiling is None else rounded_up(ceiling)
    return f"{rate.value:.4f} ({limit})" if rate.n else f"no points ({limit})"


def line(name: str) -> str:
    """Return a name, cut where it is too long for a line."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def line_of(row: Row, asked: Guarantee) -> str:
    """Return one line about a group."""
    return f"{line(shown(row.group))}: {row.n[0]:,} normal, {row.n[1]:,} anomalous; {verdict_of(row, asked)}"


def verdict_of(row: Row, asked: Guarantee) -> str:
    """Return what a group is promised, and what that costs."""
    if row.pooled:
        return "too few labels of its own: it follows the pool, whose promise is not its own"
    if row.regime is Regime.VACUOUS:
        return alone(row, asked) or "too few labels, nothing is promised"
    if row.certified is None:
        return "no single threshold can be certified, nothing is promised"
    left = sum(row.undecided)
    rule = f"anomaly from {exact(row.rule.anomaly_from)} on"
    if not row.rule.single:
        share = rounded_up(left / max(1, sum(row.n)), 100)
        rule += f", normal below {exact(row.rule.normal_below)}; {share} % of these are left undecided"
    return rule if row.certified == asked else f"{row.certified}; {rule}"


def alone(row: Row, asked: Guarantee) -> str | None:
    """Return what a group is promised that lacks labels of one class; None if it lacks those of both."""
    if row.kept[0] and asked.fpr is not None:
        rule = f"anomaly from {exact(row.rule.anomaly_from)} on, nothing is called normal"
        return f"too few anomalous labels: {asked.fpr} alone is promised; {rule}"
    if row.kept[1] and asked.fnr is not None:
        rule = f"normal below {exact(row.rule.normal_below)}, nothing is called an anomaly"
        return f"too few normal labels: {asked.fnr} alone is promised; {rule}"
    return None


def diagnosis_of_groups(certificate: GroupCertificate) -> tuple[str, ...]:
    """Return sentences that say which groups are promised nothing, and why."""
    columns, own = certificate.columns, ~certificate.pooled
    found = []
    for which, why in (
        (columns.vacuous & own, "too few labels"),
        (columns.empty & ~columns.vacuous, "no single threshold that can be certified"),
    ):
        if count := int(np.count_nonzero(which)):
            first = shown(certificate.groups[int(np.argmax(which))])
            found.append(f"{count:,} of {columns.size:,} groups, such as {first}, have {why}")
    return tuple(found)


def _counted(certificate: GroupCertificate) -> Iterator[str]:
    columns, pooled = certificate.columns, int(np.count_nonzero(certificate.pooled))
    few = int(np.count_nonzero(columns.vacuous))
    uncertified = int(np.count_nonzero(columns.empty & ~columns.vacuous))
    count = len(certificate.groups)
    yield f"{count:,}, of which {count - few - uncertified:,} are certified"
    if few:
        yield f"too few labels: {few:,}" + (", which follow the pool" if pooled else "")
    if uncertified:
        yield f"no single threshold can be certified: {uncertified:,}"


def _pool(certificate: GroupCertificate) -> Iterable[str]:
    pool = certificate.pool
    if pool is None:
        return ()
    points = (
        f"{pool.normal.n:,} normal and {pool.anomalous.n:,} anomalous points of groups with too few labels"
    )
    if pool.empty:
        return (f"{points} are too few even together: each keeps what its own labels promise",)
    return (
        f"{pool.certified}, for {points}",
        "a promise about their mixture, as they stand in the table, and about none of them by itself",
    )


def gap_words(gap: Gap) -> str:
    """Return how far groups are apart at most, in a sentence.

    >>> gap_words(Gap("FPR", 0.031, 0.05, ("a", "b"), ("a", "b"), (0.02, 0.0), (0.031, 0.025), 0))
    "FPR: certified fair within 3.1 percentage points (confidence 95 %, on top of the promises). No two of 2 \
groups, each under its own rule, are farther apart; 'a' and 'b' may be that far."
    """
    first, second = (line(shown(group)) for group in gap.farthest)
    left = ""
    if gap.left_out:
        left = f" Not compared, for lack of labels of their own: {gap.left_out:,}."
    return (
        f"{gap.rate}: certified fair within {rounded_up(gap.bound or 1.0, 100, 3)} percentage points"
        f" (confidence {confidence(gap.delta)}, on top of the promises). No two of {len(gap.groups):,}"
        f" groups, each under its own rule, are farther apart; {first} and {second} may be that far.{left}"
    )


def lacking_words(own: Certificate) -> str:
    """Return which labels a group lacks for what was asked.

    >>> from pac_wrap import calibrate
    >>> lacking_words(calibrate(range(100), range(200, 300)))
    'no labels missing'
    """
    missing = [
        f"{side.budget.missing:,} {name}"
        for side, name in ((own.normal, "normal"), (own.anomalous, "anomalous"))
        if side.budget is not None and side.budget.missing
    ]
    return f"{' and '.join(missing) or 'no'} labels missing"
