"""The account of a certificate: its promise, the consequences in practice, and the evidence."""

import json
import platform
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import scipy

from pac_wrap.base.codec import checksum_of
from pac_wrap.base.floats import between, rounded_down, rounded_up
from pac_wrap.base.text import amount, sentence, visible
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import LABELS
from pac_wrap.method.robust.shift_and_noise import SHIFTS, before_shift
from pac_wrap.method.rule import Regime, Verdict
from pac_wrap.report import pictures, sentences
from pac_wrap.report.account import Account, Figure, File, Item, Points, Section, Table, only
from pac_wrap.report.numbers import ceiling, confidence, exact, least, percent, share, sure, told_apart
from pac_wrap.tails.bounds import LEAST_CEILING, Budget, min_samples
from pac_wrap.version import __version__

Pairs = tuple[tuple[str, str], ...]
PER: Final = 1000
# small histograms that a page has at most, and the length of a name above one
MOST_MULTIPLES: Final = 24
SHORT_NAME: Final = 24
AGAIN: Final = "Calibrate again, on fresh points, when the detector is retrained or the data change."
# the prevalence and the ceiling to begin with where none is known
_RARE, _USUAL = 0.01, 0.05
# looser ceilings, in units of the certified one; tighter ones, as parts of the one asked for
_LOOSER: Final = (1.5, 2.0, 4.0)
_TIGHTER: Final = (1, 2, 5, 10)
_TOLERATED: Final = 10
_TABLES: Final = 10
_LONGEST: Final = 100_000  # characters of a certificate within its page
_NOTHING: Final = "not promised"
_UNDECIDED: Final = "Undecided: someone has to look at these points."
# findings about measured rates, for a page
_FINDINGS: Final = {
    "no promise": "nothing promised",
    "no points": "not measured",
    "within": "within the ceiling",
    "exceeded": "significantly above the ceiling",
    "above, not significantly": "above the ceiling, not significantly",
}
# theory.md, section 9: a choice made after seeing these labels has another chance to fail
_AGAIN: Final = "On these same labels, a second strategy or ceiling would lose the confidence that it states."
_BREAKS: Final = (
    "Calibration points that the detector was trained on, or copies of training rows.",
    "Points that were labelled because of their scores, such as reviewed alarms.",
    "A detector that is retrained or rescaled after the calibration.",
    "Dependent points, such as neighbours in a time series or several records of one patient: there is then"
    " less evidence than n says.",
    "A distribution shift: future points of a class that differ more than the promise tolerates.",
    "Choosing among several certificates after seeing them, unless they shared delta beforehand.",
    "Calibrating again as labels come in until it succeeds: a look after every 20 labels, up to 2,000, breaks"
    " a ceiling of 5 % in 24 % of runs where delta is 5 %.",
)
_DEPENDENT_UNITS: Final = (
    "Units that depend on each other, such as machines that fail together, or units unlike those to come."
)
_NOT_PROMISED: Final = (
    "A single batch: the promise is about the rate, and the share of errors in a batch varies around it.",
    "Calibrations with separated classes taken alone: the confidence is about all calibrations, and may be"
    " lower among these.",
    "The share of undecided points.",
)
_BREAKS_OF_TRAFFIC: Final = (
    "Traffic of busy hours alone, or alarms alone, in place of a random sample of all that comes.",
    "A detector that was trained on this traffic, or that is retrained or rescaled after the calibration.",
    "Reviewers who call wrong alarms right more often than the promise tolerates.",
    "Dependent points, such as many records of one incident: there is then less evidence than their number"
    " says.",
    "A shift of traffic: future points that differ from these more than by chance.",
    "Choosing among several certificates after seeing them, unless they shared delta beforehand.",
)
_NOT_PROMISED_OF_TRAFFIC: Final = (
    "The number on a single day: the promise is about the average of many days, and days vary around it.",
)


def account_of_certificate(result: Any, *about: Any, **more: Any) -> Account:
    """Return the account of a certificate, of two classes or of their kinds; a `Report` adds facts."""
    report = result if isinstance(result, sentences.Report) else sentences.Report(result, *about, **more)
    picture = None
    if report.normal is not None:
        drawn = report.certificate, report.normal, report.anomalous
        picture = Figure("scores", drawn, alt="Histograms of the scores of both classes, with the thresholds")
    return replace(sentences.account_in_short(report), sections=tuple(_sections(report)), picture=picture)


