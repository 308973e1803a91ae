"""A study's charts as figures with their titles: intervals, lines, heat maps, scores and panels."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from pac_wrap.report.figures import (
    PlainTicks,
    Strip,
    Style,
    label_axes,
    new_axes,
    plain_ticks,
    plot_scores,
    prepare,
    room,
    style,
    text_width,
    wrap,
)
from pac_wrap_paper.studies.charts import (
    Bar,
    Chart,
    ChartLine,
    HeatMap,
    IntervalChart,
    LineChart,
    Marks,
    Panel,
    PanelChart,
    ScoreChart,
)

# inches
_USUAL, _WIDE = 6.5, 8.5
_AXES_SHARE: Final = 0.775  # of a figure's width, before the first layout
_PERCENT: Final = re.compile(r"\(%|\bin (?:%|percent\b)")
# heights and widths are in units of the text size, unless said otherwise
_TITLE: Final = 1.1
# a heat map: one hue from light to dark, so that it reads in grey
COLOURS: Final = LinearSegmentedColormap.from_list("blue", ["#EAF3FA", "#7FB8DA", "#0072B2", "#003A5C"])
_AROUND_CELLS: Final = 6.0  # the ticks and the labels
_LINE_IN_CELL: Final = 1.25
_CELL_MARGIN: Final = 4.0  # points that a column is wider than its texts
_SMALLEST_NOTE: Final = 7.0  # points; a note is smaller than a value, but no smaller than this
# intervals
_BAR_PITCH: Final = 1.7
_AROUND_BARS: Final = 7.5  # the legend, the ticks and the label below
_PRINTED_BELOW: Final = 0.3  # how far the printed interval lies below ours, in lines
_WIDEST_BAR: Final = 0.35  # of the width of the figure, for the label of a bar
_NEXT_LINE: Final = 0.8  # a further line of the same label is closer
_BOLD: Final = 1.15  # a heading is wider than plain text
_GROUPS_APART: Final = 0.35
# lines
_WIDEST_END: Final = 0.3  # of the axes' width, for a label at the end of a line
_HEIGHT: Final = 0.8  # of the axes' height before the first layout that is left after it
_FARTHEST: Final = 0.8  # rows that a label may be moved from the end of its line
_ROW: Final = 1.3  # between two labels
# of each class in turn; the classes differ in marker and dashes, too
_MARKERS: Final = {"normal": ("o", "^", "P"), "anomalous": ("s", "D", "X")}
_DASHES: Final = {"normal": ("-", (0, (6, 2))), "anomalous": ((0, (4, 1.5)), (0, (3, 1, 1, 1)))}
# panels
_ROW_PITCH, _PAIRED_PITCH = 1.55, 1.9  # of a row with one range or with two
_MANY_ROWS: Final = 30  # more rows are drawn closer, with smaller labels
_CLOSER_PITCH, _SMALL_LABEL = 1.3, 7.0
_AROUND_PANEL: Final = 4.5
_LABEL_LINE: Final = 1.6  # of a label or of the legend
_LEGEND_ENTRIES: Final = 3  # in a line
_LABEL_WIDTH: Final = 0.9  # of a panel's width
_NARROW_PANELS: Final = 250.0  # points; on a phone one panel stands above the other
_MARKS_APART: Final = 0.34  # of a row, between marks that have ranges


def percent_factor(label: str) -> float:
    """Return the factor of shares: 100 where their label says "(%" or "in percent", else 1.

    >>> percent_factor("violations (%)"), percent_factor("ambiguity in percent")
    (100.0, 100.0)
    >>> percent_factor("rate, with 95 % intervals")
    1.0
    """
    return 100.0 if _PERCENT.search(label) else 1.0


def text_size(width: float) -> float:
    """Return the size in points of the text on a figure of this width in inches."""
    return prepare(new_axes(width), dark=False)[1].size


def draw(chart: Chart, *, dark: bool = False, width: float | None = None) -> Figure:
    """Return a new figure of a chart, `width` inches wide and as high as it needs, under its title.

    By default it is 6.5 inches wide, and 8.5 with more than two panels side by side.
    """
    if width is None:
        width = _WIDE if isinstance(chart, PanelChart) and len(chart.panels) > 2 else _USUAL
    ax = _draw(chart, dark, width)
    figure = ax.get_figure(root=True)
    assert figure is not None
    size = _TITLE * text_size(width)
    lines = wrap(chart.title, 72.0 * width - 2.0 * size, size)
    height = float(figure.get_size_inches()[1]) + (1.3 * len(lines) + 0.5) * size / 72.0
    figure.set_size_inches(width, height)
    figure.suptitle(
        "\n".join(lines), x=0.5 * size / (72.0 * width), ha="left", size=size, color=style(dark).text
    )
    return figure


def _draw(chart: Chart, dark: bool, width: float) -> Axes:
    """Return the axes of a new figure on which a chart of any kind was drawn."""
    match chart:
        case IntervalChart():
            ax = new_axes(width, intervals_height(chart, width))
            return plot_intervals(chart, dark=dark, ax=ax)
        case HeatMap():
            return plot_heatmap(chart, dark=dark, ax=new_axes(width, heatmap_height(chart, width)))
        case LineChart():
            return plot_lines(chart, dark=dark, ax=new_axes(width))
        case ScoreChart():
            return plot_thresholds(chart, dark=dark, ax=new_axes(width))
        case PanelChart():
            return plot_panels(chart, dark=dark, width=width)


def plot_thresholds(chart: ScoreChart, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw both classes with the thresholds asked for, and dotted the single one that was reached."""
    ax = plot_scores(chart.certificate, chart.normal, chart.anomalous, dark=dark, ax=ax)
    promises, rule = chart.relaxed.promises, chart.relaxed.rule
    reached = "no single threshold can be certified"
    if promises and rule.single:
        reached = f"dotted: one threshold, {', '.join(map(str, promises))}"
        ax.axvline(rule.anomaly_from, color=style(dark).text, linestyle=(0, (1, 1)), linewidth=2.2)
    label_axes(ax, prepare(ax, dark)[1], f"{ax.get_xlabel()}; {reached}", ax.get_ylabel())
    return ax


