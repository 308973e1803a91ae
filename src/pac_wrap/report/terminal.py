"""Results for the terminal: rich renderables, nothing printed here."""

import re
from html import unescape
from io import StringIO
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from pac_wrap.binomial import achievable_rate, min_samples
from pac_wrap.certificate import Certificate
from pac_wrap.comparison import Contender
from pac_wrap.foreign import visible
from pac_wrap.guarantee import Guarantee, rounded_up
from pac_wrap.inputs import Scores
from pac_wrap.metrics import Metrics, exceeded
from pac_wrap.report.wording import ceiling, confidence
from pac_wrap.thresholds import Thresholds

if TYPE_CHECKING:
    from pac_wrap.demo import Demo  # it needs scikit-learn, which only the demo itself should load

_TOLERATED = (0, 1, 2, 5, 10)
_BLOCKS = " ▁▂▃▄▅▆▇█"
_FULL = len(_BLOCKS) - 1
_BINS = 64
# a cell of rich's pictures, and how far it reaches below the line that its letters stand on
_CELL, _DESCENT = (12.2, 24.4), 4.4
_TEXT = re.compile(
    r'<text (?P<style>class="[^"]*") x="(?P<left>[^"]*)" y="(?P<base>[^"]*)"[^>]*>(?P<row>[^<]*)</text>'
)
# Okabe and Ito's blue and vermilion stay apart for every kind of colour vision
_BLUE, _RED = "#0072B2", "#D55E00"


def show_demo(demo: "Demo") -> RenderableType:
    """Return the demo on one screen: the promise, the picture, and what fresh points say."""
    return Group(
        Panel(_promise(demo.abstaining.guarantee), title="the promise", border_style=_BLUE),
        Text(
            f"Isolation forest, trained on {demo.trained_on:,} normal points; two Gaussian clusters in six"
            f" dimensions, {demo.margin:g} standard deviations apart.\n"
            f"Calibrated on {demo.abstaining.normal.n:,} normal and {demo.abstaining.anomalous.n:,} anomalous"
            " points the forest has not seen."
        ),
        Text(),
        _histogram(demo.normal, demo.anomalous, demo.abstaining.rule),
        Text(),
        _checked(demo),  # which ends in an empty line
        Text(f"{demo.abstaining.regime.value}: {demo.abstaining.regime.explanation}"),
        *(Text(f"  {sentence}") for sentence in demo.abstaining.diagnosis),
    )


def show_plan(guarantee: Guarantee) -> RenderableType:
    """Return the labels of each class that a promise needs, for a few numbers of tolerated errors."""
    table = Table(title="labels needed", title_justify="left")
    table.add_column("errors tolerated\namong them", justify="right")
    promised = []
    for name, kind, rate, delta in (
        ("FPR", "normal", guarantee.max_fpr, guarantee.delta_fpr),
        ("FNR", "anomalous", guarantee.max_fnr, guarantee.delta_fnr),
    ):
        if rate is not None:
            promised.append((rate, delta))
            table.add_column(
                f"{kind} labels for\n{name} <= {rounded_up(rate)}, delta = {rounded_up(delta)}",
                justify="right",
            )
    for errors in _TOLERATED:
        needed = [min_samples(rate, delta, errors) for rate, delta in promised]
        table.add_row(str(errors), *(f"{count:,}" for count in needed))
    return table


def show_promises(labels: int, delta: float) -> RenderableType:
    """Return the smallest rate that a number of labels of one class can certify."""
    table = Table(title="what can be promised", title_justify="left")
    table.add_column(f"errors tolerated\namong {labels:,} labels", justify="right")
    table.add_column(f"smallest rate\nat delta = {rounded_up(delta)}", justify="right")
    for errors in (count for count in _TOLERATED if count <= labels):
        table.add_row(str(errors), rounded_up(achievable_rate(labels, delta, errors)))
    return table


def show_evaluation(certificate: Certificate, metrics: Metrics) -> RenderableType:
    """Return the measured rates with their intervals next to the promised ceilings."""
    title = "measured, with exact 95 % intervals"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("", "max", "measured", "errors", "verdict"):
        table.add_column(
            name, justify="left" if name in ("", "verdict") else "right", no_wrap=name != "verdict"
        )
    over = exceeded(metrics, certificate.certified)
    ceilings = _ceilings(certificate)
    for name, rate, promised in (("FPR", metrics.fpr, ceilings[0]), ("FNR", metrics.fnr, ceilings[1])):
        kept = "nothing promised"
        if promised is not None:
            within = "within" if rate.n and rate.value <= promised else "above, not significantly"
            within = within if rate.n else "no points"
            kept = "exceeded" if name in over else within
        table.add_row(name, _ceiling(promised), str(rate), f"{rate.count:,} of {rate.n:,}", kept)
    for name, rate in (
        ("ERR", metrics.err),
        ("abstained", metrics.ambiguity),
        ("  normal", metrics.abstained_normal),
        ("  anomalous", metrics.abstained_anomalous),
    ):
        table.add_row(name, "", str(rate), f"{rate.count:,} of {rate.n:,}", "")
    return table