def _sections(report: sentences.Report) -> Iterator[Section]:
    certificate, kinds = report.certificate, report.certificate.by_kind
    units = certificate.units is not None
    verdicts = list(_verdicts(report))
    if report.normal is not None:
        told = "; ".join(f"{row['verdict']}: {row['scores']}" for row in verdicts)
        alt = f"Histogram of the calibration scores of each class, in percent of the class. Verdicts: {told}."
        shown = pictures.scores_picture(certificate.rule, report.normal, report.anomalous)
        yield Section(items=(Figure("scores", shown, alt=alt),))
    if kinds:
        yield _kinds(report)
    steps = _kind_steps(certificate) if kinds else _unit_steps(certificate) if units else _next_steps(report)
    yield Section("What to do next", (Points((*steps, AGAIN), key="next_steps"),), "next")
    if not kinds and not units:
        yield _held_out(report)
        series = tuple(sentence(f"{one.name}: {one.text}".removeprefix(": ")) for one in report.in_time)
        heading = "Calibration series and held-out series"
        yield Section(heading, (Points(series),) if series else (), "in-time", key="in_time", value=series)
        yield _practice(report)
        yield _thresholds(report)
    yield _meant(certificate, verdicts)
    new_kinds = ("Kinds of points that did not occur at calibration.",) * kinds
    yield assumptions(sentences.assumed(certificate), *new_kinds, of_units=units)
    if kinds:
        yield from only(measured=None, listing=None)
    elif not units:
        yield _shift(certificate)
        yield _reached(certificate)
        yield _plan(certificate)
    yield from origins(report)


def origins(report: sentences.Report) -> Iterator[Section]:
    """Yield the certificate itself, and the software and scores that it was made from."""
    certificate, kinds = report.certificate, report.certificate.by_kind
    text = certificate.to_json()
    yield embedded(text, "The rule")
    if not kinds:
        yield from only(detector=report.detector, source=report.source)
    digests = []
    for one in certificate.clauses:
        name = f"{one.of.label.capitalize()} {sentences.called(one) if kinds else 'scores'}"
        name = name if certificate.traffic is None else str(one.of).capitalize()
        digests.append((name, one.digest or "none: the database could not compute it"))
    digests.append(("Certificate (its checksum)", checksum_of(text)))
    yield software(certificate.version, tuple(digests), () if kinds else _origin(report))


def _meant(certificate: Certificate, verdicts: list[dict[str, Any]]) -> Section:
    """Return the meaning of each range of scores; without kinds, also the share of each class."""
    heads: tuple[str, ...] = ("Score", "Verdict", "Meaning")
    rows: list[tuple[str, ...]] = [(row["scores"], row["verdict"], row["meaning"]) for row in verdicts]
    said: tuple[str, ...] = ()
    caption = "The meaning of each score, for points of every kind."
    if not certificate.by_kind:
        caption = "The meaning of each score. The shares are those of the calibration points, not promised."
        heads += ("Normal points", "Anomalous points")
        for place, row in enumerate(verdicts):
            counts = (row[label].values() for label in LABELS)
            shares = ("not counted" if count is None else share(count, n) for count, n in counts)
            rows[place] = *rows[place], *shares
        said = tuple(sentences.notes(certificate))
    table = Table(heads, tuple(rows), caption, key="verdicts", data=verdicts)
    items = (table, Points(said)) if said else (table,)
    return Section("Verdicts", items, "verdicts", key="" if certificate.by_kind else "notes", value=said)


def assumptions(
    texts: tuple[str, ...], *more_not_promised: str, of_traffic: bool = False, of_units: bool = False
) -> Section:
    """Return the assumptions, the events that break them, and the limits of the promise."""
    breaks: tuple[str, ...] = _BREAKS_OF_TRAFFIC if of_traffic else _BREAKS
    if of_units:
        breaks = tuple(_DEPENDENT_UNITS if one.startswith("Dependent") else one for one in _BREAKS)
    limits = _NOT_PROMISED_OF_TRAFFIC if of_traffic else _NOT_PROMISED
    uncovered = (*more_not_promised, *limits, "Anything about a single point.")
    items = (
        Points(tuple(map(sentence, texts)), "The promise assumes:", "assumptions"),
        Points(breaks, "These break it:", "breaks"),
        Points(uncovered, "It does not cover:", "not_promised"),
    )
    return Section("Assumptions and limits", items, "assumptions")


