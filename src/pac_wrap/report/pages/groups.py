"""The page of a certificate of groups: how many are certified, and what is wrong, the worst first."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores
from pac_wrap.base.floats import confidence_left, kept_together, rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.provenance import Provenance
from pac_wrap.method.groups.calibrate import checked
from pac_wrap.method.groups.certificate import GroupCertificate, Row, undecided
from pac_wrap.method.groups.measure import GroupMeasured
from pac_wrap.method.groups.values import NEVER, Group, GroupColumn, shown
from pac_wrap.method.rule import Rule
from pac_wrap.method.sampling import are_independent
from pac_wrap.method.thresholds import Regime
from pac_wrap.ranks.kernels import digest
from pac_wrap.report.pages.content import sentence, subtitle, title, versions
from pac_wrap.report.pages.formats import notebook
from pac_wrap.report.pages.parts import AGAIN, LONGEST_NAME, MOST_MULTIPLES, SHORT_NAME, Listing, PartsContent
from pac_wrap.report.pages.pictures import Multiple, multiple
from pac_wrap.report.window import Window
from pac_wrap.report.words.certificate import rule_words
from pac_wrap.report.words.groups import (
    MEASURED,
    gap_words,
    lacking_words,
    line,
    lines_of_groups,
    measured_notes,
    measured_rows,
)
from pac_wrap.report.words.numbers import ceiling, floored, percent, told_apart
from pac_wrap.report.words.sentences import Status
from pac_wrap.tails.bounds import min_samples

# the normal and the anomalous scores of some groups
Drawn = Mapping[Group, tuple[Scores, Scores]]
# rows of the table
LISTED: Final = 200
_NOTEBOOK: Final = 12
_HEADS: Final = ("Group", "Normal labels", "Anomalous labels", "Promise", "Normal below", "Anomaly from")
_SUMMARY: Final = ("Groups that are", "How many", "Normal labels", "Anomalous labels", "Left undecided")


def page_of_groups(
    certificate: GroupCertificate,
    drawn: Drawn | None = None,
    detector: str | None = None,
    measured: GroupMeasured | None = None,
) -> PartsContent:
    """Return what a page of groups says; `drawn` are the calibration scores of the worst, if at hand.

    `measured` is how the rules did on labelled points that did not calibrate.

    >>> from pac_wrap import calibrate_groups
    >>> scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    >>> page = page_of_groups(calibrate_groups(scores, labels, ["a"] * 200 + ["b"] * 200))
    >>> page.status.words, page.listing.rows[0]
    ('all 2 groups certified', ("'a'", '100', '100', 'as asked', '200', '200'))
    """
    known = certificate.provenance or Provenance()
    count = len(certificate.groups)
    listed = min(count, LISTED)
    drawn = drawn or {}
    more = "" if listed == count else f" {count - listed:,} more are counted above and not listed."
    return PartsContent(
        of="groups",
        title=f"{title(detector, known)}, by group",
        subtitle=subtitle(known),
        status=_status(certificate),
        promise=_promise(certificate),
        warnings=tuple(_warnings(certificate)),
        heading="Groups",
        tables=(_summary(certificate),),
        lead=tuple(_lead(certificate)),
        multiples=tuple(_multiples(certificate, drawn)),
        multiples_caption=(
            "Each class in percent of itself, all groups on one scale, the worst first"
            f"{f'; {len(drawn):,} of {count:,} groups' if len(drawn) < count else ''}."
        ),
        next_steps=tuple(_next(certificate)),
        listing=Listing(
            f"The worst first: without a promise, then with most points left undecided.{more}",
            _HEADS,
            tuple(_row(certificate, row) for row in islice(certificate.rows(), LISTED)),
            f"The worst {listed:,} of {count:,} groups" if listed < count else f"All {count:,} groups",
        ),
        verdicts=(),
        assumptions=(
            *(sentence(f"{text}, in each group") for text in map(str, certificate.assumptions)),
            *map(sentence, known.notes or ()),
        ),
        versions=versions(certificate.version),
        digests=(),
        certificate=certificate.to_json(),
        measured=None if measured is None else _measured(certificate, measured),
        more_not_promised=("A group that is not in the calibration table: its points are left undecided.",),
    )


def notebook_of_groups(certificate: GroupCertificate) -> str:
    """Return a certificate of groups as a notebook shows it: short, however many groups there are."""
    lines = lines_of_groups(certificate)[:_NOTEBOOK]
    return notebook(_status(certificate), _promise(certificate), lines)


def worst(certificate: GroupCertificate) -> list[Group]:
    """Return the groups that are drawn."""
    return list(islice(certificate.certificates, MOST_MULTIPLES))


def scores_by_group(
    certificate: GroupCertificate,
    scores: ArrayLike | None,
    labels: ArrayLike | None,
    groups: GroupColumn | None,
    anomaly_label: object,
) -> Drawn | None:
    """Return the scores of the worst groups out of three columns, if they are those of the certificate."""
    if scores is None and labels is None and groups is None:
        return None
    if scores is None or labels is None or groups is None:
        raise InputError("pass the scores, labels and groups that calibrated, all three or none")
    values, marks, found, _ = checked(scores, labels, groups, anomaly_label)
    count = len(certificate.groups)
    numbers = [certificate.lookup.place(group) for group in found.values]
    known = [NEVER if number is None else number for number in numbers]
    if sorted(known) != list(range(count)):
        raise _other()
    places = np.array(known)[found.codes]
    sizes = [np.bincount(places[marks == mark], minlength=count) for mark in (False, True)]
    if not np.array_equal(np.stack(sizes), certificate.columns.n):
        raise _other()
    drawn = {}
    for group in worst(certificate):
        own = places == certificate.lookup.place(group)
        drawn[group] = values[own & ~marks], values[own & marks]
        made = certificate.certificates[group]
        if (digest(drawn[group][0]), digest(drawn[group][1])) != (made.normal.digest, made.anomalous.digest):
            raise _other()
    return drawn


def _other() -> InputError:
    return InputError(
        "the scores, labels and groups are not those the certificate was made from; pass what calibrated"
    )


def _kinds(certificate: GroupCertificate) -> tuple[tuple[str, NDArray[np.bool_]], ...]:
    """Return the groups by what is promised to them."""
    columns, pooled = certificate.columns, certificate.pooled
    few, kept = columns.vacuous & ~pooled, columns.kept.any(axis=0)
    return (
        ("certified", ~columns.empty),
        ("without a single threshold that can be certified", columns.empty & ~columns.vacuous),
        ("too small, and follow the pool", pooled),
        ("too small, and promised one rate", few & kept),
        ("too small, and promised nothing", few & ~kept),
    )


def _status(certificate: GroupCertificate) -> Status:
    columns, count = certificate.columns, len(certificate.groups)
    few = int(np.count_nonzero(columns.vacuous))
    good = int(np.count_nonzero(~columns.empty))
    if good == count:
        sign = "certified" if certificate.overlap.proved else "broken"
        asked = np.array([[certificate.asked.max_fpr], [certificate.asked.max_fnr]], dtype=float)
        if np.any(columns.ceilings > asked):
            return Status("raised", f"all {count:,} groups certified, some with raised ceilings")
        return Status(sign, f"all {count:,} groups certified" if count > 1 else "its one group is certified")
    lacking = f"; {few:,} {'has' if few == 1 else 'have'} too few labels" if few else ""
    if good or not certificate.empty:
        return Status("partly", f"{good:,} of {count:,} groups certified{lacking}")
    return Status("none", f"no group certified{lacking}")


def _promise(certificate: GroupCertificate) -> str:
    """Return in one sentence what holds in every certified group, with the highest ceilings among them."""
    columns, good = certificate.columns, ~certificate.columns.empty
    if not good.any():
        return "Nothing is promised to any group by itself."
    clauses, deltas = [], []
    for label, (errors, mistake) in enumerate(
        (
            ("false alarms", "future normal points that are called anomalies"),
            ("missed anomalies", "future anomalies that are called normal"),
        )
    ):
        ceilings = columns.ceilings[label, good]
        if np.isnan(ceilings).all():
            clauses.append(f"nothing is promised about {errors}")
            continue
        highest = ceiling(float(np.nan_to_num(ceilings, nan=1.0).max()))
        clauses.append(f"the rate of {mistake} is at most {highest}")
        deltas.append(float(columns.deltas[label, good].max()))
    asked = [one.delta for one in certificate.request.guarantee.promises]
    sure = confidence_left(*deltas)
    if certificate.overlap.multiplies and are_independent(certificate.assumptions):
        sure = kept_together(*map(confidence_left, deltas))
    whom = f"In each certified group by itself, with confidence {floored(sure)}"
    if certificate.together and all(one <= other for one, other in zip(deltas, asked, strict=False)):
        whom = f"In all certified groups at once, with confidence {floored(certificate.confidence or 0.0)}"
    proved = "" if certificate.overlap.proved else "; this confidence is not guaranteed"
    return f"{whom}: {', and '.join(clauses)}{proved}."


def _warnings(certificate: GroupCertificate) -> Iterator[str]:
    count = int(np.count_nonzero(~certificate.columns.empty))
    deltas = sum(one.delta for one in certificate.asked.promises)
    if not certificate.together and count > 1 and deltas * count >= 1:
        yield (
            f"Each promise holds by itself: of {count:,} certified groups, up to"
            f" {rounded_up(min(deltas, 1.0) * count, 1, 3)} are broken on average. Where all have to hold at"
            " once, calibrate with --together (together=True)."
        )


def _summary(certificate: GroupCertificate) -> Listing:
    columns = certificate.columns
    left = undecided(columns)
    rows = []
    for name, which in _kinds(certificate):
        if (count := int(np.count_nonzero(which))) or name == "certified":
            n = columns.n[:, which].sum(axis=1)
            open_ = int(left[:, which].sum())
            share = percent(open_ / int(n.sum())) if n.sum() else "no points"
            if name.endswith("the pool"):
                share = "as the pool decides"
            rows.append((name, f"{count:,}", f"{n[0]:,}", f"{n[1]:,}", share))
    return Listing("What the groups of the calibration table are promised.", _SUMMARY, tuple(rows))


def _measured(certificate: GroupCertificate, measured: GroupMeasured) -> Listing:
    """Return the table of the rates that were measured on points that did not calibrate."""
    rows = measured_rows(certificate, measured)
    listed = tuple((line(name), *cells) for name, *cells in islice(rows, LISTED))
    more = sum(1 for _ in rows)
    notes = [f"{more:,} more groups are not listed"] * (more > 0)
    caption = "; ".join(
        [f"{int(measured.counts.sum()):,} points", *notes, *measured_notes(certificate, measured)]
    )
    heads = tuple(head[0].upper() + head[1:] for head in MEASURED)
    return Listing(f"{caption}.", heads, listed, "Measured on points that did not calibrate")


def _lead(certificate: GroupCertificate) -> Iterator[str]:
    pool = certificate.pool
    if pool is not None:
        points = f"{pool.normal.n:,} normal and {pool.anomalous.n:,} anomalous points"
        if pool.empty:
            yield f"The pool of groups that are too small: its {points} are too few even together."
        else:
            yield (
                f"The pool of groups that are too small: {pool.certified}, from {points};"
                f" {rule_words(pool.rule)}. A promise about their mixture, as they stand in the table, and"
                " about none of them by itself."
            )
    gaps = certificate.gaps()
    yield from (gap_words(gap) for gap in (gaps.fpr, gaps.fnr) if gap is not None and gap.bound is not None)


def _row(certificate: GroupCertificate, row: Row) -> tuple[str, ...]:
    rule = _followed(certificate, row)
    return (
        shown(row.group, LONGEST_NAME),
        f"{row.n[0]:,}",
        f"{row.n[1]:,}",
        _promised(certificate, row),
        *(told_apart([end])[0] for end in (rule.normal_below, rule.anomaly_from)),
    )


def _followed(certificate: GroupCertificate, row: Row) -> Rule:
    """Return the rule that decides on the points of a group."""
    return certificate.pool.rule if row.pooled and certificate.pool is not None else row.rule


def _promised(certificate: GroupCertificate, row: Row) -> str:
    if row.certified is not None:
        text = "as asked" if row.certified == certificate.request.guarantee else str(row.certified)
        left = sum(row.undecided)
        return f"{text}; {percent(left / sum(row.n))} undecided" if left else text
    if row.regime is not Regime.VACUOUS:
        return "none: no single threshold"
    lacking = lacking_words(certificate.certificates[row.group])
    if row.pooled:
        return f"that of the pool, not its own; {lacking}"
    return f"{_alone(row) or 'none'}; {lacking}"


def _alone(row: Row) -> str | None:
    """Return the one rate that a group with too few labels of a class is promised."""
    return "FPR alone" if row.kept[0] else "FNR alone" if row.kept[1] else None


def _multiples(certificate: GroupCertificate, drawn: Drawn) -> Iterator[Multiple]:
    rows = [row for row in islice(certificate.rows(), MOST_MULTIPLES) if row.group in drawn]
    rules = [_followed(certificate, row) for row in rows]
    marks = [end for rule in rules for end in (rule.normal_below, rule.anomaly_from)]
    window = Window.around([scores for pair in drawn.values() for scores in pair], marks)
    for row, rule in zip(rows, rules, strict=True):
        words = f"{row.n[0]:,} normal, {row.n[1]:,} anomalous"
        if row.certified is None:
            words += "; follows the pool" if row.pooled else f"; {_alone(row) or 'no promise'}"
        yield multiple(window, rule, *drawn[row.group], shown(row.group, SHORT_NAME), words)


def _next(certificate: GroupCertificate) -> Iterator[str]:
    columns, each = certificate.columns, certificate.request.guarantee
    few = int(np.count_nonzero(columns.vacuous))
    if few:
        needed = " and ".join(
            f"{min_samples(one.ceiling, one.delta):,} {one.of.label}" for one in each.promises
        )
        groups = "the group" if few == 1 else f"the {few:,} groups"
        yield f"Label more points of {groups} with too few labels: a promise takes at least {needed} ones."
        if certificate.pool is None:
            yield (
                "Or give these groups one rule with --pool (pool=True): its promise is about their mixture,"
                " and about none of them by itself."
            )
    if np.any(columns.empty & ~columns.vacuous):
        yield (
            "Where no single threshold can be certified, let points be left undecided: calibrate fresh labels"
            " with --overlap abstain."
        )
    yield "As a check, measure the rates of each group on labelled points that were not used here."
    yield AGAIN
