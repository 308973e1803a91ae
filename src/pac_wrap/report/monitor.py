"""The account of a monitor, with its evidence over time; and its metrics for Prometheus."""

from dataclasses import asdict
from math import log, log10
from typing import Any, Final

from pac_wrap.base.floats import rounded_up
from pac_wrap.base.text import amount, sentence
from pac_wrap.method.groups.values import text_of
from pac_wrap.method.monitoring.alarm import REVIEWED, SCORES, UNDECIDED, Alarm, Watch, called, evidence_text
from pac_wrap.method.monitoring.monitor import Member, Monitor
from pac_wrap.report.account import Account, Figure, Item, Section, Status, Table, only

_PREFIX: Final = "pac_wrap_monitor"
_TITLES: Final = {
    "FPR": "False alarms among labelled normal points",
    "FNR": "Missed anomalies among labelled ones",
    "alarms": "Alarms among all points",
    "false alarms": "False alarms among all points",
    "wrong alarms": "Wrong alarms among reviewed ones",
    UNDECIDED: "Undecided points",
    SCORES: "All scores, without labels",
}
# the picture: across in thousandths, its height, its margin; and the least power of ten
_WIDTH, _HEIGHT, _TOP = 1000, 160, 10
_LEAST: Final = -4.0
# groups whose evidence a page draws: first those with alarms, then those nearest to one
MOST_DRAWN: Final = 12


def account_of_monitor(monitor: Monitor) -> Account:
    """Return the account of a monitor: its alarms, its monitored rates, and their evidence over time."""

    def nearness(pair: tuple[Any, Member]) -> tuple[float, ...]:
        one = pair[1]
        return float(bool(one.alarms)), max(watch.log_evidence + log(watch.alpha) for watch in one.watches)

    alarms = list(map(str, monitor.alarms))
    ordered = sorted(monitor.members.items(), key=nearness, reverse=True)
    members = [(f"{called(groups)}: " if groups else "", one) for groups, one in ordered[:MOST_DRAWN]]
    status = Status("certified", "No alarm")
    if alarms or not monitor.points:
        status = Status("broken", "Alarm", 1) if alarms else Status("none", "No data yet", 1)
    notes = [] if monitor.points else ["No point has been counted so far."]
    if monitor.table is not None:
        notes += map(sentence, monitor.notes)
        known: dict[str, Any] = {"unseen": monitor.unseen, "unpromised": monitor.unpromised, "groups": []}
        for groups, one in monitor.members.items():
            whose = {"group": groups if len(groups) > 1 else groups[0], "rows": one.rows}
            known["groups"].append(whose | _content(monitor, one))
    else:
        known = _content(monitor, monitor.members[()])
        if monitor.unscored and not monitor.asked.of_traffic:
            notes.append(f"Not counted: {amount(monitor.unscored, 'row')} without a score.")
        unwatched = monitor.members[()].unwatched(monitor.asked)
        notes += (sentence(f"not monitored: {name}, since {why}") for name, why in unwatched.items())
    if len(alarms) > MOST_DRAWN:
        notes.insert(0, f"The JSON has {amount(len(alarms) - MOST_DRAWN, 'more alarm')}.")
    within = "" if monitor.table is None else " Rows are counted within each group."
    lead = (
        "Each line is the evidence against a promise, on a scale of powers of ten. While the promise holds, a"
        " line hardly ever reaches the dashed one, where the alarm is raised. Lines are cut off far above it."
    )
    pictures = (_picture(name, one, watch) for name, one in members for watch in one.watches)
    undrawn = len(ordered) - len(members)
    more = f"Further from an alarm, so not drawn: {amount(undrawn, 'group')}."
    counted = amount(monitor.rows, "row" if monitor.in_units is None else "unit")
    headline = "\n".join(alarms[:MOST_DRAWN])
    sections = (
        *only(rows=monitor.rows, points=monitor.points, alpha=monitor.alpha),
        *only(alarm=alarms[0] if alarms else None),
        Section(items=tuple(notes)),
        Section("Evidence over time", (lead + within, *pictures, *([more] * bool(undrawn))), "evidence"),
        Section("Monitored rates", _watched(members, rounded_up(monitor.alpha)), "watched"),
        *only(**known),
    )
    return Account("Monitor of a certificate", counted, status, headline, sections=sections, of="monitor")


def _content(monitor: Monitor, member: Member) -> dict[str, Any]:
    watches = []
    for watch in member.watches:
        facts: dict[str, Any] = {"name": watch.name, "points": watch.n, "log_evidence": watch.log_evidence}
        facts |= {"log_bar": -log(watch.alpha), "alpha": watch.alpha, "delta": watch.delta}
        if watch.ceiling is not None:
            rate = watch.rate
            facts |= {"count": rate.count, "limit": watch.ceiling, "low": rate.low, "high": rate.high}
        watches.append(facts)
    alarms = []
    for one in member.alarms:
        alarms.append(asdict(one) | {"e_value": f"{one.e_value:.6g}", "interval": one.interval})
    unwatched = tuple(member.unwatched(monitor.asked))
    return {"unscored": member.unscored, "unwatched": unwatched, "watches": watches, "alarms": alarms}