def embedded(text: str, rules: str) -> Section:
    """Return the certificate itself, unless it is too long for a page."""
    items: tuple[Item, ...] = ("The certificate is too long for this page; save it beside the page.",)
    value = None
    if len(text) <= _LONGEST:
        said = f"{rules} with every digit, as a file for programs; loading it never runs code."
        items, value = (said, File("certificate.json", text)), json.loads(text)
    return Section("The certificate", items, "certificate", True, "certificate", value)


def software(made_by: str, digests: Pairs = (), origin: Pairs = ()) -> Section:
    """Return the software that made a certificate and its page, and the digests of the scores."""
    versions = (
        ("Certificate made by pac-wrap-ad", visible(made_by)),
        ("Report made by pac-wrap-ad", __version__),
        ("Python", platform.python_version()),
        ("NumPy", np.__version__),
        ("SciPy", scipy.__version__),
    )
    guard = "Digests detect mix-ups, not forgery."
    tables = (
        Table(("What", "Name"), origin, "Origin of the scores.", verbatim=True),
        Table(("What", "Version"), versions, "Software.", verbatim=True, key="versions", data=dict(versions)),
        Table(("Of", "Digest"), digests, guard, verbatim=True),
    )
    shown = tuple(table for table in tables if table.rows)
    return Section("Versions and digests", shown, "versions", True, "digests", dict(digests))


def _origin(report: sentences.Report) -> Pairs:
    source, rows = report.source, [("Detector", report.detector)] if report.detector else []
    labels = "labels" if report.certificate.traffic is None else "reviews"
    if source is not None:
        rows += [("Table of scores", table) for table in source.tables[:_TABLES]]
        rows += [("More tables", f"{len(source.tables) - _TABLES:,}")] * (len(source.tables) > _TABLES)
        rows += [("Column of scores", source.score), (f"Column of {labels}", source.label)]
    return tuple((name, visible(text)) for name, text in rows)


def _verdicts(report: sentences.Report) -> Iterator[dict[str, Any]]:
    """Yield a record for each verdict; that of undecided points only if some score gets it."""
    rule, sizes = report.certificate.rule, report.certificate.sizes
    found, said = sentences.ranges(rule), dict(_meanings(report.certificate))
    words = sentences.range_words(found)
    classes = report.normal, report.anomalous
    given = [None if scores is None else rule.verdicts(scores) for scores in classes]
    for verdict in (Verdict.NORMAL, *(found.keys() & {Verdict.ABSTAIN}), Verdict.ANOMALY):
        low, high = found.get(verdict, (None, None))
        counts = [None if one is None else int(np.count_nonzero(one == verdict)) for one in given]
        never = "This verdict is never given."
        yield {
            "verdict": verdict.name.lower(),
            "code": int(verdict),
            "declared": verdict in found,
            "from": low,
            "below": high,
            "scores": words.get(verdict, "no score"),
            "meaning": said.get(verdict, _UNDECIDED) if verdict in found else never,
            "normal": {"count": counts[0], "n": sizes[0]},
            "anomalous": {"count": counts[1], "n": sizes[1]},
        }


def _meanings(certificate: Certificate) -> Iterator[tuple[Verdict, str]]:
    """Yield the meaning of each verdict; nothing if nothing is certified, since every point is undecided."""
    clauses = certificate.clauses
    if all(one.certified is None for one in clauses) and not certificate.by_kind:
        return
    for verdict, said, label, others in (
        (Verdict.NORMAL, "No alarm.", "anomalous", "anomalies"),
        (Verdict.ANOMALY, "Alarm.", "normal", "normal points"),
    ):
        rates = [one.ceiling for one in clauses if one.of.label == label and one.ceiling is not None]
        if certificate.by_kind and any(one.of.label == label for one in certificate.promises):
            yield verdict, f"{said} Each kind of {others} gets it at most as often as its ceiling says."
        elif rates and certificate.units is not None:
            yield verdict, said
        elif rates and not certificate.by_kind:
            most = ceiling(rates[0])
            yield verdict, f"{said} In the long run, at most {most} of {others} get this verdict."
        else:
            yield verdict, f"{said} The number of {others} that get this verdict is not promised."


