"""What a promise costs: the labels a rate needs, and how much is abstained as ceilings and deltas change."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike, NDArray

from pac_wrap.base.arguments import Scores, as_scores, check_count
from pac_wrap.base.floats import rounded_up
from pac_wrap.errors import InputError
from pac_wrap.method.certificates.certificate import Certificate
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.strategies.abstain import Abstain
from pac_wrap.method.thresholds import Regime, find_regime
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import Style, label_axes, log_ticks, prepare, room, text_width
from pac_wrap.report.words.numbers import ceiling, confidence
from pac_wrap.tails.bounds import achievable_rate

_MOST = 10_000
_POINTS = 25
_DASHES = ("-", (0, (6, 2)), (0, (6, 2, 1, 2)), (0, (3, 2)), (0, (1, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_COLOURS = colormaps["cividis"]
_TIE = "\N{NO-BREAK SPACE}"
_DIM = 0.47  # below it white is read better than black
_HATCHES = {Regime.SEPARATED: None, Regime.OVERLAPPING: "///", Regime.VACUOUS: "xxx"}


def plot_plan(
    errors: Sequence[int] = (0, 1, 2, 5, 10),
    *,
    delta: float = 0.05,
    certificate: Certificate | None = None,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw how many labels of one class certify a rate, for a few numbers of errors tolerated among them.

    The rate is `achievable_rate`.

    >>> ax = plot_plan([0, 10])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['0', '10']
    """
    ax, style = prepare(ax, dark)
    handles: list[Artist] = []
    most = _MOST if certificate is None else max(_MOST, certificate.normal.n, certificate.anomalous.n)
    for i, tolerated in enumerate(errors):
        count = check_count("errors", tolerated)
        labels = np.unique(
            np.geomspace(max(5, count + 1), max(most, 10 * count), _POINTS).round().astype(int)
        )
        rates = [100 * achievable_rate(int(n), delta, count) for n in labels]
        handles += ax.plot(
            rates,
            labels,
            color=style.text,
            linestyle=_DASHES[i % len(_DASHES)],
            marker=_MARKERS[i % len(_MARKERS)],
            markevery=(1 + i, 6),
            markersize=4.5,
            markerfacecolor="none",
            linewidth=1.3,
            label=f"{count:,}",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(right=110.0)
    ax.grid(color=style.faint, linewidth=0.6)
    log_ticks(ax.xaxis)
    log_ticks(ax.yaxis)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    label_axes(
        ax,
        style,
        f"certified rate (%), at confidence {confidence(delta)}",
        "labels of the class, n",
    )
    strip = Strip(ax, style)
    if certificate is not None:
        _mark(ax, style, strip, certificate)
    strip.legend(handles, columns=len(handles))
    strip.note("errors tolerated among the n labels:")
    return ax


def _mark(ax: Axes, style: Style, strip: Strip, certificate: Certificate) -> None:
    """Mark where the classes of a certificate stand, and say so above."""
    kept = certificate.certified or certificate.guarantee
    for name, n, rate, marker, sign in (
        ("anomalous", certificate.anomalous.n, kept.max_fnr, "X", "\N{HEAVY MULTIPLICATION X}"),
        ("normal", certificate.normal.n, kept.max_fpr, "*", "\N{BLACK STAR}"),
    ):
        if rate is not None and n:
            ax.plot(
                [100 * rate],
                [n],
                marker,
                color=style.of_class(name),
                markersize=9,
                label=f"_{name}",
                zorder=4,
            )
            strip.note(f"{sign} {name}: n = {n:,}, ceiling {ceiling(rate)}")


def plot_ambiguity(
    normal: ArrayLike,
    anomalous: ArrayLike,
    rates: Sequence[float],
    deltas: Sequence[float],
    *,
    dark: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share that is abstained, among these scores, for each ceiling and delta of both sides.

    The two classes count equally, however many points each has. A letter (a hatch, where there is no room for
    the numbers) says how the thresholds lie. With overlapping classes the share falls as the ceiling
    grows, and separated ones leave nothing undecided.

    >>> normal, anomalous = np.linspace(0, 5, 200), np.linspace(3, 9, 200)
    >>> ax = plot_ambiguity(normal, anomalous, [0.01, 0.1, 0.3], [0.05])
    >>> [text.get_text() for text in ax.texts[:3]]
    ['100\\nV', '25\\nO', '0.0\\nS']
    """
    normal, anomalous = as_scores(normal, "normal"), as_scores(anomalous, "anomalous")
    if not len(rates) or not len(deltas) or not normal.size + anomalous.size:
        raise InputError("rates, deltas and scores must not be empty; pass at least one of each")
    ax, style = prepare(ax, dark)
    cells = [[_cell(normal, anomalous, rate, delta) for rate in rates] for delta in deltas]
    shares = 100.0 * np.array([[share for share, _ in row] for row in cells])
    regimes = [[regime for _, regime in row] for row in cells]
    scale = Normalize(0.0, max(float(shares.max()), 1.0))
    mesh = ax.pcolormesh(
        np.arange(len(rates) + 1) - 0.5,
        np.arange(len(deltas) + 1) - 0.5,
        shares,
        cmap=_COLOURS,
        norm=scale,
    )
    fit = _numbers_fit(ax, style, len(rates), len(deltas))
    mesh.set(edgecolor=style.muted if fit else "face", linewidth=0.5)
    seen = [regime for regime in Regime if any(regime in row for row in regimes)]
    if fit:
        key = ", ".join(f"{regime.value[0].upper()}{_TIE}{regime.value}" for regime in seen)
        for place, share in np.ndenumerate(shares):
            letter = regimes[place[0]][place[1]].value[0].upper()
            _write(ax, style, place[1], place[0], f"{_short(share)}\n{letter}", dim=scale(share) < _DIM)
    else:
        key = ", ".join(f"{_HATCHES[regime] or 'plain'}{_TIE}{regime.value}" for regime in seen)
        for regime in seen:
            _hatch(ax, regimes, regime, scale(shares))
        bar = ax.figure.colorbar(mesh, ax=ax)
        bar.ax.tick_params(color=style.muted, labelcolor=style.text, labelsize=style.size)
    _ticks(ax, style, rates, deltas)
    label_axes(ax, style, "max FPR = max FNR (%)", "delta of each side (%)")
    strip = Strip(ax, style)
    strip.note(key)
    strip.note(
        f"abstained (%), classes weighted equally;"
        f" n = {normal.size:,}{_TIE}normal, {anomalous.size:,}{_TIE}anomalous"
    )
    return ax


def _cell(normal: Scores, anomalous: Scores, rate: float, delta: float) -> tuple[float, Regime]:
    found = Abstain().decide(Guarantee(rate, rate, delta, delta), normal, anomalous)
    shares = [found.rule.ambiguity(scores) for scores in (normal, anomalous) if scores.size]
    return sum(shares) / len(shares), find_regime(found.thresholds, found.fpr, found.fnr)


def _short(share: float) -> str:
    return f"{share:.1f}" if share < 9.95 else f"{share:.0f}"


def _numbers_fit(ax: Axes, style: Style, columns: int, rows: int) -> bool:
    wide = room(ax) / columns > text_width("100", style.size) + 4.0
    return wide and ax.bbox.height * 72.0 / ax.figure.dpi * 0.75 / rows > 2.6 * style.size


def _write(ax: Axes, style: Style, x: float, y: float, text: str, *, dim: bool) -> None:
    ax.text(x, y, text, ha="center", va="center", color="#FFFFFF" if dim else "#000000", fontsize=style.size)


def _hatch(ax: Axes, regimes: list[list[Regime]], regime: Regime, heights: NDArray[np.float64]) -> None:
    here = np.array([[found is regime for found in row] for row in regimes])
    squares = [
        [(x - 0.5, y - 0.5), (x + 0.5, y - 0.5), (x + 0.5, y + 0.5), (x - 0.5, y + 0.5)]
        for y, x in np.argwhere(here)
    ]
    ax.add_collection(
        PolyCollection(
            squares,
            facecolor="none",
            edgecolor="#FFFFFF" if heights[here].mean() < _DIM else "#000000",
            linewidth=0,
            hatch=_HATCHES[regime],
            label=f"_{regime.value}",
        )
    )


def _ticks(ax: Axes, style: Style, rates: Sequence[float], deltas: Sequence[float]) -> None:
    """Label as many columns and rows as there is room for, evenly."""
    widest = max(text_width(rounded_up(rate, 100), style.size) for rate in rates) + style.size
    every = int(np.ceil(len(rates) * widest / room(ax)))
    ax.set_xticks(range(0, len(rates), every), [rounded_up(rate, 100) for rate in rates[::every]])
    every = int(np.ceil(len(deltas) * 2.0 * style.size / (ax.bbox.height * 72.0 / ax.figure.dpi)))
    ax.set_yticks(range(0, len(deltas), every), [rounded_up(delta, 100) for delta in deltas[::every]])
    ax.tick_params(length=0)
