"""What certificates of kinds say in words: what is promised of each, which kind binds, and what it costs."""

from collections.abc import Iterable, Iterator
from math import inf
from typing import TYPE_CHECKING

from pac_wrap.base.floats import confidence_left, rounded_down, rounded_up
from pac_wrap.base.text import LONGEST, quoted, visible
from pac_wrap.method.kinds.certificate import KindCertificate
from pac_wrap.method.kinds.classes import ClassCertificate
from pac_wrap.method.kinds.part import Measured, Part, farthest, kept
from pac_wrap.method.sampling import OF_DRAWS
from pac_wrap.report.words.certificate import made_lines, rule_words
from pac_wrap.tails.bounds import Budget

if TYPE_CHECKING:
    from rich.console import RenderableType

# how many times the labels of the kind that binds are thought of
_MORE = 4
_LONGEST_ORDER = 500


def lines_of_kinds(certificate: KindCertificate) -> list[tuple[str, str]]:
    """Return what a certificate of kinds says, as pairs of a heading and a text; a heading may be empty."""
    promises = certificate.promises
    lines = [("promised" if not place else "", str(one)) for place, one in enumerate(promises)]
    if not promises:
        lines = [("promised", "nothing: too few points are labelled")]
    elif len(promises) > 1:
        lines += [("", f"all of them together with confidence {rounded_down(certificate.confidence)}")]
    lines += [("rule", rule_words(certificate.rule))]
    lines += [("regime", f"{certificate.regime.value}: {certificate.regime.explanation}")]
    for label, parts in (("normal", certificate.normal), ("anomalous", certificate.anomalous)):
        for place, part in enumerate(parts):
            name = "" if part.name is None and len(parts) == 1 else f"{named(part)}: "
            lines += [("" if place else label, f"{name}{part.words}")]
    found = list(binding_words(certificate))
    lines += [("" if place else "binds", text) for place, text in enumerate(found)]
    if certificate.binding.overlap.single:
        lines += [("overlap", certificate.binding.overlap.summary(certificate.binding.claim))]
    texts = [*map(str, certificate.binding.assumptions), mixture_words(certificate)]
    lines += [("" if place else "assumes", text) for place, text in enumerate(texts)]
    return [*lines, *made_lines(certificate.binding)]


def mixture_words(certificate: KindCertificate) -> str:
    """Return what is assumed of the mix of kinds."""
    text = "all this for each kind by itself: their mix may change"
    if any(
        part.name is None and len(parts) > 1
        for parts in (certificate.normal, certificate.anomalous)
        for part in parts
    ):
        text += ", but not for the ceiling of all kinds together"
    return text


def lines_of_classes(certificate: ClassCertificate) -> list[tuple[str, str]]:
    """Return what a certificate of classes says, as pairs of a heading and a text; a heading may be empty.

    >>> from pac_wrap import calibrate_classes
    >>> certificate = calibrate_classes([[1, 0], [0, 1]] * 100, [0, 1] * 100)
    >>> lines_of_classes(certificate)[0]
    ('promised', "'0' is ruled out in at most 0.05 of its points (confidence 0.95)")
    """
    error, order = "is ruled out in", ""
    if certificate.severities is not None:
        error = "is taken for a milder class in"
        names = (quoted(certificate.classes[place]) for place in certificate.severities)
        order = visible(" before ".join(names), _LONGEST_ORDER)
    found = kept(certificate.parts)
    texts = [
        f"{named(part)} {error} at most {rounded_up(part.ceiling or 1.0)} of its points"
        f" (confidence {rounded_down(confidence_left(part.delta))})"
        for part in found
    ]
    if len(found) > 1:
        texts.append(f"all of them together with confidence {rounded_down(certificate.confidence)}")
    lines = [
        ("" if place else "promised", text) for place, text in enumerate(texts or ["nothing: too few labels"])
    ]
    if order:
        lines += [("order", f"{order}; a row is given the first class whose threshold its score reaches")]
    else:
        lines += [("rule", "a class is left where its score reaches its threshold; one left decides")]
    evidence = (f"{named(part)}: {part.words}" for part in certificate.parts)
    lines += [("" if place else "classes", text) for place, text in enumerate(evidence)]
    return lines + [("" if place else "assumes", str(text)) for place, text in enumerate(OF_DRAWS)]


def binding_words(certificate: KindCertificate) -> Iterator[str]:
    """Yield which kind sets each threshold, and what more labels of it would buy.

    >>> from pac_wrap import Guarantee, calibrate
    >>> asked = Guarantee(max_fpr=None, max_fnr={"stolen": 0.02, "takeover": 0.1})
    >>> kinds = calibrate(range(1000), {"stolen": range(950, 1950), "takeover": range(900, 1900)}, asked)
    >>> for sentence in binding_words(kinds):
    ...     print(sentence)
    anomalous 'stolen' sets clear_below = 962.0; without it, it would be 984.0, of 'takeover'
    its 1,000 labels allow 12 errors, 1.2 % where the ceiling is 2 %; 4,000 would allow 1.625 %
    """
    for label, name, parts, binding, never in (
        ("normal", "alarm_from", certificate.normal, certificate.binds[0], inf),
        ("anomalous", "clear_below", certificate.anomalous, certificate.binds[1], -inf),
    ):
        if binding is None or len(parts) == 1 or binding.threshold is None:
            continue
        text = f"{label} {named(binding)} sets {name} = {binding.threshold!r}"
        others = [part for part in parts if part is not binding and part.threshold is not None]
        if others:
            following = farthest(iter(others), never)
            text = f"{text}; without it, it would be {following.threshold!r}, of {named(following)}"
        yield text
        yield _bought(binding)


def _bought(part: Part) -> str:
    budget = part.budget
    assert budget is not None  # it binds
    if budget.errors is None:
        return f"it has {part.n:,} labels, and {part.n + budget.missing:,} are needed for any threshold"
    more = Budget.of(_MORE * part.n, budget.rate, budget.delta)
    shares = (rounded_down((one.errors or 0) / one.n, 100, 4) for one in (budget, more))
    now, then = shares
    return (
        f"its {part.n:,} labels allow {budget.errors:,} errors, {now} % where the ceiling is"
        f" {rounded_up(budget.rate, 100)} %; {more.n:,} would allow {then} %"
    )


def named(part: Part, longest: int = LONGEST) -> str:
    """Return the name of a kind or a class within quotes; without one it is all kinds."""
    return "all kinds" if part.name is None else quoted(part.name, longest)


def show_measured(measured: Iterable[Measured]) -> "RenderableType":
    """Return the measured rates of kinds or classes with their intervals next to the promised ceilings."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    title = "measured, with exact 95 % intervals"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", overflow="fold")
    for name in ("max", "measured", "errors", "abstained", "verdict"):
        table.add_column(name, justify="left" if name == "verdict" else "right", no_wrap=name != "verdict")
    for one in measured:
        ceiling = "none" if one.ceiling is None else rounded_up(one.ceiling)
        left = f"{one.abstained.count:,}"
        errors = f"{one.rate.count:,} of {one.rate.n:,}"
        table.add_row(Text(visible(one.name)), ceiling, str(one.rate), errors, left, one.finding)
    return table