def _held_out(report: sentences.Report) -> Section:
    heading, metrics = "Measured on held-out points", report.metrics
    if metrics is None:
        return Section(heading, key="held_out")
    sides = sentences.sides_of(report.certificate, metrics)
    tops = ["none" if one.finding == "no promise" else ceiling(one.ceiling or 1.0) for one in sides]
    rows = []
    for name, rate, top, finding in (
        (f"FPR, {sides[0].mistakes}", metrics.fpr, tops[0], sides[0].finding),
        (f"FNR, {sides[1].mistakes}", metrics.fnr, tops[1], sides[1].finding),
        ("undecided, normal", metrics.abstained_normal, "none", "no promise"),
        ("undecided, anomalous", metrics.abstained_anomalous, "none", "no promise"),
    ):
        measured, interval = "no points", ""
        if rate.n:
            measured, interval = percent(rate.value), f"{percent(rate.low)} to {percent(rate.high)}"
        rows.append((name, measured, interval, f"{rate.n:,}", top, _FINDINGS[finding]))
    columns = ("Rate", "Measured", "Interval", "Points", "Ceiling", "Finding")
    caption = (
        "Rates on labelled points that were not used to calibrate, with exact intervals. Significance is that"
        " of an exact one-sided test at 5 %, for one look at these points."
    )
    findings = {one.name.lower(): _FINDINGS[one.finding] for one in sides}
    data = sentences.rates_record(metrics) | {"findings": findings}
    return Section(heading, (Table(columns, tuple(rows), caption, key="held_out", data=data),), "held-out")


def _practice(report: sentences.Report) -> Section:
    """Return the alarms and errors among future points, on average: eqs. (48) and (49)."""
    certificate, shares = report.certificate, report.shares
    items: tuple[Item, ...] = ()
    numbers: dict[str, Any] = {}
    precise = None
    if shares is None:
        alone = _without(certificate, 0.0, f"Of {PER:,} future normal points")
        lead = " ".join(filter(None, (alone, "State your prevalence to see other numbers.")))
    else:
        told = " to ".join(dict.fromkeys(map(percent, shares)))
        among = f"Of {PER:,} future points, if {told} are anomalous"
        if report.prevalence is None:
            among += " (the share in the calibration table; state your own if it differs)"
        try:
            work, precision = certificate.workload(shares, PER), certificate.precision(shares)
        except InputError as error:
            lead = _without(certificate, shares[0], among) or f"Not counted: {error}."
        else:
            lead = f"{among}: average numbers, which hold together with {sure(work.confidence)} confidence."
            right = f"At least {least(precision.low)} of the alarms are right"
            precise = f"{right}, with {sure(precision.confidence)} confidence."
            bounds = {kind: getattr(work, kind) for kind in sentences.WORK}
            longest = max(one.high for one in bounds.values())
            bars = tuple(
                {
                    "kind": kind,
                    "name": sentences.WORK[kind].capitalize(),
                    "words": between(one.low, one.high),
                    "sure": f"{100.0 * one.low / longest:.2f}",
                    "possible": f"{100.0 * one.high / longest:.2f}",
                }
                for kind, one in bounds.items()
            )
            numbers = {kind: {"from": one.low, "to": one.high} for kind, one in bounds.items()}
            rows = tuple((bar["name"], bar["words"]) for bar in bars)
            table = Table(("Points", "Number"), rows, "Per 1,000 points, on average.")
            items = (Figure("bars", bars, instead=table), precise)
    value = {"said": lead, "precision": precise, "per": PER, "prevalence": shares} | numbers
    return Section("Precision and workload", (lead, *items), "practice", key="practice", value=value)


def _without(certificate: Certificate, anomalous: float, among: str) -> str | None:
    """Return the bound on false alarms that follows from the ceiling of the FPR alone."""
    kept = certificate.fpr.certified
    if kept is None or not certificate.overlap.proved or certificate.empty:
        return None
    # in decimals, so that 1,000 times 0.98 times 0.05 is 49 and no more
    false = PER * (1 - Decimal(repr(anomalous))) * Decimal(repr(kept.ceiling))
    return (
        f"{among}, at most {rounded_up(float(false), digits=3)} are false alarms on average, with"
        f" {confidence(kept.delta)} confidence. Nothing is promised about the anomalies that are caught."
    )


