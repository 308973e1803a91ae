"""The account of a certificate of groups: the certified ones, and the problems, the worst first."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from math import isnan
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import Scores, as_labelled, check_aligned, check_same_length
from pac_wrap.base.floats import rounded_down, rounded_up
from pac_wrap.base.text import amount
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.groups.certificate import GroupCertificate, jointly
from pac_wrap.method.groups.measure import GroupMeasured
from pac_wrap.method.groups.values import Group, GroupColumn, shown
from pac_wrap.method.metrics import metrics_of
from pac_wrap.method.provenance import Provenance
from pac_wrap.method.robust.shift_and_noise import NEW_LABELS
from pac_wrap.method.rule import Regime, Rule
from pac_wrap.report import sentences
from pac_wrap.report.account import Account, Fact, Figure, Item, Points, Section, Status, Table, facts_of
from pac_wrap.report.certificate import AGAIN, MOST_MULTIPLES, SHORT_NAME, assumptions, embedded, software
from pac_wrap.report.numbers import about, ceiling, percent, sure, told_apart
from pac_wrap.report.pictures import Drawing, Window, multiple
from pac_wrap.report.results import measured_account
from pac_wrap.tails.bounds import min_samples

# the normal and the anomalous scores of some groups
Drawn = Mapping[Group, tuple[Scores, Scores]]
# groups in the table of a page, and in the short account
LISTED: Final = 200
FEW_LISTED: Final = 20
_MEASURED: Final = ("group", "points", "FPR (max)", "FNR (max)", "undecided", "finding")
_LONGEST: Final = 40
_MIXTURE: Final = "about their mixture as in the table, and about none of them by itself"


class Row(NamedTuple):
    """A group, its own certificate, the number of undecided points, and the rates that it keeps alone."""

    group: Group
    own: Certificate
    left: int
    pooled: bool
    kept: tuple[bool, bool]


def _rows(certificate: GroupCertificate, most: int) -> Iterator[Row]:
    """Yield the worst groups, the worst first."""
    columns, pooled, request = certificate.columns, certificate.pooled, certificate.request
    left, kept = columns.undecided.sum(axis=0), columns.kept
    for place in columns.worst_first[:most].tolist():
        own = columns.at(place, request, certificate.score_type)
        enough = bool(kept[0, place]), bool(kept[1, place])
        yield Row(certificate.groups[place], own, int(left[place]), bool(pooled[place]), enough)


def account_of_groups(
    certificate: GroupCertificate,
    drawn: Drawn | None = None,
    detector: str | None = None,
    measured: GroupMeasured | None = None,
) -> Account:
    """Return the account of groups, with histograms of the worst if their scores are at hand."""
    sections = tuple(_sections(certificate, drawn or {}, measured))
    return replace(groups_in_short(certificate, detector), sections=sections)


def groups_in_short(certificate: GroupCertificate, detector: str | None = None) -> Account:
    """Return the account of a certificate of groups without its sections."""
    known, warned = certificate.provenance or Provenance(), []
    count = int(np.count_nonzero(~certificate.columns.empty))
    deltas = sum(one.delta for one in certificate.asked.promises)
    if not certificate.together and count > 1 and deltas * count >= 1:
        warned.append(
            f"Each promise holds by itself: of {count:,} certified groups, up to"
            f" {rounded_up(min(deltas, 1.0) * count, 1, 3)} break theirs on average. If all promises have to"
            " hold together, calibrate with --together (together=True)."
        )
    title = sentences.title(detector, known)
    if certificate.asked.of_traffic:
        title = title.replace("Error rates", "Alarms")
    subtitle, status, said = sentences.subtitle(known), _status(certificate), _promise(certificate)
    facts, form = tuple(_facts(certificate)), ("pac-wrap report of groups", 1)
    return Account(f"{title}, by group", subtitle, status, said, tuple(warned), facts=facts, form=form)


def _sections(
    certificate: GroupCertificate, drawn: Drawn, measured: GroupMeasured | None
) -> Iterator[Section]:
    count, said = len(certificate.groups), tuple(_lead(certificate))
    items: list[Item] = [_summary(certificate), *([Points(said)] if said else [])]
    if drawn:
        some = f"; {len(drawn):,} of {count:,} groups" if len(drawn) < count else ""
        caption = f"Each class in percent of itself, all groups on one scale, the worst first{some}."
        items.append(Figure("multiples", tuple(_multiples(certificate, drawn)), caption))
    yield Section("Groups", tuple(items), "parts", key="said", value=said)
    yield Section(key="measured") if measured is None else _measured(certificate, measured)
    yield Section("What to do next", (Points(tuple(_next(certificate, measured)), key="next_steps"),), "next")
    heads = ("Group", "Normal labels", "Anomalous labels", "Promise", "Normal below", "Anomaly from")
    if certificate.asked.of_traffic:
        heads = ("Group", "Points", "Alarms", "Found right", "Promise", "Alarm from")
    rows = tuple(_listed(certificate, row) for row in _rows(certificate, LISTED))
    more = "" if count <= LISTED else f" {count - LISTED:,} more are counted above and not listed."
    then = "the largest" if certificate.asked.of_traffic else "those with most undecided points"
    caption = f"First the groups without a promise, then {then}.{more}"
    records = {"caption": caption, "rows": Table(heads, rows).value}
    table = Table(heads, rows, caption, key="listing", data=records)
    heading = f"The worst {LISTED:,} of {count:,} groups" if more else f"All {count:,} groups"
    yield Section(heading, (table,), "listing")
    yield Section(key="verdicts", value=[])
    notes = (certificate.provenance or Provenance()).notes or ()
    texts = (f"{text}, in each group" for text in map(str, certificate.assumptions))
    unseen = "Groups that are not in the calibration table: their points are left undecided."
    yield assumptions((*texts, *notes), unseen, of_traffic=certificate.asked.of_traffic)
    yield embedded(certificate.to_json(), "The rules")
    yield software(certificate.version)


def _facts(certificate: GroupCertificate) -> Iterator[Fact]:
    count, each = len(certificate.groups), certificate.request.guarantee
    whom = "for each group by itself"
    if certificate.together:
        joint = rounded_down(certificate.confidence or 0.0)
        shares = " and ".join(rounded_up(promise.delta) for promise in each.promises)
        whom = f"for all {count:,} groups together with confidence {joint}; each group has delta = {shares}"
    yield from facts_of("asked", (str(certificate.asked), whom))
    few = int(np.count_nonzero(certificate.columns.vacuous))
    uncertified = int(np.count_nonzero(certificate.columns.empty)) - few
    counted = [f"{count:,}; certified: {count - few - uncertified:,}"]
    if few:
        pooled = ", which follow the pool" * bool(certificate.pooled.any())
        counted.append(f"too few {_labels(certificate)}: {few:,}{pooled}")
    if uncertified:
        counted.append(f"no single threshold can be certified: {uncertified:,}")
    yield Fact("groups", "; ".join(counted))
    if (pool := certificate.pool) is not None:
        points = f"{_points(pool)} of groups with too few labels"
        if pool.empty:
            yield Fact("pool", f"{points} are too few even together: each group keeps its own promise")
        else:
            yield Fact("pool", f"{_certified(pool)}, for {points}")
            yield Fact("", f"this promise is {_MIXTURE}")
    rows = _rows(certificate, FEW_LISTED)
    worst = [f"{line(shown(row.group))}: {_counted(row)}; {_verdict_of(row)}" for row in rows]
    worst += [f"and {count - FEW_LISTED:,} more"] * (count > FEW_LISTED)
    yield from facts_of("worst", worst)
    yield Fact("unseen", "points of a group that is not in the calibration table are left undecided")
    yield Fact("assumes", f"in each group: {sentences.briefly(certificate.assumptions)}")
    yield from sentences.noted_facts(certificate.provenance)


def _labels(certificate: GroupCertificate) -> str:
    return "points" if certificate.asked.of_traffic else "labels"


def _counted(row: Row) -> str:
    """Return the labels of a group, or the alarms among its traffic."""
    seen = row.own.traffic
    if seen is None:
        return f"{row.own.fpr.n:,} normal, {row.own.fnr.n:,} anomalous"
    right = f", {seen.right:,} found right" * (seen.found > 0)
    return f"{amount(seen.points, 'point')}, {amount(seen.alarms, 'alarm')}{right}"


def _points(pool: Certificate) -> str:
    return f"{pool.fpr.n:,} normal and {pool.fnr.n:,} anomalous points"


def _certified(certificate: Certificate) -> str:
    return ", ".join(str(one.certified) for one in certificate.clauses if one.certified is not None)


def line(name: str) -> str:
    """Return a name, cut if it is too long for a line."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def _verdict_of(row: Row) -> str:
    """Return the promise of a group, its rule, and its share of undecided points."""
    own, rule = row.own, row.own.rule
    if row.pooled:
        return "too few labels: it follows the pool, which promises nothing about it alone"
    if own.regime is Regime.VACUOUS:
        if row.kept[0]:
            ends = f"anomaly from {about(rule.anomaly_from)} on, nothing is called normal"
            return f"too few anomalous labels: only {own.fpr.asked} is promised; {ends}"
        if row.kept[1]:
            ends = f"normal below {about(rule.normal_below)}, nothing is called an anomaly"
            return f"too few normal labels: only {own.fnr.asked} is promised; {ends}"
        return f"too few {'labels' if own.traffic is None else 'points'}, nothing is promised"
    if own.empty:
        return "no single threshold can be certified, nothing is promised"
    text = sentences.rule_words(rule)
    if own.traffic is not None:
        return text.replace(", normal below", "")
    if not rule.single:
        text += f"; {percent(row.left / max(1, sum(own.sizes)))} of these points are undecided"
    return text if own.promises == own.guarantee.promises else f"{_certified(own)}; {text}"


