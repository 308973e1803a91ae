"""The page of a certificate of kinds: what is promised of each, which kind binds, and how each is scored."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike

from pac_wrap.base.arguments import Scores, as_scores
from pac_wrap.base.floats import rounded
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.provenance import Provenance
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.method.kinds.part import Part
from pac_wrap.method.rule import Verdict
from pac_wrap.ranks.kernels import digest
from pac_wrap.report.pages.content import sentence, subtitle, title, versions
from pac_wrap.report.pages.formats import notebook, shown_scores
from pac_wrap.report.pages.parts import AGAIN, LONGEST_NAME, MOST_MULTIPLES, SHORT_NAME, Listing, PartsContent
from pac_wrap.report.pages.pictures import Multiple, multiple
from pac_wrap.report.subject import meaning, rows_of_rule
from pac_wrap.report.window import Window
from pac_wrap.report.words.kinds import binding_words, lines_of_kinds, mixture_words, named
from pac_wrap.report.words.numbers import ceiling, confidence, floored, share, told_apart
from pac_wrap.report.words.sentences import Status
from pac_wrap.tails.bounds import min_samples

Parts = dict[str | None, Scores]
_LISTED: Final = 4
_HEADS: Final = ("Kind", "Class", "Labels", "Ceiling", "Errors allowed", "Threshold alone", "Misjudged")


def page_of_kinds(
    certificate: KindCertificate,
    normal: "ArrayLike | Mapping[str, ArrayLike] | None" = None,
    anomalous: "ArrayLike | Mapping[str, ArrayLike] | None" = None,
    detector: str | None = None,
) -> PartsContent:
    """Return what a page of kinds says; with the calibration scores it shows them, too.

    >>> from pac_wrap import Guarantee, calibrate
    >>> asked = Guarantee(max_fpr=0.05, max_fnr={"stolen": 0.02, "takeover": 0.1})
    >>> kinds = calibrate(range(1000), {"stolen": range(950, 1950), "takeover": range(900, 1900)}, asked)
    >>> print(page_of_kinds(kinds).promise)
    The rate of future normal points that are called anomalies is at most 5 %; the rate of future anomalies \