def _thresholds(report: sentences.Report) -> Section:
    """Return other thresholds of the certified curve, if there is a choice."""
    certificate, heading = report.certificate, "Other thresholds"
    curve = pictures.curve_of(certificate, report.normal, report.anomalous)
    choices = () if curve is None else tuple(pictures.choices_of(curve))
    if curve is None or not choices:
        return Section(heading, key="thresholds")
    deltas = curve.normal.delta, curve.anomalous.delta
    left = confidence(*deltas, *(side.delta for side in sentences.sides_of(certificate)))
    said = (
        f"These bounds hold together at every threshold: those of the FPR with {confidence(deltas[0])}"
        f" confidence, those of the FNR with {confidence(deltas[1])}, all with {sure(curve.confidence)}. So"
        " they hold at any threshold that you choose, even after looking. The price: they are a little"
        " higher than the bounds of a threshold that is fixed beforehand.",
        "The promise at the top has deltas of its own. To rely on both the promise and a threshold chosen"
        f" here, or to choose between them, add up all deltas, which leaves {left} confidence.",
    )
    rule, asked = certificate.rule, certificate.guarantee
    shown = pictures.scores_picture(rule, report.normal, report.anomalous)
    ceilings = asked.max_fpr or _USUAL, asked.max_fnr or _USUAL
    start = rule.anomaly_from if rule.single else None
    picture = {
        "tails": shown["tails"],
        "bands": pictures.bands(shown["window"], curve),
        "data": pictures.script_data(curve, shown["window"], ceilings, start),
        "prevalence": "-".join(f"{one:.4g}" for one in dict.fromkeys(report.shares or (_RARE, _RARE))),
    }
    columns = ("Choice", "Anomaly from", "FPR at most", "FNR at most")
    rows = tuple(tuple(one.values()) for one in choices)
    table = Table(columns, rows, "Some thresholds of the certified curve.")
    items = (said[0], Figure("explorer", picture), table, said[1])
    value = {"said": said, "choices": choices}
    return Section(heading, items, "thresholds", key="thresholds", value=value)


def _shift(certificate: Certificate) -> Section:
    """Return looser ceilings, each with the largest shift that keeps it: eq. (77)."""
    kept = list(before_shift(certificate))
    keys = ("kept", "total_variation", "ratio", "kl", "chi_squared")
    rows = []
    for one, rate in kept:
        for limit in (round(factor * one.ceiling, 12) for factor in _LOOSER):
            if limit < 1.0:
                found = [kind.between(rate, limit) for kind in SHIFTS]
                sizes = ("none" if shift is None else rounded_down(shift.size, digits=4) for shift in found)
                rows.append((f"{one.name} at most {ceiling(limit)}", *sizes))
    value = [dict(zip(keys, row, strict=True)) for row in rows]
    heads = ("Ceiling", "Total variation", "Density ratio", "KL divergence (nats)")
    caption = "The largest shift that keeps a looser ceiling."
    table = Table((*heads, "Chi-squared divergence"), tuple(rows), caption)
    lead = (
        "A looser ceiling still holds, with the same confidence, if future points of a class differ from its"
        " calibration points by no more than this in any one of four distances. The prevalence may change"
        " freely, because each rate is about one class."
    )
    drawn = Figure("robust", pictures.panels({one.name: rate for one, rate in kept}))
    items = (lead, drawn, table) if rows else ()
    return Section("Tolerance of distribution shift", items, "shift", True, "robust", value)


def _reached(certificate: Certificate) -> Section:
    low, high = (_column(side) for side in sentences.sides_of(certificate))
    rule, regime = certificate.rule, certificate.regime
    rows = (
        *((name, low[name], high[name]) for name in low),
        ("Rule", f"normal_below = {exact(rule.normal_below)}", f"anomaly_from = {exact(rule.anomaly_from)}"),
    )
    heads, keys = ("", "Normal points, FPR", "Anomalous points, FNR"), ("name", "normal", "anomalous")
    caption = (
        "FPR: the share of normal points that raise an alarm. FNR: the share of anomalies that are called"
        " normal. k*: the errors allowed among n points."
    )
    records = [dict(zip(keys, row, strict=True)) for row in rows]
    table = Table(heads, rows, caption, key="reached", data=records)
    said = (
        f"Regime {regime.value}: {regime.explanation}.",
        *(f"{text}." for text in sentences.diagnosis_of(certificate)),
        *certificate.overlap.explanation(certificate.claim),
    )
    return Section("Calculation", (table, Points(said, key="explanations")), "reached", folded=True)