def diagnosis_of_groups(certificate: GroupCertificate) -> tuple[str, ...]:
    """Return sentences that count the groups without a promise, with the reason and an example."""
    columns, found = certificate.columns, []
    for which, why in (
        (columns.vacuous & ~certificate.pooled, f"too few {_labels(certificate)}"),
        (columns.empty & ~columns.vacuous, "no single threshold can be certified"),
    ):
        if count := int(np.count_nonzero(which)):
            first = shown(certificate.groups[int(np.argmax(which))])
            found.append(f"{why} in {count:,} of {columns.size:,} groups, such as {first}")
    return tuple(found)


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
    """Return the scores of the worst groups from three columns, which must be those of the certificate."""
    if scores is None or labels is None or groups is None:
        if scores is labels is groups is None:
            return None
        raise InputError("pass the scores, labels and groups that calibrated, all three or none")
    if certificate.asked.of_traffic:
        raise InputError("a report of groups of traffic draws no scores; leave them out")
    from pac_wrap.method.groups.calibrate import Block

    _, values, marks = as_labelled(scores, labels, anomaly_label)
    check_aligned("scores", scores, "groups", groups)
    places, columns = certificate.lookup.places(groups), certificate.columns
    check_same_length("scores", values.size, "groups", places.size)
    own = None if (places < 0).any() else Block.of(values, marks, places, columns.size)
    if own is None or not (np.array_equal(own.n, columns.n) and np.array_equal(own.digests, columns.digest)):
        raise InputError(
            "the scores, labels and groups are not those the certificate was made from; pass what calibrated"
        )
    drawn = {group: places == certificate.lookup.place(group) for group in worst(certificate)}
    return {group: (values[rows & ~marks], values[rows & marks]) for group, rows in drawn.items()}


