"""Results for the terminal: rich renderables, nothing printed here."""

import re
from collections.abc import Iterator
from html import unescape
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from pac_wrap.base.floats import rounded_down, rounded_up
from pac_wrap.base.text import visible
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.comparison import Contender, confidence_of
from pac_wrap.method.curves.curve import Curve
from pac_wrap.method.metrics import Metrics
from pac_wrap.method.planning.plan import TOLERATED, plan
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.robust.noise import NEW_LABELS
from pac_wrap.report.subject import error_rates
from pac_wrap.tails.bounds import achievable_rate

_PROVES_NOTHING = (
    "This proves nothing: these are the very scores that the certificate was made from. Measure on labelled"
    " points that were not used to calibrate."
)
BLOCKS = " ▁▂▃▄▅▆▇█"
_FULL = len(BLOCKS) - 1
# a cell of rich's drawings, and how far it reaches below the line that its letters stand on
_CELL, _DESCENT = (12.2, 24.4), 4.4
_TEXT = re.compile(
    r'<text (?P<style>class="[^"]*") x="(?P<left>[^"]*)" y="(?P<base>[^"]*)"[^>]*>(?P<row>[^<]*)</text>'
)


def show_plan(guarantee: Guarantee) -> RenderableType:
    """Return the labels of each class that a promise needs, for a few numbers of tolerated errors."""
    table = Table(title="labels needed", title_justify="left")
    table.add_column("errors tolerated\namong them", justify="right")
    needed = plan(guarantee).needed
    for promise in guarantee.promises:
        table.add_column(
            f"{promise.of.label} labels for\n{promise.name} <= {rounded_up(promise.ceiling)},"
            f" delta = {rounded_up(promise.delta)}"
            + ("" if promise.room is None else f",\nwith room for {promise.room}"),
            justify="right",
        )
    for place, errors in enumerate(TOLERATED):
        table.add_row(str(errors), *(f"{one.labels[place]:,}" for one in needed))
    return table


def show_promises(labels: int, delta: float) -> RenderableType:
    """Return the smallest rate that a number of labels of one class can certify."""
    table = Table(title="what can be promised", title_justify="left")
    table.add_column(f"errors tolerated\namong {labels:,} labels", justify="right")
    table.add_column(f"smallest rate\nat delta = {rounded_up(delta)}", justify="right")
    for errors in (count for count in TOLERATED if count <= labels):
        table.add_row(str(errors), rounded_up(achievable_rate(labels, delta, errors)))
    return table


def show_evaluation(certificate: Certificate, metrics: Metrics, calibrated: bool = False) -> RenderableType:
    """Return the measured rates with their intervals next to the promised ceilings.

    Where the points are those that calibrated, it is said that this proves nothing.
    """
    title = "measured, with exact 95 % intervals"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("", "max", "measured", "errors", "verdict"):
        table.add_column(
            name, justify="left" if name in ("", "verdict") else "right", no_wrap=name != "verdict"
        )
    for side in error_rates(certificate, metrics):
        name, rate, promised = side.name, side.measured, side.certified if side.kept else None
        assert rate is not None
        kept = "no promise"
        if promised is not None:
            within = "within" if rate.n and rate.value <= promised else "above, not significantly"
            within = within if rate.n else "no points"
            kept = "exceeded" if side.exceeded else within
        table.add_row(name, ceiling_text(promised), str(rate), f"{rate.count:,} of {rate.n:,}", kept)
    for name, rate in (
        ("ERR", metrics.err),
        ("abstained", metrics.ambiguity),
        ("  normal", metrics.abstained_normal),
        ("  anomalous", metrics.abstained_anomalous),
    ):
        table.add_row(name, "", str(rate), f"{rate.count:,} of {rate.n:,}", "")
    notes = [_PROVES_NOTHING] * calibrated
    if certificate.guarantee.label_noise is not None:
        notes.append(f"exceeded: {NEW_LABELS}")
    return Group(table, *notes) if notes else table