def show_comparison(contenders: list[Contender]) -> RenderableType:
    """Return the detectors side by side, the best in each respect marked with a star."""
    shared = contenders[0].abstaining.guarantee
    table = Table(box=SIMPLE_HEAD)
    for name in ("score", "AUC", "abstained", "regime", "one threshold keeps"):
        table.add_column(name, justify="left" if name in ("score", "regime") else "right")
    least = min(one.abstained for one in contenders)
    lowest = min(one.common_ceiling for one in contenders)
    for one in contenders:
        kept = "nothing" if one.single.certified is None else rounded_up(one.common_ceiling)
        table.add_row(
            Text(visible(one.name)),
            "" if one.auc is None else f"{one.auc:.4f}",
            f"{one.abstained:.4f}{' *' if one.abstained == least else '  '}",
            one.abstaining.regime.value,
            f"{kept}{' *' if one.common_ceiling == lowest and one.single.certified else '  '}",
        )
    return Group(
        f"each with {shared}", table, "* the best; one threshold: the least ceiling that both rates keep"
    )


def picture(shown: RenderableType, title: str, width: int = 84) -> str:
    """Return what the terminal shows as an SVG picture that loads nothing from the network."""
    console = Console(
        record=True, width=width, file=StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(shown, Text())  # the last line would lose its descenders
    svg = console.export_svg(title=title, theme=DIMMED_MONOKAI)
    return _TEXT.sub(_bars, re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL))


def _bars(text: re.Match[str]) -> str:
    """Return a row of blocks as a drawing: in most fonts the letters leave gaps between the rows."""
    row = unescape(text["row"]).replace("\xa0", " ")
    if not row.strip() or set(row) - set(_BLOCKS):
        return text[0]
    left, bottom = float(text["left"]), float(text["base"]) + _DESCENT
    heights = [_BLOCKS.index(block) * _CELL[1] / _FULL for block in row]
    tops = " ".join(f"V{bottom - height:.2f} h{_CELL[0]}" for height in heights)
    outline = f"M{left} {bottom:.2f} {tops} V{bottom:.2f} Z"
    return f'<path {text["style"]} shape-rendering="crispEdges" d="{outline}"/>'


def _promise(guarantee: Guarantee) -> Text:
    text = Text("Rates on future points drawn like the calibration points, with any detector:\n")
    deltas = []
    for rate, delta, mistake in (
        (guarantee.max_fpr, guarantee.delta_fpr, "normal points are called anomalies"),
        (guarantee.max_fnr, guarantee.delta_fnr, "anomalies are called normal"),
    ):
        if rate is not None:
            deltas.append(delta)
            text.append(f"at most {ceiling(rate)} of {mistake} (confidence {confidence(delta)}),\n")
    return text.append(f"all of it at once with confidence {confidence(*deltas)}.")


def _histogram(normal: Scores, anomalous: Scores, rule: Thresholds) -> RenderableType:
    both = np.r_[normal, anomalous]
    edges = np.linspace(both.min(), both.max(), _BINS + 1)
    lines = Text()
    for name, scores, colour in (("normal", normal, _BLUE), ("anomalous", anomalous, _RED)):
        counts, _ = np.histogram(scores, edges)
        heights = np.ceil(counts / counts.max() * 2 * _FULL).astype(int)
        for label, floor in (("", _FULL), (name, 0)):
            cells = np.clip(heights - floor, 0, _FULL)
            lines.append(f"{label:>10} ").append(
                "".join(_BLOCKS[cell] for cell in cells) + "\n", style=colour
            )
    low, high = rule.ambiguity_region or (inf, inf)
    middles = (edges[:-1] + edges[1:]) / 2
    marks = np.where(middles < low, "0", np.where(middles < high, "?", "1"))
    lines.append(f"{'verdict':>10} ").append("".join(marks), style="bold")
    lines.append(f"\n{'':>10} score {edges[0]:.3g} to {edges[-1]:.3g}; 0 normal, ? abstains, 1 anomaly")
    return lines


def _checked(demo: "Demo") -> Table:
    fresh = demo.normal.size + demo.anomalous.size
    title = f"measured on {fresh:,} fresh points, with exact 95 % intervals"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in ("", "max", "may abstain", "max", "one threshold"):
        table.add_column(name, justify="left" if name == "" else "right")
    columns = [
        _measured(demo.abstaining, demo.abstaining_metrics),
        _measured(demo.single, demo.single_metrics),
    ]
    for name, *pairs in zip(("FPR", "FNR", "abstained", "alarm from", "clear below"), *columns, strict=True):
        table.add_row(name, *(cell for pair in pairs for cell in pair))
    return table


def _measured(certificate: Certificate, metrics: Metrics) -> list[tuple[str, str]]:
    """Return ceiling and measured rate of FPR, FNR and abstention, and the two thresholds."""
    rule, ceilings = certificate.rule, _ceilings(certificate)
    return [
        (_ceiling(ceilings[0]), str(metrics.fpr)),
        (_ceiling(ceilings[1]), str(metrics.fnr)),
        ("", str(metrics.ambiguity)),
        ("", _threshold(rule.alarm_from)),
        ("", _threshold(rule.clear_below)),
    ]


def _ceilings(certificate: Certificate) -> tuple[float | None, float | None]:
    promised = certificate.certified
    return (None, None) if promised is None else (promised.max_fpr, promised.max_fnr)


def _ceiling(value: float | None) -> str:
    return "none" if value is None else rounded_up(value)


def _threshold(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