def _status(certificate: GroupCertificate) -> Status:
    columns, count, code = certificate.columns, len(certificate.groups), int(certificate.empty)
    few, good = int(np.count_nonzero(columns.vacuous)), int(np.count_nonzero(~columns.empty))
    if good == count:
        asked = np.array([[certificate.asked.max_fpr], [certificate.asked.max_fnr]], dtype=float)
        if np.any(columns.ceilings > asked):
            return Status("raised", f"all {count:,} groups certified, some with raised ceilings", code)
        words = f"all {count:,} groups certified" if count > 1 else "its one group is certified"
        return Status("certified" if certificate.overlap.proved else "broken", words, code)
    lacking = f"; {few:,} {'has' if few == 1 else 'have'} too few {_labels(certificate)}" if few else ""
    if good or not certificate.empty:
        return Status("partly", f"{good:,} of {count:,} groups certified{lacking}", code)
    return Status("none", f"no group certified{lacking}", code)


def _promise(certificate: GroupCertificate) -> str:
    """Return the promise of the certified groups in one sentence, with the highest ceilings among them."""
    columns, good = certificate.columns, ~certificate.columns.empty
    if not good.any():
        return "Nothing is promised about any group by itself."
    of_traffic, clauses, silent, deltas = certificate.asked.of_traffic, [], "", []
    both = zip(sentences.MISTAKES.values(), ("false alarms", "missed anomalies"), strict=True)
    for label, (words, errors) in enumerate(both):
        ceilings = columns.ceilings[label, good]
        if np.isnan(ceilings).all():
            silent += f" Nothing is promised about {errors}." * (not of_traffic)
            continue
        most = f"at most {ceiling(float(np.nan_to_num(ceilings, nan=1.0).max()))} of {' '.join(words)}"
        clauses.append(sentences.promise_in_words(certificate.asked.promises[0]) if of_traffic else most)
        deltas.append(float(columns.deltas[label, good].max()))
    asked = [one.delta for one in certificate.request.guarantee.promises]
    whom, joint = "each certified group by itself", sure(jointly(certificate, *deltas))
    if certificate.together and all(one <= other for one, other in zip(deltas, asked, strict=False)):
        whom, joint = "all certified groups together", sure(certificate.confidence or 0.0)
    silent = f"{'' if certificate.overlap.proved else ' This confidence is not guaranteed.'}{silent}"
    return f"In the long run, {', and '.join(clauses)}: in {whom}, with {joint} confidence.{silent}"