@dataclass(frozen=True, slots=True)
class CellTexts:
    """The texts of the values and of the notes, row by row; both are empty where they do not fit."""

    values: tuple[tuple[str, ...], ...]
    notes: tuple[tuple[str, ...], ...]
    size: float

    @property
    def small(self) -> float:
        """The size of a note in points."""
        return max(_SMALLEST_NOTE, self.size - 1.5)

    @property
    def note_height(self) -> float:
        """The height of the tallest note in points."""
        lines = max((note.count("\n") + 1 for row in self.notes for note in row if note), default=0)
        return lines * _LINE_IN_CELL * self.small

    @property
    def cell_height(self) -> float:
        """The height in points that a cell needs."""
        return (_LINE_IN_CELL + 0.8) * self.size + self.note_height


def plot_heatmap(chart: HeatMap, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw each value as a colour and a number with its note; a colour bar replaces what does not fit."""
    ax, style = prepare(new_axes(height=heatmap_height(chart)) if ax is None else ax, dark)
    values = percent_factor(chart.value_label) * np.array(chart.values, dtype=float)
    scale = Normalize(float(np.nanmin(values)), float(np.nanmax(values)))
    edges = (np.arange(len(axis) + 1) - 0.5 for axis in (chart.x, chart.y))
    mesh = ax.pcolormesh(*edges, values, cmap=COLOURS, norm=scale, edgecolor=style.faint, linewidth=0.5)
    cells = cell_texts(chart, style.size, room(ax))
    for row, texts in enumerate(cells.values):
        for column, text in enumerate(texts):
            note = cells.notes[row][column] if cells.notes else ""
            _write(ax, cells, column, row, text, note, ink(float(values[row, column]), scale, style))
    if not cells.values:
        bar = ax.figure.colorbar(mesh, ax=ax)
        bar.ax.tick_params(color=style.muted, labelcolor=style.text, labelsize=style.size)
        bar.outline.set_edgecolor(style.muted)
    _cell_ticks(ax, style, chart)
    ax.spines[["left", "bottom"]].set_visible(False)
    label_axes(ax, style, chart.x_label, chart.y_label)
    Strip(ax, style).note(chart.value_label)
    return ax


def heatmap_height(chart: HeatMap, width: float = 6.5) -> float:
    """Return the height in inches that gives every cell room for its texts."""
    size = text_size(width)
    inner = _AXES_SHARE * 72.0 * width
    rows = len(chart.y) * cell_texts(chart, size, inner).cell_height
    labels = sum(len(wrap(label, inner, size)) for label in (chart.x_label, chart.value_label))
    return (rows + (_AROUND_CELLS + 1.35 * labels) * size) / 72.0


def ink(value: float, scale: Normalize, style: Style) -> str:
    """Return black or white, whichever stands out more from the colour of a value."""
    if np.isnan(value):
        return style.text
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in COLOURS(float(scale(value)))[:3]
    )
    light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (light + 0.05) ** 2 > 0.05 * 1.05 else "#FFFFFF"


def _write(ax: Axes, cells: CellTexts, x: int, y: int, text: str, note: str, colour: str) -> None:
    """Write a value above the middle of its cell, as far as its note needs room below."""
    for words, size, up in (
        (text, cells.size, cells.note_height / 2.0 if note else 0.0),
        (note, cells.small, -0.6 * cells.size),
    ):
        if words:
            look: dict[str, Any] = {"ha": "center", "va": "center", "color": colour, "size": size}
            ax.annotate(words, (x, y), xytext=(0.0, up), textcoords="offset points", **look)


def _cell_ticks(ax: Axes, style: Style, chart: HeatMap) -> None:
    """Label as many columns and rows as there is room for, evenly."""
    across, up = ([PlainTicks()(value) for value in axis] for axis in (chart.x, chart.y))
    height = ax.bbox.height * 72.0 / ax.figure.dpi
    widest = max(text_width(text, style.size) for text in across) + style.size
    every = int(np.ceil(len(across) * widest / room(ax)))
    ax.set_xticks(range(0, len(across), every), across[::every])
    every = int(np.ceil(len(up) * 1.5 * style.size / height))
    ax.set_yticks(range(0, len(up), every), up[::every])
    ax.tick_params(length=0)


def cell_texts(chart: HeatMap, size: float, width: float) -> CellTexts:
    """Return the texts of a heat map's cells, for this text size and axes this many points wide."""
    column = width / max(len(chart.x), 1) - _CELL_MARGIN
    values = tuple(tuple(value_text(value, chart.value_label) for value in row) for row in chart.values)
    if not _fit([text for row in values for text in row], column, size):
        return CellTexts((), (), size)
    small = CellTexts((), (), size).small
    notes = tuple(tuple("\n".join(wrap(note, column, small)) for note in row) for row in chart.notes)
    lines = [line for row in notes for note in row for line in note.split("\n")]
    return CellTexts(values, notes if _fit(lines, column, small) else (), size)


def value_text(value: float, label: str) -> str:
    """Return a value: in percent with one decimal where the label says so, else with three digits.

    >>> value_text(0.1234, "abstained (%)"), value_text(1e-5, "abstained (%)"), value_text(0.12345, "AUC")
    ('12.3', '<0.1', '0.123')
    """
    if isnan(value):
        return "\N{EN DASH}"
    factor = percent_factor(label)
    if factor == 1.0:
        text = f"{value:z.3f}" if abs(value) <= 1.0 else f"{value:.3g}"
    else:
        text = "<0.1" if 0.0 < factor * value < 0.05 else f"{factor * value:z.1f}"
    return text.replace("-", "\N{MINUS SIGN}")


def _fit(texts: Sequence[str], width: float, size: float) -> bool:
    return all(text_width(text, size) <= width for text in texts)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the lines of a chart lie, counted in lines from the top.

    Bars have their middle and wrapped label, headings their middle; `spans` are the top and bottom of each
    group, and `room` is the width, in points, that the labels of the bars leave.
    """

    bars: tuple[tuple[float, str, Bar], ...]
    headings: tuple[tuple[float, str], ...]
    spans: tuple[tuple[float, float], ...]
    room: float

    @property
    def end(self) -> float:
        """Where the last group ends."""
        return max((bottom for _, bottom in self.spans), default=0.0)


def plot_intervals(chart: IntervalChart, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw each rate as a dot on its interval, with a diamond at the exact value and a bracket as printed."""
    ax, style = prepare(new_axes(height=intervals_height(chart)) if ax is None else ax, dark)
    factor = percent_factor(chart.axis)
    lines = lay_out(chart, style.size, room(ax) / _AXES_SHARE)
    for y, heading in lines.headings:
        beside = ax.get_yaxis_transform()
        ax.text(
            0.0, y, heading, va="center", color=style.text, size=style.size, weight="bold", transform=beside
        )
    called = {"ours": chart.value_label, "exact": chart.exact_label}
    handles: dict[str, Line2D] = {}
    for y, _, bar in lines.bars:
        for name, x, place, mark in _bar_marks(style, bar, y):
            (drawn,) = ax.plot([share * factor for share in x], [place] * len(x), label=f"_{name}", **mark)
            drawn.set_clip_on(False)
            handles.setdefault(name, Line2D([], [], label=called.get(name, name), **mark))
    ax.set_xlim(0.0, 1.04 * factor * _farthest(chart, lines))
    ax.set_ylim(lines.end + 0.2, -0.1)
    ax.set_yticks([y for y, *_ in lines.bars], [label for _, label, _ in lines.bars])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    _upright(ax, lines, 0.0, "_zero", color=style.muted, linewidth=0.8)
    if chart.limit is not None:
        limit: dict[str, Any] = {"color": style.text, "linewidth": 1.2, "linestyle": (0, (4, 2.5))}
        _upright(ax, lines, chart.limit * factor, "_limit", **limit)
        handles["limit"] = Line2D([], [], label=chart.limit_label, **limit)
    plain_ticks(ax.xaxis, 6)
    ax.set_xlabel("\n".join(wrap(chart.axis, min(room(ax), lines.room), style.size)))
    if len(handles) > 1:  # a single kind of mark is what the axis says
        Strip(ax, style).legend(list(handles.values()), columns=len(handles) if lines.room > room(ax) else 1)
    return ax


def intervals_height(chart: IntervalChart, width: float = 6.5) -> float:
    """Return the height in inches that gives every line its room."""
    size = text_size(width)
    return (lay_out(chart, size, 72.0 * width).end * _BAR_PITCH + _AROUND_BARS) * size / 72.0


def _bar_marks(
    style: Style, bar: Bar, y: float
) -> list[tuple[str, tuple[float, ...], float, dict[str, Any]]]:
    """Return the marks of a bar: name in the legend, shares, height, and style."""
    ours = {"color": (style.normal, 0.5), "linewidth": 4.0, "solid_capstyle": "butt", "markevery": [1]}
    ours |= {"marker": "o", "markersize": 4.5, "markeredgewidth": 0.0, "markerfacecolor": style.normal}
    found: list[tuple[str, tuple[float, ...], float, dict[str, Any]]]
    found = [("ours", (bar.low, bar.value, bar.high), y, ours)]
    if bar.printed is not None:
        printed = {"color": style.muted, "linewidth": 1.0, "marker": "|", "markersize": 5.0}
        found.append(("printed interval", (bar.printed.low, bar.printed.high), y + _PRINTED_BELOW, printed))
    if bar.exact is not None:
        # hollow and larger than the dot, so that both are seen where they meet
        exact = {"color": style.text, "linestyle": "", "marker": "D", "markersize": 6.0}
        found.append(("exact", (bar.exact,), y, exact | {"markerfacecolor": "none"}))
    return found


def _farthest(chart: IntervalChart, lines: Layout) -> float:
    shares = [chart.limit or 0.0]
    for *_, bar in lines.bars:
        shares += [bar.high, bar.value, bar.exact or 0.0, bar.printed.high if bar.printed else 0.0]
    return float(np.nanmax(shares)) or 1.0


def _upright(ax: Axes, lines: Layout, x: float, name: str, **marks: Any) -> None:
    """Draw an upright line in pieces, so that it does not run through the headings."""
    for top, bottom in lines.spans:
        ax.plot([x, x], [top, bottom], label=name, zorder=1, clip_on=False, **marks)


def lay_out(chart: IntervalChart, size: float, width: float) -> Layout:
    """Return where the lines of a chart lie, in text of this size on a figure this many points wide."""
    labels = {
        bar.label: wrap(bar.label, _WIDEST_BAR * width, size) for _, group in chart.groups for bar in group
    }
    widest = max((text_width(line, size) for lines in labels.values() for line in lines), default=0.0)
    room = width - widest - 3.0 * size
    bars, headings, spans = [], [], []
    top = 0.0
    for heading, group in chart.groups:
        for line in wrap(heading, room / _BOLD, size) if heading else []:
            headings.append((top + 0.5, line))
            top += 1.0
        start = top
        for bar in group:
            height = 1.0 + _NEXT_LINE * (len(labels[bar.label]) - 1)
            bars.append((top + height / 2.0, "\n".join(labels[bar.label]), bar))
            top += height
        spans.append((start, top))
        top += _GROUPS_APART
    return Layout(tuple(bars), tuple(headings), tuple(spans), room)


def plot_lines(chart: LineChart, *, dark: bool = False, ax: Axes | None = None) -> Axes:
    """Draw each line with its band, and the limit dashed; the labels stand at the ends where they fit."""
    ax, style = prepare(ax, dark)
    factor = percent_factor(chart.y_label)
    limit: dict[str, Any] = {"color": style.text, "linewidth": 1.2, "linestyle": (0, (2, 2)), "zorder": 1}
    handles = [ax.axhline(chart.limit * factor, label=chart.limit_label, **limit)]
    seen: list[str] = []
    for line in chart.lines:
        handles.append(_draw_line(ax, style, chart.x, line, factor, seen.count(line.kind)))
        seen.append(line.kind)
    if min(min(line.low) for line in chart.lines) >= 0.0:
        ax.set_ylim(bottom=0.0)
    ax.margins(x=0.02)
    plain_ticks(ax.xaxis, 6)
    plain_ticks(ax.yaxis, 6)
    label_axes(ax, style, chart.x_label, chart.y_label)
    if not _label_ends(ax, style, handles):
        Strip(ax, style).legend([*handles[1:], handles[0]], columns=2)
    return ax


def _draw_line(
    ax: Axes, style: Style, x: Sequence[float], line: ChartLine, factor: float, before: int
) -> Line2D:
    """Draw a line with its band, in the next dashes and marker of its class."""
    colour = style.of_class(line.kind)
    dashes, markers = _DASHES[line.kind], _MARKERS[line.kind]
    low, high = factor * np.array(line.low), factor * np.array(line.high)
    dash, marker = dashes[before % len(dashes)], markers[before % len(markers)]
    # its edge tells a band from another without colour
    band: dict[str, Any] = {"facecolor": (colour, 0.18), "edgecolor": (colour, 0.7), "linewidth": 0.6}
    ax.fill_between(x, low, high, linestyle=dash, label=f"_{line.label} band", **band)
    look: dict[str, Any] = {"color": colour, "linestyle": dash, "linewidth": 1.6, "marker": marker}
    look |= {"markersize": 5.0, "markerfacecolor": colour if line.kind == "normal" else "none"}
    (drawn,) = ax.plot(x, factor * np.array(line.values), label=line.label, **look)
    return drawn


def _label_ends(ax: Axes, style: Style, lines: Sequence[Line2D]) -> bool:
    """Write each label beside the end of its line and return whether that can be done without overlap."""
    low, high = ax.get_ylim()
    height = _HEIGHT * ax.bbox.height * 72.0 / ax.figure.dpi
    ends = [float(np.asarray(line.get_ydata(), dtype=float)[-1]) for line in lines]
    places = [(end - low) / (high - low) * height for end in ends]
    texts = [str(line.get_label()) for line in lines]
    row = _ROW * style.size
    shifts = [new - old for new, old in zip(moved_apart(places, row), places, strict=True)]
    narrow = all(text_width(text, style.size) <= _WIDEST_END * room(ax) for text in texts)
    if not narrow or max(map(abs, shifts)) > _FARTHEST * row:
        return False
    for text, end, shift in zip(texts, ends, shifts, strict=True):
        beside: dict[str, Any] = {
            "xycoords": ax.get_yaxis_transform(),
            "color": style.text,
            "size": style.size,
        }
        ax.annotate(text, (1.0, end), xytext=(4.0, shift), textcoords="offset points", va="center", **beside)
    return True


def moved_apart(places: Sequence[float], gap: float) -> list[float]:
    """Return places in the same order, at least `gap` apart and as near the given ones as possible."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: list[list[int]] = []

    def start(group: list[int]) -> float:
        middle = sum(places[i] for i in group) / len(group)
        return middle - gap * (len(group) - 1) / 2.0

    for i in order:
        groups.append([i])
        while len(groups) > 1 and start(groups[-1]) < start(groups[-2]) + gap * len(groups[-2]):
            last = groups.pop()
            groups[-1] += last
    found = {i: start(group) + gap * rank for group in groups for rank, i in enumerate(group)}
    return [found[i] for i in range(len(places))]


def plot_panels(chart: PanelChart, *, dark: bool = False, width: float = 8.5) -> Axes:
    """Draw every panel over the same rows, with one legend below, and return the axes of the first."""
    size, count, rows = text_size(width), len(chart.panels), len(chart.rows)
    narrow = room(new_axes(width)) < _NARROW_PANELS
    shape, columns = ((count, 1), 1) if narrow else ((1, count), _LEGEND_ENTRIES)
    ranges = max(sum(bool(marks.low) for marks in panel.marks) for panel in chart.panels)
    small, pitch = (
        (size, _ROW_PITCH if ranges < 2 else _PAIRED_PITCH)
        if rows <= _MANY_ROWS
        else (_SMALL_LABEL, _CLOSER_PITCH)
    )
    axes_labels = [
        wrap(panel.axis, _LABEL_WIDTH * 0.8 * 72.0 * width / shape[1], size) for panel in chart.panels
    ]
    figure = Figure(figsize=(width, width), dpi=100, layout="constrained", facecolor="none")
    axes = figure.subplots(*shape, sharey=True, squeeze=False).ravel()
    handles: dict[str, Line2D] = {}
    for ax, panel, label in zip(axes, chart.panels, axes_labels, strict=True):
        ax.set_facecolor("none")
        style = replace(prepare(ax, dark)[1], size=size)
        _draw_panel(ax, style, panel, rows, handles)
        ax.set_xlabel("\n".join(label), size=size)
        ax.tick_params(axis="x", labelsize=size)
        ax.tick_params(axis="y", length=0, labelsize=small)
        ax.spines["left"].set_visible(False)
    axes[0].set_yticks(range(rows), chart.rows)
    axes[0].set_ylim(rows - 0.4, -0.6)
    if chart.filled_label:
        mark = Line2D([], [], linestyle="", marker="D", color=style.muted, label=chart.filled_label)
        handles[chart.filled_label] = mark
    around = _AROUND_PANEL + _LABEL_LINE * max(map(len, axes_labels))
    height = (
        shape[0] * (rows * pitch * small + around * size) + -(-len(handles) // columns) * _LABEL_LINE * size
    )
    figure.set_figheight(height / 72.0)
    figure.legend(
        handles=list(handles.values()),
        loc="outside lower center",
        ncols=min(columns, len(handles)),
        frameon=False,
        fontsize=size,
        labelcolor=style.text,
    )
    first: Axes = axes[0]
    return first


def _draw_panel(ax: Axes, style: Style, panel: Panel, rows: int, handles: dict[str, Line2D]) -> None:
    factor = percent_factor(panel.axis)
    for row in range(0, rows, 2):  # every other row is shaded, to lead the eye from panel to panel
        ax.axhspan(row - 0.5, row + 0.5, color=style.faint, alpha=0.35, linewidth=0.0, zorder=0)
    ranges = [marks for marks in panel.marks if marks.low]
    farthest = 0.0
    for marks in panel.marks:
        look = _look(style, marks)
        at = np.arange(rows, dtype=np.float64)
        values = factor * np.array(marks.values)
        if marks.low:
            at += _MARKS_APART * (ranges.index(marks) - (len(ranges) - 1) / 2)
            low, high = factor * np.array(marks.low), factor * np.array(marks.high)
            ax.hlines(at, low, high, color=look["color"], linewidth=1.4, alpha=0.6, zorder=2)
            farthest = max(farthest, float(np.nanmax(high, initial=0.0)))
        filled = np.array(marks.filled or (False,) * rows)
        for chosen, inside in ((~filled, look), (filled, look | {"markerfacecolor": look["color"]})):
            if chosen.any():
                ax.plot(values[chosen], at[chosen], linestyle="", zorder=3, clip_on=False, **inside)
        farthest = max(farthest, float(np.nanmax(values, initial=0.0)))
        handles.setdefault(marks.label, Line2D([], [], linestyle="", label=marks.label, **look))
    if panel.limit is not None:
        limit: dict[str, Any] = {"color": style.text, "linewidth": 1.1, "linestyle": (0, (4, 2.5))}
        ax.axvline(factor * panel.limit, zorder=1, **limit)
        farthest = max(farthest, factor * panel.limit)
        handles.setdefault(panel.limit_label, Line2D([], [], label=panel.limit_label, **limit))
    for row, note in enumerate(panel.notes):
        look = {"transform": ax.get_yaxis_transform(), "color": style.muted, "size": style.size}
        ax.text(1.0, row + _MARKS_APART / 2, note, ha="right", va="center", **look)
    ax.set_xlim(0.0, 1.04 * farthest if farthest else 1.0)
    plain_ticks(ax.xaxis, 5)


def _look(style: Style, marks: Marks) -> dict[str, Any]:
    """Return colour, shape and filling of marks, which tell them apart without colour as well."""
    colour, shape, size, filled = {
        "ours": (style.normal, "o", 5.0, True),
        "second": (style.anomalous, "s", 5.0, False),
        "exact": (style.text, "D", 5.5, False),
        "other": (style.anomalous, "^", 5.0, True),
        "another": (style.muted, "x", 5.0, True),
        "one": (style.anomalous, "o", 5.0, False),
        "own": (style.normal, "s", 5.0, False),
    }[marks.look]
    look: dict[str, Any] = {"color": colour, "marker": shape, "markersize": size, "markeredgewidth": 1.2}
    return look | {"markerfacecolor": colour if filled else "none"}