def _watched(members: list[tuple[str, Member]], alpha: str) -> tuple[Item, ...]:
    rows = []
    for name, one in members:
        for watch in one.watches:
            share, allowed = amount(watch.n, "point"), "bounds of the curve"
            if watch.ceiling is not None:
                share, allowed = watch.counted, rounded_up(watch.ceiling)
            chance = f"{rounded_up(watch.alpha)}, plus {rounded_up(watch.delta)} for a wrong ceiling"
            rows.append((name + watch.name, share, allowed, chance))
    caption = "Rates with their confidence sequences, which hold at all times."
    order = (
        "Neither the choice of the labelled rows nor the order of the labels may depend on scores or"
        " verdicts; only the rows of one batch, which count together, may come in any order."
    )
    if any(watch.name in REVIEWED for _, one in members for watch in one.watches):
        order = "A batch counts once all its alarms are reviewed; batches count in the order they came in."
    return (
        f"While all rates keep their ceilings, the chance that any alarm is ever raised is at most {alpha},"
        f" which the rates share. The chances that a ceiling is wrong come on top. {order}",
        Table(("Rate", "So far", "Ceiling", "Chance of a false alarm, ever"), tuple(rows), caption),
    )


def monitor_metrics(monitor: Monitor) -> str:
    """Return the numbers of a monitor in the text format of Prometheus."""
    watches: list[tuple[Watch, dict[str, str]]] = []
    rising: list[tuple[dict[str, str], Alarm]] = []
    unscored: list[tuple[dict[str, str], float]] = []
    for groups, one in monitor.members.items():
        labels = {"pool": "true"} if groups else {}
        if len(groups) == 1:
            # Prometheus drops empty labels, so a group without a name needs another one
            labels = {"missing": "true"} if groups[0] is None else {"group": text_of(groups[0]) or ""}
        unscored.append((labels, one.unscored))
        watches += [(watch, labels | {"watch": watch.name}) for watch in one.watches]
        rising += [(labels | {"watch": alarm.watch}, alarm) for alarm in one.alarms]
    alarmed = [labels for labels, _ in rising]
    batches = [(of if one.id is None else of | {"batch": one.id}, float(one.row)) for of, one in rising]
    shares = [(watch, labels) for watch, labels in watches if watch.ceiling is not None]
    reasons = {"never seen": monitor.unseen, "promised nothing": monitor.unpromised}
    apart = [({"reason": why}, float(rows)) for why, rows in reasons.items() if monitor.table is not None]
    metrics: list[tuple[str, str, str, list[tuple[dict[str, str], float]]]] = [
        ("rows_total", "counter", "Rows, or units, so far.", [({}, monitor.rows)]),
        ("unscored_total", "counter", "Rows without a score.", unscored),
        ("unwatched_total", "counter", "Rows of groups that are not monitored.", apart),
        ("points_total", "counter", "Points that count for a rate.", [(of, one.n) for one, of in watches]),
        ("errors_total", "counter", "Errors, or undecided points.", [(of, one.count) for one, of in shares]),
        ("limit", "gauge", "The ceiling of the rate.", [(of, one.ceiling or 0.0) for one, of in shares]),
        ("rate_low", "gauge", "Lower bound of the rate.", [(of, one.rate.low) for one, of in shares]),
        ("rate_high", "gauge", "Upper bound of the rate.", [(of, one.rate.high) for one, of in shares]),
        ("log_evidence", "gauge", "Logarithm of evidence.", [(of, one.log_evidence) for one, of in watches]),
        ("log_bar", "gauge", "log_evidence at an alarm.", [(of, -log(one.alpha)) for one, of in watches]),
        ("alarm", "gauge", "1 after an alarm.", [(of, float(of in alarmed)) for _, of in watches]),
        ("alarm_row", "gauge", "The row of the alarm.", batches),
    ]
    lines = []
    for name, kind, text, values in metrics:
        if values:
            lines += [f"# HELP {_PREFIX}_{name} {text}", f"# TYPE {_PREFIX}_{name} {kind}"]
        for labels, value in values:
            number = str(int(value)) if float(value).is_integer() else repr(float(value))
            lines.append(f"{_PREFIX}_{name}{_labels(labels)} {number}")
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    """Return labels in the format of Prometheus, escaped."""
    pairs = []
    for name, value in labels.items():
        plain = value.encode("utf-8", "backslashreplace").decode()
        escaped = plain.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        pairs.append(f'{name}="{escaped}"')
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _picture(name: str, member: Member, watch: Watch) -> Figure:
    """Return the evidence over the rows, on a scale of powers of ten."""
    alarm = next((alarm.row for alarm in member.alarms if alarm.watch == watch.name), None)
    rows = (0, *member.past, member.rows)
    heights = [max(_LEAST, height / log(10.0)) for height in (0.0, *watch.past, watch.log_evidence)]
    bar = -log10(watch.alpha)
    top, bottom = max(bar + 1.0, *(min(height, 3.0 * bar) for height in heights)), min(-1.0, *heights)

    def x(row: int) -> float:
        return round(_WIDTH * row / max(1, member.rows), 1)

    def y(power: float) -> float:
        return round(_TOP + _HEIGHT * (top - min(power, top)) / (top - bottom), 1)

    points = " L".join(f"{x(row)} {y(height)}" for row, height in zip(rows, heights, strict=True))
    ticks = tuple((y(power), f"{10.0**power:,.0f}") for power in (0.0, bar))
    evidence, least = evidence_text(watch.log_evidence), f"{1 / watch.alpha:,.0f}"
    counted = amount(watch.n, "point" if watch.units is None else watch.units[:-1])
    words = f"Evidence against it: {evidence} after {counted} (alarm at {least})."
    place = None if alarm is None else round(100.0 * alarm / member.rows, 2)
    drawn = {"path": f"M{points}", "bar": y(bar), "alarm": place, "ticks": ticks, "rows": member.rows}
    drawn |= {"size": (_WIDTH, _HEIGHT, _TOP), "row": "row" if watch.units is None else "unit"}
    return Figure("evidence", drawn, words, name + _TITLES[watch.name])