def _column(side: sentences.Side) -> dict[str, str]:
    budget, none = side.budget, "none yet, too few points" if side.vacuous else _NOTHING
    exact_sure = "" if budget is None else f"{rounded_down(budget.confidence, 100)} %"
    return {
        "Ceiling asked for": _NOTHING if side.wanted is None else ceiling(side.wanted),
        "Ceiling certified": ceiling(side.ceiling or 1.0) if side.kept else none,
        "Confidence promised": confidence(side.delta) if side.kept else none,
        "Labelled points n": f"{side.n:,}",
        "Error budget k*": none if side.errors is None else f"{side.errors:,}",
        "Delta of that budget": _NOTHING if budget is None else rounded_up(budget.delta),
        "Exact confidence of that budget": none if side.errors is None else exact_sure,
        "Points beyond the other threshold": "not counted" if side.beyond is None else f"{side.beyond:,}",
        "Threshold": f"{'alarm_from' if side.name == 'FPR' else 'clear_below'} = {exact(side.threshold)}",
    }


def _plan(certificate: Certificate) -> Section:
    """Return the labels needed for the ceilings asked for and for tighter ones: eq. (4)."""
    asked = [side for side in sentences.sides_of(certificate) if side.wanted is not None]
    value, rows = [], []
    for side in asked:
        for lower in ((side.wanted or 1.0) / divisor for divisor in _TIGHTER):
            none = _labels(side, lower)
            if none is None:
                continue
            some, missing = _labels(side, lower, _TOLERATED) or none, none - side.at_hand
            record: dict[str, Any] = {"side": side.name, "kind": side.of.label, "ceiling": lower}
            record |= {"delta": side.asked_delta, "none_tolerated": none, "some_tolerated": some}
            value.append(record | {"at_hand": side.at_hand})
            enough = "enough" if missing <= 0 else f"{missing:,} missing"
            short = f"{side.name} \N{LESS-THAN OR EQUAL TO} {ceiling(lower)}"
            rows.append((short, f"{none:,}", f"{some:,}", f"{side.at_hand:,} {side.of.label}, {enough}"))
    listed = ", ".join(f"{side.name} {confidence(side.asked_delta)}" for side in asked)
    caption = (
        "Labels needed for the ceilings asked for and for lower ones, at the confidence asked for"
        f" ({listed}), if the rule may misjudge none or {_TOLERATED} of them."
    )
    if any(side.effective is not None for side in asked):
        caption += " At hand: the number of independent points that those of the series count as."
    if (more := certificate.overlap.needs_more_labels) is not None:
        caption += f" {more}"
    heads = ("Promise", "Needed, no error", f"Needed, {_TOLERATED} errors", "At hand")
    table = Table(heads, tuple(rows), caption, key="plan", data=value)
    return Section("Labels needed", (table,), "labels", folded=True)


def _labels(side: sentences.Side, lower: float, errors: int = 0) -> int | None:
    """Return the number of labels that a ceiling needs with some errors; None if no number is enough."""
    found = lower if side.asked is None else side.asked.allowing(lower)
    return None if found < LEAST_CEILING else min_samples(found, side.asked_delta, errors)


def _unit_steps(certificate: Certificate) -> Iterator[str]:
    for one in certificate.clauses:
        if one.lacking:
            yield f"Label more {one.of.label} points: {one.labels} are there, {one.needed} are needed."
    yield "As a check, measure the rates on labelled units that were not used here, with evaluate."


def _next_steps(report: sentences.Report) -> Iterator[str]:
    certificate = report.certificate
    both = sentences.sides_of(certificate, report.metrics)
    for side in both:
        if side.exceeded:
            yield (
                f"Find out why held-out points exceed the {side.name} ceiling (see assumptions and limits),"
                " and calibrate again on fresh points."
            )
    for side in both:
        if side.overstated and side.wanted is not None:
            worth, budget = "an unknown number of independent points", side.budget
            if side.effective is not None and budget is not None:
                fewer = Budget.of(side.at_hand, budget.rate, budget.delta)
                why = f"{side.at_hand + fewer.missing:,} are needed"
                if fewer.errors is not None:
                    wrong = budget.errors if side.misjudged is None else side.misjudged
                    judged = percent((wrong or 0) / budget.n)
                    why = f"{fewer.errors:,} of those may be errors, while the rule misjudges {judged}"
                worth = f"about {amount(side.at_hand, 'independent point')}, and {why}"
            yield (
                f"Do not rely on the {side.name} yet: {side.n:,} {side.of.label} points count as {worth}."
                " Label points of more series, or points farther apart (--every)."
            )
    for side in both:
        yield from _label_more(side)
    yield from _decide(report)
    for side, other in (both, both[::-1]):
        yield from _tighten(certificate, side, other)
    if report.metrics is None and not any(fact.name == "held out" for fact in report.in_time):
        yield "As a check, measure the rates on labelled points that were not used here."