def show_comparison(contenders: list[Contender], guarantee: Guarantee) -> RenderableType:
    """Return what each detector certifies at every threshold, the best in each respect marked with a star."""
    names, columns = [], []
    if len(guarantee.promises) == 2:
        names += ["abstained", "both rates\nat most"]
        columns += [[one.abstained for one in contenders], [one.common_ceiling for one in contenders]]
    if guarantee.max_fpr is not None:
        names.append(f"FNR at\nFPR <= {rounded_up(guarantee.max_fpr)}")
        columns.append([one.fnr_at(guarantee.max_fpr) for one in contenders])
    if guarantee.max_fnr is not None:
        names.append(f"FPR at\nFNR <= {rounded_up(guarantee.max_fnr)}")
        columns.append([one.fpr_at(guarantee.max_fnr) for one in contenders])
    table = Table(box=SIMPLE_HEAD)
    # folded where the terminal is narrow: a bound that is cut would promise more than was certified
    table.add_column("score", overflow="fold", min_width=4)
    for name in ("AUC", *names):
        table.add_column(name, justify="right", overflow="fold")
    best = [min(column) for column in columns]
    for one, row in zip(contenders, zip(*columns, strict=True), strict=True):
        marked = (
            f"{rounded_up(value)}{' *' if value == least < 1.0 else '  '}"
            for value, least in zip(row, best, strict=True)
        )
        table.add_row(Text(visible(one.name)), "" if one.auc is None else f"{one.auc:.4f}", *marked)
    curve = contenders[0].curve
    joint = rounded_down(confidence_of(contenders))
    return Group(
        f"asked: {guarantee}, shared by {len(contenders):,}"
        if len(contenders) > 1
        else f"asked: {guarantee}",
        table,
        f"* the best; all bounds, at every threshold of each, hold at once with {joint}",
        *_too_few(curve, guarantee),
    )


def _too_few(curve: Curve, guarantee: Guarantee) -> Iterator[str]:
    """Yield which ceilings so few labels keep nowhere; that depends on no score."""
    sides = (("FPR", guarantee.max_fpr, curve.normal), ("FNR", guarantee.max_fnr, curve.anomalous))
    for name, rate, side in sides:
        least = side.bounds[0] if side.bounds else 1.0
        if rate is not None and least > rate:
            kind = "normal" if name == "FPR" else "anomalous"
            yield (
                f"too few labels for {name} <= {rounded_up(rate)}: {side.n:,} {kind} ones bound it by"
                f" {rounded_up(least)} at best"
            )


def screen_svg(shown: RenderableType, title: str, width: int = 84) -> str:
    """Return what the terminal shows as an SVG drawing that loads nothing from the network."""
    console = Console(
        record=True, width=width, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(shown, Text())  # the last line would lose its descenders
    svg = console.export_svg(title=title, theme=DIMMED_MONOKAI)
    return _TEXT.sub(_bars, re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))


def _bars(text: re.Match[str]) -> str:
    """Return a row of blocks as a drawing: in most fonts the letters leave gaps between the rows."""
    row = unescape(text["row"]).replace("\xa0", " ")
    if not row.strip() or set(row) - set(BLOCKS):
        return text[0]
    left, bottom = float(text["left"]), float(text["base"]) + _DESCENT
    heights = [BLOCKS.index(block) * _CELL[1] / _FULL for block in row]
    tops = " ".join(f"V{bottom - height:.2f} h{_CELL[0]}" for height in heights)
    outline = f"M{left} {bottom:.2f} {tops} V{bottom:.2f} Z"
    return f'<path {text["style"]} shape-rendering="crispEdges" d="{outline}"/>'


def ceilings_of(certificate: Certificate) -> tuple[float | None, float | None]:
    """Return the ceilings that are promised, of the FPR and of the FNR."""
    promised = certificate.certified
    return (None, None) if promised is None else (promised.max_fpr, promised.max_fnr)


def ceiling_text(value: float | None) -> str:
    """Return a ceiling, rounded up, or that there is none."""
    return "none" if value is None else rounded_up(value)
