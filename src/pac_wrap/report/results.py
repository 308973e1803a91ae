"""The accounts of measured rates, comparisons, plans, alarms, curves, classes and series."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pac_wrap.base.floats import between, confidence_left, float_below, rounded_down, rounded_up
from pac_wrap.base.text import amount, listed, quoted, visible
from pac_wrap.method.alarms.precision import AmongNext, Bounds, Workload
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.classes import ClassCertificate
from pac_wrap.method.curves.band import TOGETHER
from pac_wrap.method.curves.curve import Curve, best, confidence_of
from pac_wrap.method.metrics import Measured, Metrics
from pac_wrap.method.planning.plan import MOST_ERRORS, SPENT, TOLERATED, Pilot, Plan, needed, plan
from pac_wrap.method.planning.sequential import stopping
from pac_wrap.method.promise import OF_DRAWS, Guarantee, Promise
from pac_wrap.method.robust.shift_and_noise import NEW_LABELS
from pac_wrap.method.rule import Counted
from pac_wrap.method.strategies.looks import Looks
from pac_wrap.report.account import Account, Fact, Figure, Section, Status, Table, facts_of, only
from pac_wrap.report.numbers import about, ceiling, confidence, exact_percent, least, range_of, sure
from pac_wrap.report.sentences import WORK, briefly, made_facts, rate_record, rates_record, sides_of
from pac_wrap.series.points import Points, SeriesSplit
from pac_wrap.tails.bounds import Budget, MeanRate, Rate, cdf, upper_bound

if TYPE_CHECKING:
    from pac_wrap.method.comparison import Contender
    from pac_wrap.method.verify import Verification

_PROVES_NOTHING: Final = (
    "These are the calibration scores themselves, so this is no evidence. Use other labelled points."
)
_INTERVALS: Final = "measured, with exact 95 % intervals"
_OVER_UNITS: Final = "measured, with 95 % intervals over units, whatever their points have in common"
# ceilings of the FPR in the account of a curve, and those of a table of labels
_OF_CURVE: Final = (0.01, 0.05, 0.1)
_CEILINGS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_CHANCES: Final = (0.5, 0.8, 0.9, 0.95)
# true rates in a plan, as shares of a ceiling
_SHARES: Final = (0.1, 0.2, 0.4, 0.6, 0.8)
_POWER: Final = 0.9
_LONGEST_ORDER: Final = 500
_GUESSED: Final = (
    "What to expect follows from the guess, if every alarm is right with the same chance and reviews go from"
    " the highest score down. It is a forecast, not a promise; a wrong guess never breaks the promise itself."
)
_GUESSED_UNITS: Final = (
    "What is enough 9 times in 10 follows from the guess. It is a forecast, not a promise; a wrong guess"
    " never breaks the promise itself."
)
# series differ if their points together count as less than half of what they count as one by one
_DIFFER: Final = 0.5
_CLASSES: Final = ((False, "normal", "FPR"), (True, "anomalous", "FNR"))
Record = dict[str, Any]


def measured_account(
    table: Table, notes: Iterable[str] = (), asked: Guarantee | None = None, **values: Any
) -> Account:
    """Return the account of measured rates; `exceeded` tells which of them are above their ceilings."""
    status = Status("broken", "exceeded", 1) if values["exceeded"] else Status("certified", "not exceeded")
    if asked is not None and asked.label_noise is not None:
        values["assumes"] = NEW_LABELS
    return Account(status=status, sections=(Section(items=(table, *notes)), *only(**values)))


def _cells(rate: Rate) -> tuple[str, str]:
    return str(rate), f"{rate.count:,} of {rate.n:,}"


def account_of_evaluation(certificate: Certificate, metrics: Metrics, calibrated: bool = False) -> Account:
    """Return the measured rates with their intervals next to the promised ceilings."""
    rows, rates = [], rates_record(metrics)
    sides = sides_of(certificate, metrics)
    for side in sides:
        promised = side.ceiling if side.kept else None
        assert side.measured is not None
        rates[side.name.lower()]["ceiling"] = promised
        top = "none" if promised is None else rounded_up(promised)
        rows.append((side.name, top, *_cells(side.measured), side.finding))
    names = "ERR", "undecided", "  normal", "  anomalous"
    others = metrics.err, metrics.ambiguity, metrics.abstained_normal, metrics.abstained_anomalous
    rows += [(name, "", *_cells(rate), "") for name, rate in zip(names, others, strict=True)]
    columns = ("", "max", "measured", "count", "finding")
    table = Table(columns, tuple(rows), _INTERVALS, (0, 4), key="rates", data=rates)
    asked, over = certificate.guarantee, [side.name for side in sides if side.exceeded]
    notes = [_PROVES_NOTHING] * calibrated
    notes += [f"exceeded: {NEW_LABELS}"] * (asked.label_noise is not None)
    return measured_account(table, notes, asked, exceeded=over, calibration_scores=calibrated)


def account_of_measured(
    measured: Sequence[Measured], each: str = "kind", calibrated: bool = False
) -> Account:
    """Return the measured rates of each kind or promise, with their intervals, next to the ceilings."""
    rows, records, both = [], [], each == "kind" or any(one.abstained.count for one in measured)
    for one in measured:
        top = "none" if one.ceiling is None else rounded_up(one.ceiling)
        left = [f"{one.abstained.count:,}"] * both
        rows.append((visible(one.name), top, *_cells(one.rate), *left, one.finding))
        rates = {"rate": rate_record(one.rate), "abstained": rate_record(one.abstained)}
        records.append({each: one.name, "ceiling": one.ceiling} | rates)
    columns = ("", "max", "measured", "errors", *["undecided"] * both, "finding")
    over = [one.name for one in measured if one.exceeded]
    title = _OVER_UNITS if any(isinstance(one.rate, MeanRate) for one in measured) else _INTERVALS
    table = Table(columns, tuple(rows), title, (0, 4 + both), key=f"{each}s", data=records)
    return measured_account(table, [_PROVES_NOTHING] * calibrated, exceeded=over)


def account_of_verification(found: "Verification") -> Account:
    """Return the account of a verification: whether the scores give the certificate, else the differences."""
    status = Status("certified", "verified") if found else Status("broken", "not verified", 1)
    hidden = only(verified=bool(found), differences=found.differences, digested=found.digested)
    return Account(status=status, sections=(Section(items=(str(found),)), *hidden))


def account_of_comparison(contenders: "Sequence[Contender]", asked: Guarantee) -> Account:
    """Return the account of a comparison at every threshold, with a star at the best of each column."""
    fpr, fnr = asked.max_fpr, asked.max_fnr
    names: dict[str, str] = {}
    if fpr is not None and fnr is not None:
        names |= {"abstained": "undecided", "common_ceiling": "both rates\nat most"}
    if fpr is not None:
        names["fnr_at_max_fpr"] = f"FNR at\nFPR <= {rounded_up(fpr)}"
    if fnr is not None:
        names["fpr_at_max_fnr"] = f"FPR at\nFNR <= {rounded_up(fnr)}"
    records: list[Record] = []
    for one in contenders:
        values = {"abstained": one.abstained, "common_ceiling": one.common_ceiling}
        values |= {"fnr_at_max_fpr": one.fnr_at(fpr or 1.0), "fpr_at_max_fnr": one.fpr_at(fnr or 1.0)}
        records.append({"score": one.name, "auc": one.auc} | {name: values[name] for name in names})
    best = {key: min(one[key] for one in records) for key in names}
    rows = []
    for record in records:
        auc = "" if record["auc"] is None else f"{record['auc']:.4f}"
        stars = {key: " *" if record[key] == best[key] < 1.0 else "  " for key in names}
        rows.append((visible(record["score"]), auc, *(rounded_up(record[key]) + stars[key] for key in names)))
    # ceilings that need more labels, whatever the scores
    curve, too_few = contenders[0].curve, []
    for promise in asked.promises:
        side = curve.normal if promise.of.label == "normal" else curve.anomalous
        lowest = side.bounds[0] if side.bounds else 1.0
        if lowest > promise.ceiling:
            too_few.append(
                f"too few labels for {promise.name} <= {rounded_up(promise.ceiling)} ({side.n:,}"
                f" {promise.of.label}): the lowest bound is {rounded_up(lowest)}"
            )
    joint = confidence_of([one.curve for one in contenders])
    items: tuple[str | Table, ...] = (
        f"asked: {asked}",
        *[f"{len(contenders):,} scores share each delta"] * (len(contenders) > 1),
        Table(("score", "AUC", *names.values()), tuple(rows), key="contenders", data=records),
        f"* best; all bounds hold together, at every threshold, with {sure(joint)} confidence",
        *too_few,
    )
    stated = {name: getattr(asked, name) for name in ("max_fpr", "max_fnr", "delta_fpr", "delta_fnr")}
    return Account(sections=(*only(asked=stated, confidence=float_below(joint)), Section(items=items)))


def _framed(columns: Iterable[str], rows: Iterable[tuple[str, ...]], caption: str) -> Table:
    return Table(tuple(columns), tuple(rows), caption, (), framed=True)


def account_of_plan(
    asked: Guarantee,
    delta: float = 0.05,
    *,
    ceilings: Sequence[float] = (),
    labels: int | None = None,
    sizes: tuple[int | None, int | None] = (None, None),
    pilot: Pilot | None = None,
    looks: Looks | None = None,
    rates: Sequence[float] | None = None,
    **guessed: Any,
) -> Account:
    """Return the account of a plan: the ceilings that labels keep, and the labels that ceilings need."""
    if guessed.get("unit_points") is not None:
        units = _needed(plan(asked, normal=sizes[0], anomalous=sizes[1], **guessed))
        return Account("What units can promise", sections=(units,))
    sections = []
    if labels is not None:
        sections.append(_promises(labels, delta))
    if sizes != (None, None):
        sections.append(_affordable(*sizes, delta, ceilings))
    if pilot is not None:
        sections.append(_pilot(pilot, asked))
    if looks is not None:
        sections.append(_sequential(asked, looks, rates))
    if not sections or (ceilings and labels is not None):
        sections.append(_needed(plan(asked, **guessed)))
    return Account("What labels can promise", sections=tuple(sections))


def _needed(found: Plan) -> Section:
    in_units = any(one.in_units for one in found.needed)
    columns, cells = ["errors allowed\namong them"], [list(map(str, found.needed[0].errors))]
    records: list[Record] = []
    for one in found.needed:
        columns.append(f"{one.points} for\n{_stated(one.promise)}")
        cells.append([f"{n:,}" for n in one.labels])
        for name in one.expected[0]:
            columns.append(f"{SPENT[name]}\nto expect")
            cells.append([f"{spent[name]:,.0f}" for spent in one.expected])
        key = "units" if one.in_units else one.points.split()[-1]
        needs = zip(one.errors, one.labels, one.expected, strict=True)
        own = [{"errors": errors, key: n} | spent for errors, n, spent in needs]
        forecast: Record = {} if one.forecast is None else {"likely": one.likely}
        forecast |= {} if one.first is None else {"tested_first": one.first[0], "chance": one.first[1]}
        at_hand = {} if one.at_hand is None else {"at_hand": one.at_hand.n, "allowed": one.at_hand.errors}
        records.append(_record(one.promise) | at_hand | forecast | {"needed": own})
    what = "what is" if found.guarantee.of_traffic else "units" if in_units else "labels"
    table = _framed(columns, zip(*cells, strict=True), f"{what} needed, by errors among them")
    said = [f"{one.promise.claim}: {text}" for one in found.needed for text in one.told()]
    guess = any(one.forecast == "guess" or one.expected[0] for one in found.needed)
    said += [_GUESSED_UNITS if in_units else _GUESSED] * guess
    return Section(items=(table, *said), key="needed", value=records)


def _promises(labels: int, delta: float) -> Section:
    tolerated = (errors for errors in TOLERATED if errors <= labels)
    found = [{"errors": errors, "rate": upper_bound(errors, labels, delta)} for errors in tolerated]
    among, least = f"among {amount(labels, 'label')}", f"at delta = {rounded_up(delta)}"
    rows = ((str(one["errors"]), rounded_up(one["rate"])) for one in found)
    table = _framed((f"errors allowed\n{among}", f"lowest ceiling\n{least}"), rows, "what can be promised")
    return Section(items=(table,), key="promises", value={"labels": labels, "delta": delta, "rates": found})


def _affordable(normal: int | None, anomalous: int | None, delta: float, asked: Iterable[float]) -> Section:
    """Return the ceilings that the labels of each class can keep, and the errors that each allows."""
    ceilings = sorted({*_CEILINGS, *asked})
    heads, cells = [], []
    value: Record = {"delta": delta}
    for name, label, n in (("FPR", "normal", normal), ("FNR", "anomalous", anomalous)):
        if n is None:
            continue
        lowest = upper_bound(0, n, delta) if n else None
        begins = "nothing yet" if lowest is None else f"from {rounded_up(lowest)} on"
        heads.append(f"{name}: errors allowed\namong {n:,} {label},\n{begins}")
        budgets = [Budget.of(n, rate, delta) for rate in ceilings]
        cells.append([_tolerated(budget) for budget in budgets])
        found = [{"ceiling": one.rate, "errors": one.errors, "missing": one.missing} for one in budgets]
        value[label] = {"labels": n, "least": lowest, "ceilings": found}
    rows = ((rounded_up(rate), *row) for rate, *row in zip(ceilings, *cells, strict=True))
    table = _framed(("ceiling", *heads), rows, f"what can be promised, at delta = {rounded_up(delta)} each")
    return Section(items=(table,), key="affordable", value=value)


def _pilot(pilot: Pilot, asked: Guarantee) -> Section:
    """Return the number of fresh labels that make one threshold for both ceilings likely: eq. (45)."""
    said, heads, cells, sides = [f"the pilot's best threshold is {pilot.threshold!r}"], [], [], []
    for promise, counted in zip(asked.promises, (pilot.normal, pilot.anomalous), strict=True):
        needs, chance = needed(promise, _CHANCES, counted.within), counted.below(promise.at_calibration)
        said.append(
            f"{promise.of.label}: {counted.errors:,} of {counted.n:,} are errors there; the true"
            f" {promise.name} is at most {rounded_up(promise.ceiling)} with a chance of"
            f" {rounded_down(chance, 100, 3)} %"
        )
        heads.append(f"{promise.of.label} labels for\n{_stated(promise)}\n(errors allowed)")
        cells.append(["-" if one is None else f"{one.labels:,} ({one.errors:,})" for one in needs])
        found = [{"chance": one, "needed": need} for one, need in zip(_CHANCES, needs, strict=True)]
        known = {"errors": counted.errors, "n": counted.n, "chance": chance}
        sides.append(_record(promise) | known | {"needed": found})
    if any("-" in column for column in cells):
        said.append(f"-: no number of labels is enough with up to {MOST_ERRORS:,} errors allowed")
    rows = ((f"{100 * chance:.0f} %", *row) for chance, *row in zip(_CHANCES, *cells, strict=True))
    table = _framed(("chance", *heads), rows, "fresh labels until a promise is likely")
    last = (
        "The chances are about each class by itself and come from the pilot alone (Jeffreys' prior). They are"
        " a forecast, not a promise, and a little optimistic, because the pilot also chose the threshold."
    )
    value = {"threshold": pilot.threshold, "sides": sides}
    return Section(items=(*said, table, last), key="pilot", value=value)


def _sequential(asked: Guarantee, looks: Looks, rates: Sequence[float] | None) -> Section:
    """Return the number of labels at which looking as they come is likely to succeed, at some true rates."""
    items: list[str | Table] = []
    sides = []
    for promise in asked.promises:
        rows, runs = [], []
        for rate in rates or [share * promise.at_calibration for share in _SHARES]:
            found, once = stopping(promise, looks, rate), needed(promise, [_POWER], partial(cdf, p=rate))[0]
            median, most = found.quantile(0.5), found.quantile(0.9)
            counts = median, most, round(found.expected), None if once is None else once.labels
            texts = ["-" if count is None else f"{count:,}" for count in counts]
            rows.append((f"{rate:.4g}", *texts[:3], f"{rounded_down(found.success, 100, 3)} %", texts[3]))
            run: Record = {"true_rate": rate, "median": median, "nine_in_ten": most}
            run |= {"expected": found.expected, "success": found.success, "all_at_once": once}
            runs.append(run)
        columns = ("true rate", "median", "90 % of runs", "expected", "success", "all at once")
        items.append(_framed(columns, rows, f"{promise.of.label} labels until {_stated(promise)}"))
        local = looks.local(promise)
        first = next((n for n in looks.looks if looks.budget(promise, n).errors is not None), None)
        begins = "no look can succeed" if first is None else f"the first that can succeed is at {first:,}"
        items.append(
            f"looks at every {looks.every:,} labels up to {looks.up_to:,} share one delta: each has"
            f" {rounded_up(local)}; {begins}"
        )
        sides.append(_record(promise) | {"local_delta": local, "runs": runs})
    items.append(
        "The true rates hold at the threshold of the look. The choice of the points to label must not depend"
        " on their scores. All at once: the labels for a single look that succeeds with a chance of 90 %."
    )
    value = {"every": looks.every, "up_to": looks.up_to, "sides": sides}
    return Section(items=tuple(items), key="sequential", value=value)


def _stated(promise: Promise) -> str:
    more = "" if promise.tolerance is None else f",\ntolerating {promise.tolerance}"
    return f"{promise.claim}, delta = {rounded_up(promise.delta)}{more}"


def _record(promise: Promise) -> Record:
    words = promise.tolerance
    room = {} if words is None else {"room": words, "at_calibration": promise.at_calibration}
    stated = {"class": promise.of.label, "rate": promise.name, "ceiling": promise.ceiling}
    return stated | {"delta": promise.delta} | room


def _tolerated(budget: Budget) -> str:
    if budget.errors is None:
        return f"too few, {budget.missing:,} missing"
    return f"{budget.errors:,} ({rounded_down(budget.errors / budget.n, 100, 3)} %)"


def account_of_worth(
    precision: Bounds | None = None,
    workload: Workload | None = None,
    counted: Counted | None = None,
    unlabelled: Bounds | None = None,
    prevalence: Bounds | None = None,
    among_next: tuple[AmongNext, ...] | None = None,
) -> Account:
    """Return the account of precision, workload and the next points: what is stated, or counted."""
    found: dict[str, Any] = {"workload": workload, "precision": precision, "counted": counted}
    found |= {"unlabelled": unlabelled, "prevalence": prevalence, "among_next": among_next}
    values = {name: one for name, one in found.items() if one is not None}
    facts = [*facts_of("next", [str(one) for one in among_next or ()])]
    if workload is not None:
        share = " to ".join(map(exact_percent, dict.fromkeys(workload.prevalence)))
        said = f"no promise about the anomalies that are caught; if {share} are anomalous:"
        if precision is not None:
            said = f"{_least(precision)} if {share} of all points are anomalous"
        words = f"on average; all of it with {sure(workload.confidence)} confidence"
        facts += [Fact("alarms", said), Fact("work", f"per {workload.per:,} points, {words}")]
        for kind, name in WORK.items():
            bounds = getattr(workload, kind)
            facts.append(Fact("", f"{name}: {between(bounds.low, bounds.high)}"))
    if counted is not None and unlabelled is not None and prevalence is not None:
        of = f", {counted.missing:,} of them without a score" if counted.missing else ""
        said = f"{amount(counted.alarms, 'alarm')} among {amount(counted.points, 'point')} without labels{of}"
        more = "this is about future alarms: among the counted ones, more may be false"
        if unlabelled.low == 0.0:
            more = "alarms are hardly more frequent than false alarms may be, so all of them may be false"
        share = range_of(prevalence.low, prevalence.high)
        facts += [
            Fact("counted", said),
            Fact("alarms", f"{_least(unlabelled)}, whatever the anomalies are"),
            Fact("", more),
            Fact("anomalies", f"{share} of all points, with {sure(prevalence.confidence)} confidence"),
        ]
    return Account("Precision and workload", facts=tuple(facts), sections=only(**values), of="alarms")


def _least(precision: Bounds) -> str:
    words = f"({sure(precision.confidence)} confidence)"
    return f"at least {least(precision.low)} of future alarms are right {words}"


def account_of_curve(curve: Curve) -> Account:
    """Return the account of a curve: for a few ceilings of one rate, the bound of the other."""
    facts = []
    for name, rate, side in (("normal", "FPR", curve.normal), ("anomalous", "FNR", curve.anomalous)):
        beyond = "" if side.top is None else f"; bounds above {rounded_up(side.top)} are not given"
        bound = f"all bounds of the {rate} hold together with {confidence(side.delta)} confidence"
        facts.append(Fact(name, f"{amount(side.n, 'label')}; {bound}{beyond}"))
    _, fpr, fnr = curve.steps()
    keeps = []
    for top in _OF_CURVE:
        chosen = "no threshold" if best(fpr, fnr, top) is None else _bounds_of(curve.choose(max_fpr=top))
        keeps.append(f"FPR <= {rounded_up(top)}: {chosen}")
    facts += facts_of("keeps", keeps)
    if (np.maximum(fpr, fnr) < 1.0).any():
        facts.append(Fact("balanced", _bounds_of(curve.balanced())))
    said = "The bounds of both rates hold together at every threshold, however you choose it,"
    said = f"{said} with {sure(curve.confidence)} confidence."
    facts += [Fact("holds", TOGETHER), Fact("assumes", briefly(OF_DRAWS))]
    status = Status("certified", "certified at every threshold")
    if curve.empty:
        status = Status("none", "a rate has no bound at any threshold", 1)
    drawn = Figure("curve", (curve,), alt="the certified trade-off of both error rates")
    facts += made_facts(curve)
    title, told = "Bounds at every threshold", tuple(facts)
    return Account(title, status=status, headline=said, facts=told, of="curve", picture=drawn)


def _bounds_of(certificate: Certificate) -> str:
    asked = certificate.guarantee
    rates = (("FPR", asked.max_fpr), ("FNR", asked.max_fnr))
    bounds = ", ".join(f"{name} <= {'1' if rate is None else rounded_up(rate)}" for name, rate in rates)
    return f"{bounds}, anomaly from {about(certificate.rule.anomaly_from)} on"


def account_of_classes(certificate: ClassCertificate) -> Account:
    """Return the account of a certificate of classes."""
    error, rule = "is ruled out", "a class whose score reaches its threshold stays; if alone, it decides"
    if certificate.severities is not None:
        names = (quoted(certificate.classes[place]) for place in certificate.severities)
        error, order = "is taken for a milder class", visible(" before ".join(names), _LONGEST_ORDER)
        rule = f"{order}; a row gets the first class whose threshold its score reaches"
    found = [one for one in certificate.clauses if one.kept]
    alone = f" (confidence {rounded_down(confidence_left(certificate.delta))})"
    texts = [
        f"{quoted(one.of.kind)} {error} for at most {rounded_up(one.ceiling or 1.0)} of its points{alone}"
        for one in found
    ]
    said = "Nothing is promised, because too few points are labelled."
    if found:
        most = ceiling(max(one.ceiling or 1.0 for one in found))
        said = (
            f"In the long run, each certified class {error} for at most {most} of its points: all of this"
            f" together with {sure(certificate.confidence)} confidence."
        )
    facts = (
        *facts_of("promised", texts),
        Fact("rule" if certificate.severities is None else "order", rule),
        *facts_of("classes", [f"{quoted(one.of.kind)}: {one.words}" for one in certificate.clauses]),
        Fact("assumes", briefly(OF_DRAWS)),
    )
    status = Status("certified", "certified") if found else Status("none", "too few labels", 1)
    return Account("Error rates of classes", status=status, headline=said, facts=facts)


def facts_of_series(
    points: Points, certificate: Certificate, time: str, split: SeriesSplit | None = None
) -> Iterator[Fact]:
    """Yield facts about the series of a certificate: their steps, and which depend most."""
    count = len(points.names)
    taken = "" if points.every == 1 else f", one in every {points.every:,}"
    said = f"{amount(points.scores.size, 'step')} of {count:,} series{taken}, ordered by {quoted(time)}"
    yield Fact("in time", said)
    if points.warm_up:
        yield Fact("", f"without a score yet (warm-up), so left out: {amount(points.warm_up, 'step')}")
    among = None if split is None else split.calibration
    differ = []
    for anomalous, name, _ in _CLASSES:
        found = list(points.within(certificate.thresholds, anomalous, among)) if count > 1 else []
        if found:
            worst, lowest = min(found, key=lambda pair: (pair[1].effective or 0.0) / pair[1].n)
            depend = sum(one.misleading for _, one in found)
            said = f"no dependence found in any of {len(found):,} series"
            if depend:
                said = f"dependence found in {depend:,} of {len(found):,} series, most in {quoted(worst)}"
                said += f", where {lowest.n:,} count as about {lowest.effective or 0.0:,.0f}"
            yield Fact("", f"{name} steps: {said}")
            together = points.effective_size(certificate.thresholds, anomalous, among).effective
            alone = sum(one.effective or 0.0 for _, one in found)
            if together is not None and together < _DIFFER * alone:
                differ.append(
                    f"{name} steps count as about {together:,.0f} together, but {alone:,.0f} one by one"
                )
    if differ:
        yield Fact("", f"the series differ: {', and '.join(differ)}")
        yield Fact("", "so no spacing helps, and the promise about all series may hold for no single one")
    if split is not None:
        yield from facts_of("held out", list(_held_out(points, certificate, split)))


def _held_out(points: Points, certificate: Certificate, split: SeriesSplit) -> Iterator[str]:
    """Yield the errors on series that did not calibrate, without a test, because steps depend."""
    test, series = split.test, points.series[split.test]
    names = [points.names[number] for number in np.unique(series)]
    yield f"{len(names):,} of {len(points.names):,} series: {listed(names)}"
    verdicts = certificate.verdicts(points.scores[test])
    sides = sides_of(certificate)
    certified = any(side.ceiling is not None for side in sides)
    for (anomalous, name, rate), side in zip(_CLASSES, sides, strict=True):
        mine = points.labels[test] == anomalous
        wrong = mine & (verdicts == (0 if anomalous else 1))
        top = side.ceiling if certified else side.wanted
        if not mine.any() or top is None:
            continue
        of = np.bincount(series[mine], minlength=len(points.names))
        errors = np.bincount(series[wrong], minlength=len(points.names))
        above = np.count_nonzero(errors[of > 0] > top * of[of > 0])
        yield (
            f"{rate} {np.count_nonzero(wrong) / np.count_nonzero(mine):.4f} over {np.count_nonzero(mine):,}"
            f" {name} steps; above {rounded_up(top)} in {above:,} of {np.count_nonzero(of):,} series"
        )