def _label_more(side: sentences.Side) -> Iterator[str]:
    n = side.n
    if side.wanted is None or not (side.vacuous or side.raised):
        return
    needed = _labels(side, side.wanted) or 0
    if n >= needed:
        if side.vacuous:  # enough for one promise at one look, but delta covers more than one
            yield f"Label more {side.of.label} points (at hand {n:,}, needed at least {n + side.missing:,})."
        return
    yield (
        f"Label more {side.of.label} points (at hand {n:,}, needed at least {needed:,}, missing"
        f" {needed - n:,}). With fewer, no useful rule can promise an {side.name} of at most"
        f" {ceiling(side.wanted)} with confidence {confidence(side.asked_delta)}."
    )
    if n and side.vacuous:
        yield (
            f"Or ask for less: the number of {side.of.label} labels at hand ({n:,}) suffices for {side.name}"
            f" ceilings down to {ceiling(side.lowest)}."
        )


def _decide(report: sentences.Report) -> Iterator[str]:
    """Yield advice on deciding more points, and on getting back the ceilings that were asked for."""
    certificate = report.certificate
    found, sides = sentences.ranges(certificate.rule), sentences.sides_of(certificate)
    if all(side.ceiling is None for side in sides):
        yield (
            "Calibrate on fresh labels with overlap abstain (two thresholds keep both ceilings, and points"
            " between them are undecided), or hold one ceiling (overlap hold_fnr or hold_fpr; --overlap"
            f" hold-fnr or hold-fpr) and accept the other rate. {_AGAIN}"
        )
    elif certificate.regime is Regime.VACUOUS:
        return
    elif certificate.regime is Regime.OVERLAPPING:
        classes = zip(LABELS, (report.normal, report.anomalous), strict=True)
        known = [(label, one) for label, one in classes if one is not None and one.size]
        shares = [f"{percent(certificate.rule.ambiguity(one))} of the {label}" for label, one in known]
        how_many = f" ({' and '.join(shares)} calibration points)" if shares else ""
        yield f"Decide who looks at the undecided points{how_many}, and how soon."
        yield (
            "For fewer undecided points, improve the detector so that the classes overlap less, or ask for a"
            " higher ceiling on fresh labels; more labels help a little."
        )
        if report.normal is not None and certificate.sampling is None:
            yield "To decide every point now, choose one threshold on the curve (see other thresholds)."
        yield (
            "To decide every point from now on, calibrate fresh labels with overlap hold_fnr_if_needed (one"
            " threshold, for both ceilings if the classes separate, else for the FNR) or raise (both ceilings"
            f" rise as little as can be proved). {_AGAIN}"
        )
    elif Verdict.ABSTAIN in found:
        yield (
            "No point has to be left undecided: any single threshold among the undecided scores"
            f" ({sentences.range_words(found)[Verdict.ABSTAIN]}) keeps both ceilings with the same"
            " confidence; overlap abstain sets one."
        )
    elif any(side.raised or side.less_confident for side in sides):
        yield (
            "For the ceilings that were asked for, improve the detector so that the classes overlap less, or"
            f" calibrate fresh labels with overlap abstain, which may leave points undecided. {_AGAIN}"
        )


def _tighten(certificate: Certificate, side: sentences.Side, other: sentences.Side) -> Iterator[str]:
    """Yield the lowest ceiling that as many fresh labels as these can keep."""
    if side.vacuous or not side.at_hand or side.name not in certificate.overlap.keeps:
        return
    n = f"{side.n:,}{'' if side.effective is None else f', which count as about {side.at_hand:,}'}"
    lowest = ceiling(side.lowest)
    if side.wanted is None:
        yield (
            f"Nothing is promised about {side.mistakes}. If they matter, set max_{side.name.lower()} for"
            f" fresh labels: as many {side.of.label} ones as here ({n}) suffice for ceilings down to"
            f" {lowest}."
        )
    else:
        costs = ""
        if certificate.regime is Regime.OVERLAPPING:
            costs = ", at the price of more undecided points"
        elif certificate.rule.single:
            costs = f", at the price of more {other.mistakes}"
        yield (
            f"For a lower {side.name} ceiling, use fresh labels: as many {side.of.label} ones as here"
            f" ({n}) suffice for ceilings down to {lowest}{costs}; lower ones need more."
        )