def _summary(certificate: GroupCertificate) -> Item:
    columns, pooled = certificate.columns, certificate.pooled
    if certificate.asked.of_traffic:
        right = int(columns.n[1].sum() - columns.errors[1].sum())
        alarms = f"{columns.errors[0].sum() + right:,} of all {columns.n.sum():,} points raise an alarm"
        return f"{alarms}; {right:,} found right."
    few, kept, left = columns.vacuous & ~pooled, columns.kept.any(axis=0), columns.undecided
    rows = []
    for name, which in (
        ("certified", ~columns.empty),
        ("overlapping too much for one threshold", columns.empty & ~columns.vacuous),
        ("too small, following the pool", pooled),
        ("too small, with a promise on one rate", few & kept),
        ("too small, without a promise", few & ~kept),
    ):
        if (count := int(np.count_nonzero(which))) or name == "certified":
            n = columns.n[:, which].sum(axis=1)
            share = percent(int(left[:, which].sum()) / int(n.sum())) if n.sum() else "no points"
            if name.endswith("the pool"):
                share = "as the pool decides"
            rows.append((name, f"{count:,}", f"{n[0]:,}", f"{n[1]:,}", share))
    heads = ("Groups", "Number", "Normal labels", "Anomalous labels", "Undecided")
    return Table(heads, tuple(rows), "The promises of the groups in the calibration table.", key="groups")


def account_of_measured_groups(certificate: GroupCertificate, measured: GroupMeasured) -> Account:
    """Return the account of the measured rates of each group next to its ceilings, the worst first."""
    rows, more = _measured_rows(certificate, measured, FEW_LISTED)
    pairs = zip(measured.groups, measured.counts, strict=False)
    groups = [{"group": one} | sentences.rates_record(metrics_of(counts)) for one, counts in pairs]
    over = [{"group": group, "rate": rate} for group, rate in measured.exceeded]
    table = Table(_MEASURED, rows, "measured, the worst group first", (0, 5), key="groups", data=groups)
    notes = *([f"and {more:,} more"] * (more > 0)), *_measured_notes(certificate, measured)
    values = {"rates": sentences.rates_record(measured.together), "unseen": measured.unseen}
    return measured_account(table, notes, certificate.asked, **values, exceeded=over)


def _measured(certificate: GroupCertificate, measured: GroupMeasured) -> Section:
    rows, more = _measured_rows(certificate, measured, LISTED)
    notes = [amount(int(measured.counts.sum()), "point"), *[f"{more:,} more not listed"] * (more > 0)]
    caption = f"{'; '.join([*notes, *_measured_notes(certificate, measured)])}."
    table = Table(tuple(head[0].upper() + head[1:] for head in _MEASURED), rows, caption)
    value = {"caption": caption, "rows": table.value}
    return Section("Measured on held-out points", (table,), "measured", False, "measured", value)


def _measured_notes(certificate: GroupCertificate, measured: GroupMeasured) -> Iterator[str]:
    if measured.unseen:
        yield f"{amount(measured.unseen, 'row')} undecided: the group was not seen at calibration"
    yield "exceeded means significantly, by one exact test of all groups at 5 %"
    if certificate.asked.label_noise is not None:
        yield NEW_LABELS


def _measured_rows(
    certificate: GroupCertificate, measured: GroupMeasured, most: int
) -> tuple[tuple[tuple[str, ...], ...], int]:
    """Return the measured rates of the worst groups, and the number of other groups."""
    over: dict[Group, list[str]] = {}
    for group, rate in measured.exceeded:
        over.setdefault(group, []).append(rate)
    mine, rows = certificate.columns.kept & ~certificate.pooled, []
    limits = np.where(mine, certificate.columns.ceilings, np.nan)
    for group, metrics in islice(measured.worst_first(), most):
        place, cells, above = certificate.lookup.place(group), [], False
        for found, limit in zip((metrics.fpr, metrics.fnr), limits[:, place].tolist(), strict=True):
            value = f"{found.value:.4f}" if found.n else "no points"
            cells.append(f"{value} ({'none' if isnan(limit) else rounded_up(limit)})")
            above |= found.value > limit
        verdict = "within" if mine[:, place].any() else "no promise"
        if above:
            verdict = "above, not significantly"
        if group in over:
            verdict = f"{' and '.join(over[group])} exceeded"
        name, open_ = line(shown(group)), f"{metrics.ambiguity.value:.4f}"
        rows.append((name, f"{metrics.err.n:,}", *cells, open_, verdict))
    return tuple(rows), len(measured.groups) - len(rows)


