"""Rates measured on held-out points, with exact intervals, next to the ceilings that were promised."""

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pac_wrap.method.certificate import Certificate
from pac_wrap.method.metrics import Metrics, Rate, is_exceeded
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import (
    Style,
    decade_below,
    label_axes,
    log_ticks,
    percent,
    prepare,
    room,
    wrap,
)
from pac_wrap.report.numbers import ceiling as promise


def plot_held_out(
    certificate: Certificate, metrics: Metrics, *, dark: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw FPR, FNR and the share abstained per class, each with its exact interval, next to the ceilings.

    The axis is logarithmic: a rate of 0 is drawn as a mark at the left edge. A rate that is
    significantly above its ceiling is called out.

    Parameters
    ----------
    certificate : Certificate
        The certificate whose ceilings are shown.
    metrics : Metrics
        What was measured, by `evaluate`.
    dark : bool
        Whether the figure is for a dark page.
    ax : Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from pac_wrap import calibrate, evaluate
    >>> certificate = calibrate(range(100), range(50, 150))
    >>> metrics = evaluate(certificate.verdicts([0, 60, 120]), [0, 0, 1])
    >>> ax = plot_held_out(certificate, metrics)
    >>> [text.get_text() for text in ax.texts][0]
    'FPR 0 % [0, 84.2], n = 2; ceiling 5 %'
    """
    ax, style = prepare(ax, dark)
    certified = certificate.certified
    ceilings = (None, None) if certified is None else (certified.max_fpr, certified.max_fnr)
    rows: list[tuple[str, str, Rate, float | None]] = [
        ("FPR", "normal", metrics.fpr, ceilings[0]),
        ("FNR", "anomalous", metrics.fnr, ceilings[1]),
        ("abstained, normal", "normal", metrics.abstained_normal, None),
        ("abstained, anomalous", "anomalous", metrics.abstained_anomalous, None),
    ]
    drawn = [value for *_, rate, top in rows for value in (rate.value, rate.high, top or 0.0) if value > 0.0]
    left = decade_below(100.0 * min(drawn))
    ax.set_xscale("log")
    ax.set_xlim(left, 130.0)
    for place, (name, kind, rate, ceiling) in enumerate(rows):
        _heading(ax, style, place, _sentence(name, rate, ceiling, promised=place < 2))
        if rate.n:
            _interval(ax, style, place, name, kind, rate, left)
        if ceiling is not None:
            ax.plot(
                [100 * ceiling] * 2,
                [place + 0.02, place - 0.22],
                color=style.text,
                lw=2.5,
                label=f"_{name} ceiling",
            )
    ax.set_ylim(len(rows) - 0.65, -0.85)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    log_ticks(ax.xaxis)
    label_axes(ax, style, "share of the held-out class (%), log scale", "")
    Strip(ax, style).legend(
        [
            Line2D([], [], color=style.muted, marker="o", label="measured, exact interval"),
            Line2D([], [], color=style.text, marker="|", ls="", ms=10, mew=2.5, label="ceiling promised"),
        ],
        columns=2,
    )
    return ax


def _sentence(name: str, rate: Rate, ceiling: float | None, *, promised: bool) -> str:
    text = f"{name} {percent(rate.value)} % [{percent(rate.low)}, {percent(rate.high)}], n = {rate.n:,}"
    if not rate.n:
        text = f"{name}: no points"
    if not promised:
        return text
    if ceiling is None:
        return f"{text}; nothing promised"
    return f"{text}; {'above ' if is_exceeded(ceiling, rate) else ''}ceiling {promise(ceiling)}"


def _heading(ax: Axes, style: Style, place: int, text: str) -> None:
    ax.annotate(
        "\n".join(wrap(text, room(ax), style.size)),
        (0.0, place - 0.3),
        xycoords=ax.get_yaxis_transform(),
        xytext=(2.0, 1.0),
        textcoords="offset points",
        va="bottom",
        color=style.text,
        fontsize=style.size,
    )


def _interval(ax: Axes, style: Style, place: int, name: str, kind: str, rate: Rate, left: float) -> None:
    colour = style.of_class(kind)
    y = place - 0.1
    low = max(100 * rate.low, left)
    ax.plot([low, 100 * rate.high], [y, y], color=colour, linewidth=2.0, label=f"_{name} interval")
    for end in (rate.low, rate.high):
        if 100 * end > left:
            ax.plot([100 * end], [y], "|", color=colour, markersize=7, markeredgewidth=1.5)
    filled = name in ("FPR", "FNR")
    marker = ("o" if kind == "normal" else "s") if rate.count else "<"
    ax.plot(
        [max(100 * rate.value, left)],
        [y],
        marker,
        markersize=7,
        markeredgecolor=colour,
        markerfacecolor=colour if filled else "none",
        clip_on=False,
        label=f"_{name}",
    )