def _kinds(report: sentences.Report) -> Section:
    """Return the promise of each kind, with small histograms of the binding and the largest kinds."""
    certificate, rule = report.certificate, report.certificate.rule
    said = tuple(sentence(text) for text in sentences.binding_words(certificate))
    items: list[Item] = [_kind_table(report), *([Points(said)] if said else [])]
    if report.normal is not None:
        binding = certificate.fpr, certificate.fnr
        classes, ends = (report.normal, report.anomalous), (rule.normal_below, rule.anomaly_from)
        window = pictures.Window.around(classes, ends)
        shown = [one for one in certificate.clauses if one.of.kind is not None]
        shown.sort(key=lambda one: (one not in binding, -one.n))
        drawn = []
        for one in shown[:MOST_MULTIPLES]:
            own, of_normal = report.scores[one.of], one.of.label == "normal"
            low, high = (own, report.anomalous) if of_normal else (report.normal, own)
            words = f"{one.n:,} {one.of.label}{', binds' if one in binding else ''}"
            drawn.append(pictures.multiple(window, rule, low, high, sentences.called(one, SHORT_NAME), words))
        caption = "Each kind beside all points of the other class, on one scale, with the rule."
        items.append(Figure("multiples", tuple(drawn), caption))
    return Section("The promise of each kind", tuple(items), "parts", key="said", value=said)


def _kind_table(report: sentences.Report) -> Table:
    """Return the table of kinds: their promises, which of them bind, and their misjudged points."""
    certificate = report.certificate
    clauses, binding = certificate.clauses, (certificate.fpr, certificate.fnr)
    labels, rows = [one.of.label for one in clauses], []
    for clause in clauses:
        several = labels.count(clause.of.label) > 1
        wrong = Verdict.ANOMALY if clause.of.label == "normal" else Verdict.NORMAL
        misjudged = "not counted"
        if report.normal is not None:
            verdicts = certificate.rule.verdicts(report.scores[clause.of])
            misjudged = share(int(np.count_nonzero(verdicts == wrong)), clause.n)
        name = sentences.called(clause, sentences.LONGEST_NAME)
        name += " (binds)" if several and clause in binding else ""
        name = name if several or clause.of.kind is not None else "all points"
        limits = (
            "none" if clause.ceiling is None else ceiling(clause.ceiling),
            "none" if clause.errors is None else f"{clause.errors:,}",
            "none" if clause.threshold is None else told_apart([clause.threshold])[0],
        )
        rows.append((name, clause.of.label, f"{clause.n:,}", *limits, misjudged))
    heads = ("Kind", "Class", "Labels", "Ceiling", "Errors allowed", "Threshold alone", "Misjudged")
    caption = (
        "Every kind has a threshold from its own labels; the binding kinds set the rule. Misjudged are the"
        " calibration points that the rule gets wrong."
    )
    return Table(heads, tuple(rows), caption, key="kinds")


def _kind_steps(certificate: Certificate) -> Iterator[str]:
    clauses = certificate.clauses
    labels = [one.of.label for one in clauses]
    for one in clauses:
        if one.vacuous and one.certified is not None:
            needed = min_samples(one.certified.ceiling, one.certified.delta)
            whose = f"{one.of.label} points of {sentences.called(one)}"
            yield f"Label more {whose} (at hand {one.n:,}, needed {needed:,})."
    undecided = certificate.rule.ambiguity_region is not None
    for binding in (certificate.fpr, certificate.fnr) if undecided else ():
        if binding.asked is not None and not binding.vacuous and labels.count(binding.of.label) > 1:
            yield (
                f"For fewer undecided points, label more of {sentences.called(binding)}, which sets the"
                f" threshold for all {binding.of.label} points, or calibrate on fresh points with a higher"
                " ceiling for it."
            )
    yield "As a check, measure the rates of each kind on labelled points that were not used here."