that are called normal is at most 2 % for kind 'stolen' and 10 % for kind 'takeover': all of it together \
with confidence 91.02 %.
    """
    if (normal is None) != (anomalous is None):
        raise InputError("pass the calibration scores of both classes, or of neither")
    scores: tuple[Parts, Parts] | None = None
    if normal is not None and anomalous is not None:
        kind = certificate.score_type
        scores = (
            _checked("normal", normal, certificate.normal, kind),
            _checked("anomalous", anomalous, certificate.anomalous, kind),
        )
    whole = (None, None) if scores is None else (scores[0][None], scores[1][None])
    known = certificate.binding.provenance or Provenance()
    sizes = tuple(_points(parts) for parts in (certificate.normal, certificate.anomalous))
    return PartsContent(
        of="kinds",
        title=f"{title(detector, known)}, by kind",
        subtitle=subtitle(known),
        status=_status(certificate),
        promise=_promise(certificate),
        warnings=tuple(_warnings(certificate)),
        heading="What is promised of each kind",
        tables=(_table(certificate, scores),),
        lead=tuple(sentence(text) for text in binding_words(certificate)),
        multiples=() if scores is None else tuple(_multiples(certificate, scores)),
        multiples_caption="Each kind beside the whole of the other class, on one scale, with the rule.",
        next_steps=tuple(_next(certificate)),
        listing=None,
        verdicts=rows_of_rule(certificate.rule, whole, (sizes[0], sizes[1]), dict(_meanings(certificate))),
        assumptions=tuple(
            sentence(text)
            for text in (*map(str, certificate.binding.assumptions), mixture_words(certificate))
        ),
        versions=versions(certificate.binding.version),
        digests=tuple(
            (f"{label.capitalize()} {named(part)}", part.digest) for label, part in _both(certificate)
        ),
        certificate=certificate.to_json(),
        more_not_promised=("A kind of points that was not there at calibration.",),
        pictures=shown_scores(certificate.rule, *whole),
    )


def notebook_of_kinds(certificate: KindCertificate) -> str:
    """Return a certificate of kinds as a notebook shows it."""
    return notebook(_status(certificate), _promise(certificate), lines_of_kinds(certificate))


def _both(certificate: KindCertificate) -> Iterator[tuple[Literal["normal", "anomalous"], Part]]:
    yield from (("normal", part) for part in certificate.normal)
    yield from (("anomalous", part) for part in certificate.anomalous)


def _points(parts: Sequence[Part]) -> int:
    """Return how many points a class has; a part without a name is all of them."""
    return max(sum(part.n for part in parts if part.name is not None), max(part.n for part in parts))


def _checked(
    label: str, given: "ArrayLike | Mapping[str, ArrayLike]", parts: Sequence[Part], score_type: str
) -> Parts:
    """Return the scores of each kind, and of None for all, if they are those of the certificate."""
    kinds: Parts = {}
    for name, some in (given if isinstance(given, Mapping) else {None: given}).items():
        kinds[name] = rounded(as_scores(some, label), score_type)  # type: ignore[arg-type]  # of a certificate
    if None not in kinds:
        kinds[None] = np.concatenate([*kinds.values(), np.empty(0)])
    for part in parts:
        scores = kinds.get(part.name)
        if scores is None or scores.size != part.n or digest(scores) != part.digest:
            raise InputError(
                f"the {label} scores of {named(part)} are not those the certificate was made from (their"
                " digests differ); pass the calibration scores of each kind"
            )
    return kinds


def _status(certificate: KindCertificate) -> Status:
    parts = [part for _, part in _both(certificate)]
    lacking = [part for part in parts if part.vacuous]
    if certificate.binding.certified is None:
        return Status("none", "nothing certified")
    if lacking and certificate.promises:
        more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
        return Status(
            "partly", f"partly certified: too few labels of {named(lacking[0], LONGEST_NAME)}{more}"
        )
    if not certificate.promises:
        return Status("none", "too few labels")
    if any(part.asked is not None and part.ceiling is None for part in parts):
        return Status("partly", "partly certified")
    if any(part.asked is not None and (part.ceiling or 0.0) > part.asked for part in parts):
        return Status("raised", "certified with raised ceilings")
    return Status("certified", "certified for every kind")


def _promise(certificate: KindCertificate) -> str:
    kept = certificate.promises
    if not kept:
        return "Nothing is promised, since too few points are labelled."
    clauses = []
    for parts, label, many, called in (
        (certificate.normal, "normal", "normal points", "anomalies"),
        (certificate.anomalous, "anomalous", "anomalies", "normal"),
    ):
        mine = {one.of.kind: one.ceiling for one in kept if one.of.label == label}
        if mine:
            most = _of_kinds(mine, len(parts))
            clauses.append(f"the rate of future {many} that are called {called} is at most {most}")
        else:
            clauses.append(f"nothing is promised about {many}")
    text = "; ".join(clauses)
    surely = f"with confidence {confidence(kept[0].delta)}"
    if len(kept) > 1:
        surely = f"all of it together with confidence {floored(certificate.confidence)}"
    if not certificate.confidence:
        surely = "each with the confidence that was asked for"
    return f"{text[0].upper()}{text[1:]}: {surely}."


def _of_kinds(ceilings: Mapping[str | None, float], parts: int) -> str:
    """Return ceilings and the kinds that they are for, in words."""
    if parts == 1 and None in ceilings:
        return ceiling(ceilings[None])
    rates = set(ceilings.values())
    if None not in ceilings and len(rates) == 1 and len(ceilings) == parts:
        kinds = "" if parts == 1 else f" for each of {parts:,} kinds"
        return f"{ceiling(rates.pop())}{kinds}"
    if len(ceilings) > _LISTED:
        return f"{ceiling(min(rates))} to {ceiling(max(rates))}, by their kind (see below)"
    texts: list[str] = []
    for kind, rate in ceilings.items():
        what = "all of them as they come" if kind is None else f"kind {quoted(kind, LONGEST_NAME)}"
        texts.append(f"{ceiling(rate)} for {what}")
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _warnings(certificate: KindCertificate) -> Iterator[str]:
    for label, part in _both(certificate):
        budget = part.budget
        if part.vacuous and budget is not None:
            never = "no anomaly is ever declared" if label == "normal" else "no point is ever called normal"
            yield (
                f"Too few {label} points of {named(part)} are labelled: {part.n:,}, and"
                f" {part.n + budget.missing:,} are needed. So {never}."
            )


def _table(certificate: KindCertificate, scores: tuple[Parts, Parts] | None) -> Listing:
    rows = []
    for label, part in _both(certificate):
        several = len(getattr(certificate, label)) > 1
        binds = " (binds)" if several and part in certificate.binds else ""
        place, wrong = (0, Verdict.ANOMALY) if label == "normal" else (1, Verdict.NORMAL)
        misjudged = "not counted"
        if scores is not None:
            verdicts = certificate.rule.verdicts(scores[place][part.name])
            misjudged = share(int(np.count_nonzero(verdicts == wrong)), part.n)
        rows.append(
            (
                "all points" if not several and part.name is None else f"{named(part, LONGEST_NAME)}{binds}",
                label,
                f"{part.n:,}",
                "none" if part.ceiling is None else ceiling(part.ceiling),
                "none" if part.errors is None else f"{part.errors:,}",
                "none" if part.threshold is None else told_apart([part.threshold])[0],
                misjudged,
            )
        )
    return Listing(
        "Every kind has a threshold from its own labels; the rule is that of the kinds that bind. Misjudged:"
        " calibration points of the kind that the rule gets wrong.",
        _HEADS,
        tuple(rows),
    )


def _multiples(certificate: KindCertificate, scores: tuple[Parts, Parts]) -> Iterator[Multiple]:
    rule = certificate.rule
    window = Window.around([scores[0][None], scores[1][None]], [rule.normal_below, rule.anomaly_from])
    drawn = [(label, part) for label, part in _both(certificate) if part.name is not None]
    # those that bind, and else the largest
    binding = certificate.binds
    drawn.sort(key=lambda pair: (pair[1] not in binding, -pair[1].n))
    for label, part in drawn[:MOST_MULTIPLES]:
        own = scores[label == "anomalous"][part.name]
        classes = (own, scores[1][None]) if label == "normal" else (scores[0][None], own)
        words = f"{part.n:,} {label}{', binds' if part in binding else ''}"
        yield multiple(window, rule, *classes, named(part, SHORT_NAME), words)


def _next(certificate: KindCertificate) -> Iterator[str]:
    for label, part in _both(certificate):
        if part.vacuous and part.ceiling is not None:
            needed = min_samples(part.ceiling, part.delta)
            yield f"Label more {label} points of {named(part)} (at hand {part.n:,}, needed {needed:,})."
    for of, binding in zip(("normal", "anomalous"), certificate.binds, strict=True):
        if binding is not None and not binding.vacuous and len(getattr(certificate, of)) > 1:
            yield (
                f"For fewer undecided points, label more of {named(binding)}, which sets the threshold for"
                f" all {of} points, or calibrate on fresh points with a higher ceiling for it."
            )
    yield "As a check, measure the rates of each kind on labelled points that were not used here."
    yield AGAIN


def _meanings(certificate: KindCertificate) -> Iterator[tuple[Verdict, str]]:
    promised = {one.of.label for one in certificate.promises}
    for verdict, said, label, others in (
        (Verdict.NORMAL, "No alarm.", "anomalous", "anomalies"),
        (Verdict.ANOMALY, "Alarm.", "normal", "normal points"),
    ):
        kept = f"{said} Of each kind of {others} at most its ceiling gets this verdict."
        yield verdict, kept if label in promised else meaning(said, None, others)