def _lead(certificate: GroupCertificate) -> Iterator[str]:
    pool = certificate.pool
    if pool is not None and pool.empty:
        yield f"The pool of small groups has too few labels even together: {_points(pool)}."
    elif pool is not None:
        yield (
            f"The pool of small groups: {_certified(pool)}, from {_points(pool)};"
            f" {sentences.rule_words(pool.rule)}. This promise is {_MIXTURE}."
        )
    gaps = certificate.gaps()
    yield from (str(gap) for gap in (gaps.fpr, gaps.fnr) if gap is not None and gap.bound is not None)


def _listed(certificate: GroupCertificate, row: Row) -> tuple[str, ...]:
    own, rule = row.own, _followed(certificate, row)
    name = shown(row.group, sentences.LONGEST_NAME)
    if (seen := own.traffic) is not None:
        counts = (f"{count:,}" for count in (seen.points, seen.alarms, seen.right))
        promised = f"none; missing points: {own.fpr.missing:,}" if own.empty else "as asked"
        return name, *counts, promised, told_apart([rule.anomaly_from])[0]
    if not own.empty:
        promised = "as asked" if own.promises == own.guarantee.promises else _certified(own)
        promised += f"; {percent(row.left / sum(own.sizes))} undecided" if row.left else ""
    elif own.regime is not Regime.VACUOUS:
        promised = "none: no single threshold"
    else:
        missing = [f"{one.missing:,} {one.of.label}" for one in own.clauses if one.missing]
        of = "that of the pool, not its own" if row.pooled else _one_rate(row) or "none"
        promised = f"{of}; missing labels: {' and '.join(missing) or 'none'}"
    ends = (told_apart([end])[0] for end in (rule.normal_below, rule.anomaly_from))
    return name, f"{own.fpr.n:,}", f"{own.fnr.n:,}", promised, *ends


def _followed(certificate: GroupCertificate, row: Row) -> Rule:
    return certificate.pool.rule if row.pooled and certificate.pool is not None else row.own.rule


def _one_rate(row: Row) -> str | None:
    return "FPR alone" if row.kept[0] else "FNR alone" if row.kept[1] else None


def _multiples(certificate: GroupCertificate, drawn: Drawn) -> Iterator[Drawing]:
    rows = [row for row in _rows(certificate, MOST_MULTIPLES) if row.group in drawn]
    rules = [_followed(certificate, row) for row in rows]
    marks = [end for rule in rules for end in (rule.normal_below, rule.anomaly_from)]
    window = Window.around([scores for pair in drawn.values() for scores in pair], marks)
    for row, rule in zip(rows, rules, strict=True):
        words = _counted(row)
        if row.own.empty:
            words += "; follows the pool" if row.pooled else f"; {_one_rate(row) or 'no promise'}"
        yield multiple(window, rule, *drawn[row.group], shown(row.group, SHORT_NAME), words)


def _next(certificate: GroupCertificate, measured: GroupMeasured | None) -> Iterator[str]:
    columns, each = certificate.columns, certificate.request.guarantee
    few = int(np.count_nonzero(columns.vacuous))
    if few and each.of_traffic:
        (one,) = each.promises
        needed = amount(min_samples(one.at_calibration, one.delta), "point")
        yield f"Calibrate on more traffic: a group needs at least {needed} for the promise."
    elif few:
        needs = (f"{min_samples(one.ceiling, one.delta):,} {one.of.label}" for one in each.promises)
        needed = " and ".join(needs)
        groups = "the group" if few == 1 else f"the {few:,} groups"
        yield f"Label more points of {groups} with too few labels: a promise needs at least {needed} ones."
        if certificate.pool is None:
            yield (
                "Or give these groups one rule with --pool (pool=True): its promise is about their mixture,"
                " and about none of them by itself."
            )
    if np.any(columns.empty & ~columns.vacuous):
        yield (
            "For groups without a threshold that can be certified, calibrate fresh labels with --overlap"
            " abstain, which leaves points undecided."
        )
    if measured is None and not each.of_traffic:
        yield "As a check, measure the rates of each group on labelled points that were not used here."
    yield AGAIN
