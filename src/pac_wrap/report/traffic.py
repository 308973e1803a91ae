"""The account of a certificate of traffic, in an operator's words: alarms, wrong ones, the next reviews."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from math import ceil, inf, log10
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import as_anomaly_mask, as_scores
from pac_wrap.base.floats import rounded, rounded_up
from pac_wrap.base.text import amount, sentence
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import Assumption, Clause, Error, Promise
from pac_wrap.method.provenance import Provenance, Traffic
from pac_wrap.method.traffic.calibrate import as_reviews, calibrate_traffic
from pac_wrap.ranks.memory import kth_largest
from pac_wrap.report import certificate as pages
from pac_wrap.report import sentences
from pac_wrap.report.account import Account, Fact, Figure, Points, Section, Status, Table, facts_of, only
from pac_wrap.report.numbers import confidence, percent, sure, told_apart
from pac_wrap.report.pictures import alarms_picture
from pac_wrap.tails.bounds import ranks_tested

if TYPE_CHECKING:
    from pac_wrap.method.traffic.review import ReviewQueue

# the reviews that are looked ahead
_MORE: Final = 50
_ROWS: Final = {"max_alarms": "alarms", "min_precision": "right", "max_false_alarms": "wrong"}


def traffic_in_short(certificate: Certificate, source: Any = None, detector: str | None = None) -> Account:
    """Return the account of a certificate of traffic without its sections."""
    known = certificate.provenance or Provenance()
    title = sentences.title(detector, known, source).replace("Error rates", "Alarms")
    subtitle, status = sentences.subtitle(known, source), _status(certificate)
    facts, form = tuple(_facts(certificate)), ("pac-wrap report of traffic", 1)
    return Account(title, subtitle, status, _headline(certificate), facts=facts, form=form)


def account_of_traffic(
    certificate: Certificate,
    scores: ArrayLike | None = None,
    anomalous: ArrayLike | None = None,
    *,
    reviews: ArrayLike | None = None,
    audits: ArrayLike | None = None,
    source: Any = None,
    detector: str | None = None,
) -> Account:
    """Return the account of a certificate of traffic; with its scores, the picture and the next reviews."""
    first: list[str | Figure] = [sentence(_alarms(certificate))]
    account, own = traffic_in_short(certificate, source, detector), None
    if scores is not None:
        if not certificate.verify(scores, anomalous, reviews=reviews, audits=audits):
            raise InputError(
                "the certificate was made from other scores or reviews; pass all that calibrated"
            )
        own = _Own(certificate, scores, reviews, anomalous=anomalous, audits=audits)
        alt = f"Histogram of the highest scores, by review. {first[0]}"
        shown = alarms_picture(certificate.rule, own.scores, own.verdicts)
        first.append(Figure("alarms", shown, alt=alt))
        account = replace(account, picture=Figure("alarms", (certificate.rule, own.scores, reviews), alt=alt))
    rule, unscored = certificate.rule, _seen(certificate).unscored
    first.append(f"The rule: {sentences.rule_words(rule)}.")
    first += [f"{amount(unscored, 'point')} without a score raised no alarm."] if unscored else []
    ends = {"normal_below": rule.normal_below, "anomaly_from": rule.anomaly_from}
    unpromised = ["The anomalies that raise no alarm."] if not certificate.fnr.kept else []
    unpromised.append("The alarms of one kind or group of points by itself.")
    sections = (
        Section(items=tuple(first), key="rule", value=ends),
        _practice(certificate),
        *_next(certificate, own),
        _promises(certificate),
        pages.assumptions(sentences.assumed(certificate), *unpromised, of_traffic=True),
        *pages.origins(sentences.Report(certificate, source=source, detector=detector)),
    )
    return replace(account, sections=sections)


class _Own:
    """The scores and reviews that calibrated, and what more reviews of them would give."""

    def __init__(self, certificate: Certificate, scores: ArrayLike, reviews: Any, **more: Any) -> None:
        self.certificate, self._more = certificate, more
        self.scores = rounded(as_scores(scores, "scores", missing=True), certificate.score_type)
        self.verdicts = as_reviews(reviews, self.scores.size)
        asked = _reviewed(certificate)
        self._coin = min((one.reviews.rate for one in asked if one.reviews), default=1.0)
        # the highest scores without a review; what coins passed over stays so
        unseen = np.flatnonzero((self.verdicts < 0) & ~np.isnan(self.scores) & bool(asked))
        if self._coin < 1.0:
            unseen = unseen[self.scores[unseen] < self.scores[self.verdicts >= 0].min(initial=inf)]
        if unseen.size > (most := ceil(_MORE / self._coin)):
            unseen = unseen[self.scores[unseen] >= kth_largest(self.scores[unseen], most)]
        places = (np.arange(_MORE) / self._coin).astype(np.intp)
        highest = unseen[np.argsort(-self.scores[unseen], kind="stable")]
        self.waiting = highest[places[places < highest.size]]
        audits = more["audits"]
        self.audits_left = 0 if audits is None else int(np.sum(as_anomaly_mask(audits) & (self.verdicts < 0)))

    @property
    def wrong_left(self) -> int | None:
        """After how many more wrong alarms no review lowers the threshold; None if that is unknown."""
        own = [one.errors for one in self.certificate.clauses if one.of.error is Error.FALSE_ALARM]
        alone = len(_reviewed(self.certificate)) == 1 and self._coin == 1.0
        if not (alone and self.waiting.size and own) or own[0] is None:
            return None
        above = self.scores >= self.scores[self.waiting[0]]
        return max(0, own[0] + 1 - int(np.count_nonzero(above & (self.verdicts == 0))))

    def cases(self) -> Iterator[dict[str, Any]]:
        """Yield the certificate, and those after the next reviews: all right, and as many as until now."""
        now, seen, n = self.certificate, _seen(self.certificate), self.waiting.size
        scores, apart = self.scores.astype(now.score_type), Assumption.APART in now.assumptions
        yield _case("none", None, now)
        known = seen.right + (seen.wrong or 0)
        share, said = (seen.right / known, "as until now") if known else (0.5, "a guess")
        shares = {1.0: "all right", share: f"{percent(share)} of them right, {said}"}
        for part, words in shares.items() if n else ():
            right = np.diff(np.round(np.arange(n + 1) * part)) > 0
            verdicts = np.where(self.verdicts < 0, np.nan, self.verdicts)
            verdicts[self.waiting] = right
            with warnings.catch_warnings(action="ignore", category=PACWrapWarning):
                made = calibrate_traffic(scores, verdicts, now.guarantee, independent=apart, **self._more)
            yield _case(f"{n:,}, {words}", int(np.count_nonzero(right)), made)


def _case(words: str, right: int | None, made: Certificate) -> dict[str, Any]:
    ends = {"normal_below": made.rule.normal_below, "anomaly_from": made.rule.anomaly_from}
    found = ends | {"alarms": _seen(made).alarms, "promises": len(made.promises)}
    return {"reviews": words, "right": right, "found": found}


def _status(certificate: Certificate) -> Status:
    lacking = [one for one in certificate.clauses if one.lacking]
    if not lacking:
        return Status("certified", "certified", 0)
    if not certificate.promises:
        return Status("none", "too little traffic, or too few reviews", 1)
    return Status("partly", f"partly certified: nothing is promised about {_about(lacking[0])}", 1)


def _about(one: Clause) -> str:
    names = {"alarms": "precision", "anomalous": "missed anomalies"}
    return names.get(one.of.label, f"{one.of.error.value}s")


def _headline(certificate: Certificate) -> str:
    """Return the promises in one line, and those that are lacking in another."""
    kept, lines = certificate.promises, []
    if kept:
        *others, last = map(sentences.promise_in_words, kept)
        said = f"{', '.join(others)}{',' * (len(others) > 1)}{' and ' * bool(others)}{last}"
        together = f": all of it together with {sure(certificate.confidence)}"
        surely = together if others else f", with {confidence(kept[0].delta)}"
        lines.append(f"In the long run, {said}{surely} confidence.")
    lacking = [one for one in certificate.clauses if one.lacking]
    more = [f"Nothing is promised about {_about(one)} yet: {_why(one, certificate)}." for one in lacking]
    more += ["No alarm is ever raised."] * (certificate.rule.anomaly_from == inf)
    return "\n".join([*lines, *[" ".join(more)][: len(more)]])


def _why(one: Clause, certificate: Certificate) -> str:
    """Return why a promise is lacking, and what it needs."""
    seen = _seen(certificate)
    if one.of.label == "alarms" and one.asked is not None:
        first = next(ranks_tested(seen.points, one.asked.at_calibration, one.asked.delta), 0)
        needed = max(0, first - 1 - (one.asked.budget(max(0, first - 1)).errors or 0))
        if not first:
            return f"{seen.points:,} points of traffic are too few"
        if seen.found < needed:
            return (
                f"review has to find at least {needed:,} of the {first - 1:,} highest scores right;"
                " review more of them, or ask for less"
            )
        return "too many of the highest scores are wrong or not reviewed; review more, or ask for less"
    needed = one.n + one.missing
    if one.asked is not None and one.asked.by_audits:
        drawn = seen.audits or 0
        many = float(f"{drawn * needed / one.n:.1e}") if one.n else 0.0
        audits = f"; that takes about {many:,.0f} audits, not {drawn:,}" if many else ""
        return f"{one.n:,} caught anomalies are too few, {needed:,} are needed{audits}"
    points = "anomalies" if one.of.label == "anomalous" else "points of traffic"
    return f"{one.n:,} {points} are too few, {needed:,} are needed"


def _seen(certificate: Certificate) -> Traffic:
    assert certificate.traffic is not None
    return certificate.traffic


def _per(certificate: Certificate) -> int:
    """Return the number of points in the unit of the promises, or a round one with some alarms."""
    asked = [one.asked for one in certificate.clauses if one.asked and one.of.label == "traffic"]
    units = (int(one.limit[1]) for one in asked if one.limit is not None)
    rate = min((one.ceiling for one in asked), default=0.01)
    return next(units, 10 ** max(3, ceil(1.0 - log10(rate))))


def _in_unit(certificate: Certificate, count: int) -> str:
    """Return a count among the points of traffic in the unit of the promises."""
    seen, per = _seen(certificate), _per(certificate)
    about = f"about {float(f'{count * per / seen.points:.2g}'):,.12g}"
    return about if count and seen.points != per else f"{count:,}"


def _alarms(certificate: Certificate) -> str:
    """Return in words how many points of traffic raise an alarm, and how many of these are right."""
    seen, per = _seen(certificate), _per(certificate)
    of = f"these {amount(seen.points, 'point')}"
    if not seen.alarms:
        return f"none of {of} raises an alarm"
    text = f"{seen.alarms:,} of {of} {'raises' if seen.alarms == 1 else 'raise'} an alarm"
    text += f", {_in_unit(certificate, seen.alarms)} of every {per:,}" * (seen.points != per)
    if not (seen.right or seen.wrong):
        return f"{text}; none of them is reviewed"
    left = "not found right" if seen.wrong is None else "not reviewed"
    counts = {"found right": seen.right, "found wrong": seen.wrong, left: seen.unreviewed or None}
    return "; ".join([text, ", ".join(f"{n:,} {word}" for word, n in counts.items() if n is not None)])


def _facts(certificate: Certificate) -> Iterator[Fact]:
    seen = _seen(certificate)
    yield Fact("alarms", _alarms(certificate))
    yield Fact("rule", sentences.rule_words(certificate.rule))
    unscored = f", {seen.unscored:,} without a score" if seen.unscored else ""
    looked = "" if seen.cleared is None else f"{amount(seen.found + seen.cleared, 'review')}, "
    found = f"; {looked}{seen.found:,} found anomalous" if seen.found or seen.cleared else ""
    yield Fact("traffic", f"{amount(seen.points, 'point')}{unscored}{found}")
    budgets = []
    for one in certificate.clauses:
        used = _used(one, seen)
        among = {"alarms": "alarms", "anomalous": "anomalies"}.get(one.of.label, "points")
        spent = "" if used is None else f", {used:,} used"
        errors = amount(one.errors or 0, one.of.error.value).replace("misss", "misses")
        budgets += [f"{errors} among {one.n:,} {among}{spent}"] if one.kept else []
    yield from facts_of("allowed", list(dict.fromkeys(budgets)))
    yield from facts_of("review", list(_unreviewed(certificate)))
    yield Fact("assumes", sentences.briefly(certificate.assumptions))
    yield from sentences.made_facts(certificate)


def _used(one: Clause, seen: Traffic) -> int | None:
    """Return how much of the budget of a promise the points of traffic use up; None if it is not counted."""
    if one.of.error in (Error.ALARM, Error.MISS):
        return seen.alarms if one.of.error is Error.ALARM else None
    return seen.wrong if one.asked is not None and one.asked.by_coins else seen.alarms - seen.right


def _reviewed(certificate: Certificate) -> list[Promise]:
    """Return the promises about alarms that need reviews."""
    own = (one for one in certificate.of("normal") if one.of.error is not Error.ALARM)
    return [one.asked for one in own if one.asked is not None]


def _unreviewed(certificate: Certificate) -> Iterator[str]:
    """Yield what the alarms without a review mean."""
    seen, asked = _seen(certificate), _reviewed(certificate)
    alarms = f"{amount(seen.unreviewed, 'alarm')} without a review"
    if not (seen.unreviewed and asked) or seen.wrong is None:
        return
    if any(one.by_coins for one in asked):
        yield f"{alarms}, passed over by the coin, did not count as wrong"
    else:
        yield f"{alarms} counted as wrong; each one that is found right makes room for another alarm"


def _practice(certificate: Certificate) -> Section:
    """Return the alarms as they were counted, beside what is promised in the same unit."""
    seen, per = _seen(certificate), _per(certificate)
    kept = {_ROWS.get(one.of.option): one.certified for one in certificate.clauses if one.kept}
    counts = {name: getattr(seen, name) for name in ("alarms", "right", "wrong", "unreviewed")}
    rows = []
    for name, count in counts.items():
        made, promised = kept.get(name), "nothing"
        if made is not None:
            stated = made.limit is not None and made.limit[1:] == (per,)
            most = f"{made.limit[0]:,.12g}" if made.limit and stated else rounded_up(made.ceiling, per)
            promised = f"{sentences.least_right(made)} of alarms" if name == "right" else f"at most {most}"
        if count or (name in ("alarms", "right", "wrong") and count is not None):
            words = {"alarms": "All alarms", "unreviewed": "Not reviewed"}.get(name, name.capitalize())
            rows.append((words, f"{count:,}", _in_unit(certificate, count), promised))
    heads = ("Alarms", f"In these {seen.points:,} points", f"In {per:,} points", f"Promised in {per:,}")
    caption = "The alarms in the traffic that calibrated, and what is promised on average for all that comes."
    value = {"per": per, "points": seen.points, "unscored": seen.unscored} | counts
    value |= {"found": seen.found, "cleared": seen.cleared, "audits": seen.audits}
    items: list[Table | Points] = [Table(heads, tuple(rows), caption)]
    with suppress(InputError):  # of some promises, nothing follows for the next points
        known = (one for one in certificate.among_next(per) if one.most is not None)
        said = tuple(sentence(str(one)) for one in known if one.of.label == "traffic")
        lead = "Among the next points, each promise by itself:"
        items += [Points(said, lead, "among_next")] if said else []
    return Section("Alarms in practice", tuple(items), "practice", key="practice", value=value)


def _next(certificate: Certificate, own: _Own | None) -> Iterator[Section]:
    """Yield what the next reviews would give, and what to do next."""
    steps, cases = list(map(sentence, _unreviewed(certificate))), [] if own is None else list(own.cases())
    items: tuple[Table, ...] = ()
    left = None if own is None else own.wrong_left
    if own is not None and own.audits_left:
        left_out = amount(own.audits_left, "audit")
        steps.append(f"{left_out} without a review counted as missed anomalies: review these first.")
    if own is not None and len(cases) > 1:
        n = amount(own.waiting.size, "highest score")
        if cases[1]["found"] == cases[0]["found"]:
            said = f"Reviewing the {n} without a review would change nothing, whatever is found."
            steps += [said] * (not own.audits_left)
        else:
            heads = ("More reviews", "Alarm from", "Alarms", f"In {_per(certificate):,} points")
            caption = f"The threshold and the alarms now, and after reviews of the {n} without one."
            edges = told_apart([one["found"]["anomaly_from"] for one in cases])
            rows = []
            for one, edge in zip(cases, edges, strict=True):
                alarms = one["found"]["alarms"]
                rows.append((one["reviews"], edge, f"{alarms:,}", _in_unit(certificate, alarms)))
            items = (Table(heads, tuple(rows), caption),)
            if left is not None:
                steps.append(
                    f"Review from the highest score down, and stop after {amount(left, 'more wrong alarm')}:"
                    " from then on no review lowers the threshold."
                )
            steps.append("Stop whenever you like: the promise holds however many points were reviewed.")
    value = {"stop_after_wrong": left, "cases": cases}
    yield Section("What more reviews would give", items, "reviews", key="next_reviews", value=value)
    yield Section("What to do next", (Points((*steps, pages.AGAIN), key="next_steps"),), "next")


def _promises(certificate: Certificate) -> Section:
    """Return each promise with its budget of errors, and how much of it is used."""
    rows, records = [], []
    for one, asked in ((one, one.asked) for one in certificate.clauses if one.asked is not None):
        used = _used(one, _seen(certificate)) if one.kept else None
        left = None if used is None or one.errors is None else one.errors - used
        counts = {"n": one.n, "allowed": one.errors, "used": used, "left": left}
        sure_of = confidence(asked.delta) if one.kept else "not promised"
        edge = "none" if one.threshold is None else told_apart([one.threshold])[0]
        texts = ("not counted" if count is None else f"{count:,}" for count in counts.values())
        rows.append((sentence(sentences.promise_in_words(asked)), sure_of, *texts, edge))
        record = {"option": one.of.option, "ceiling": asked.ceiling, "limit": asked.limit}
        record |= {"delta": asked.delta, "certified": one.kept, "threshold": one.threshold}
        records.append(record | counts)
    heads = ("Promise", "Confidence", "Points", "Allowed", "Used", "Left", "Threshold")
    caption = (
        "The errors that each promise allows among these points, those that the alarms use up, and the"
        " threshold that each promise would set by itself."
    )
    table = Table(heads, tuple(rows), caption, key="promises", data=records)
    return Section("Promises", (table,), "promises")


def account_of_queue(queue: "ReviewQueue", count: int, file: str | None) -> Account:
    """Return the account of a queue: what reviews have gained so far, and the next `count` points."""
    made, left = queue.certificate, queue.wrong_left
    seen, own = made.traffic, [one for one in made.of("normal") if one.of.error is Error.FALSE_ALARM]
    assert seen is not None
    status, headline = Status("certified", "more reviews may help"), "No further review lowers the threshold."
    if count:
        points = "highest point" if count == 1 else f"{count:,} highest points"
        ends = f"After {left:,} more wrong ones no review helps" if left else "Stop at any time"
        headline = f"Review the {points} that nobody has looked at, from the top. {ends}."
    elif made.empty:
        status, headline = _status(made), _headline(made)
    without = [f"; at most {one.errors:,} without any review" for one in own if one.errors is not None]
    reviews = f"{amount(seen.found + (seen.cleared or 0), 'review')} of {seen.points:,} points"
    facts = [
        Fact("promise", str(made.guarantee)),
        Fact("reviewed", f"{reviews}: {seen.found:,} right, {seen.cleared:,} wrong"),
        Fact("rule", sentences.rule_words(made.rule)),
        Fact("alarms", f"{seen.alarms:,} now, {seen.right:,} of them found right{''.join(without)}"),
        *[Fact("next", f"{amount(count, 'row')} -> {file}")] * (file is not None),
    ]
    record = {"next": count, "wrong_left": left, "points": seen.points, "found": seen.found}
    record |= {"cleared": seen.cleared, "alarms": seen.alarms, "right": seen.right, "wrong": seen.wrong}
    return Account(status=status, headline=headline, facts=tuple(facts), sections=only(**record))
