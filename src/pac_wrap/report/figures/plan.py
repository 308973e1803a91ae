"""Label planner: how many labels of a class a rate needs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from pac_wrap.base.arguments import check_count
from pac_wrap.method.bounds import achievable_rate
from pac_wrap.method.certificate import Certificate
from pac_wrap.report.figures.strip import Strip
from pac_wrap.report.figures.styling import Style, label_axes, log_ticks, prepare
from pac_wrap.report.numbers import ceiling, confidence

_MOST = 10_000
_POINTS = 25
_DASHES = ("-", (0, (6, 2)), (0, (6, 2, 1, 2)), (0, (3, 2)), (0, (1, 1.5)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


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

    Parameters
    ----------
    errors : sequence of int
        Numbers of errors tolerated among the labels, a line for each.
    delta : float
        The chance that the rate does not hold.
    certificate : Certificate, optional
        One whose two classes are marked, at their n and the ceiling promised.
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
