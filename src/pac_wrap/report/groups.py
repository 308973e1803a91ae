"""What a certificate of groups says in words, the worst group first."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np

from pac_wrap.base.rounding import confidence_left, rounded_down, rounded_up
from pac_wrap.method.groups.certificate import GroupCertificate
from pac_wrap.method.groups.listing import Row
from pac_wrap.method.groups.values import shown
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.thresholds import Regime
from pac_wrap.report.numbers import exact

# groups that are listed before the rest is only counted
LISTED: Final = 20
_LONGEST: Final = 40


def lines_of_groups(certificate: GroupCertificate) -> list[tuple[str, str]]:
    """Return what a certificate of groups says, as pairs of a heading and a text; a heading may be empty."""
    count = len(certificate.groups)
    whom, each = "of each group by itself", certificate.request.guarantee
    if certificate.together:
        deltas = (promise.delta for promise in certificate.asked.promises)
        joint = rounded_down(confidence_left(*deltas))
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
    return lines + [("" if i else "assumes", f"{text}, in each group") for i, text in enumerate(texts)]


def line_of(row: Row, asked: Guarantee) -> str:
    """Return one line about a group."""
    name = shown(row.group)
    name = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
    return f"{name}: {row.n[0]:,} normal, {row.n[1]:,} anomalous; {verdict_of(row, asked)}"


def verdict_of(row: Row, asked: Guarantee) -> str:
    """Return what a group is promised, and what that costs."""
    if row.pooled:
        return "too few labels of its own: it follows the pool, whose promise is not its own"
    if row.regime is Regime.VACUOUS:
        return "too few labels, nothing is promised"
    if row.certified is None:
        return "no single threshold can be certified, nothing is promised"
    left = sum(row.undecided)
    rule = f"anomaly from {exact(row.rule.anomaly_from)} on"
    if not row.rule.single:
        share = rounded_up(left / max(1, sum(row.n)), 100)
        rule += f", normal below {exact(row.rule.normal_below)}; {share} % of these are left undecided"
    return rule if row.certified == asked else f"{row.certified}; {rule}"


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
        return (f"{points} are too few even together: these groups are left undecided",)
    return (
        f"{pool.certified}, for {points}",
        "a promise about their mixture, as they stand in the table, and about none of them by itself",
    )
