"""A result as Markdown; a missed aim is marked."""

from collections.abc import Iterable, Sequence

from benchmarks.record import Aim, Comparison, Growth, Measure, Result, Timing, is_met


def render(result: Result) -> str:
    """Return the tables of one line, below its heading."""
    parts = [f"## {result.title}", result.about]
    if result.comparisons:
        parts.append(_comparisons(result.comparisons))
    if result.growths:
        parts.append(_growths(result.growths))
    if result.measures:
        parts.append(_measures(result.measures))
    parts += [f"Left out: {reason}." for reason in result.left_out]
    return "\n\n".join(parts)


def summary(results: Iterable[Result]) -> str:
    """Return one row per line: its aims, how many are met, and what misses."""
    rows = []
    for result in results:
        missed = [one for one in result.judged if not is_met(one)]
        worst = "; ".join(f"{_where(one)}: {_number(one.value)}, aim {_aim(one.aim)}" for one in missed)
        met = len(result.judged) - len(missed)
        rows.append([result.title, f"{met} of {len(result.judged)}", worst or "-"])
    return _table(["line", "aims met", "not met"], rows, "lrl")


def growth_table(results: Iterable[Result]) -> str:
    """Return one row per method of ours: how its time grows, and how it compares at the largest size."""
    rows = []
    for result in results:
        ours = {
            timing.method for one in result.comparisons for timing in one.timings if timing.role == "ours"
        }
        for one in result.growths:
            if one.method not in ours and result.comparisons:
                continue
            last = [
                other for other in result.comparisons if (other.case, other.size) == (one.case, one.sizes[-1])
            ]
            beside = f"{_number(last[0].value)} x {last[0].of('limit').method}" if last else "-"
            sizes = f"{one.sizes[0]:,} to {one.sizes[-1]:,}"
            rows.append([one.method, one.case, sizes, f"{one.exponent:.2f}", beside])
    return _table(["what", "case", "sizes", "growth exponent", "time at the largest size"], rows, "llrrl")


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    methods = list(dict.fromkeys(timing.method for one in comparisons for timing in one.timings))
    sized = any(one.size is not None for one in comparisons)
    head = ["case", *(["size"] if sized else []), *methods, "ratio", "of the fastest", "aim", ""]
    rows = []
    for one in comparisons:
        by_name = {timing.method: timing for timing in one.timings}
        cells = [_time(by_name[name]) if name in by_name else "-" for name in methods]
        judged = one.of(one.judged)
        rows.append(
            [
                one.case,
                *([f"{one.size:,}"] if sized else []),
                *cells,
                _number(one.value),
                _number(judged.fastest_ratio),
                _aim(one.aim),
                _verdict(one),
            ]
        )
    return _table(head, rows, "l" + "r" * (len(head) - 2) + "l")


def _growths(growths: Sequence[Growth]) -> str:
    rows = [
        [
            one.case,
            one.method,
            f"{one.exponent:.2f}",
            f"{one.sizes[0]:,} to {one.sizes[-1]:,} ({len(one.sizes)})",
            _aim(one.aim),
            _verdict(one),
        ]
        for one in growths
    ]
    return _table(["case", "method", "growth exponent", "sizes", "aim", ""], rows, "llrrrl")


def _measures(measures: Sequence[Measure]) -> str:
    columns = list(dict.fromkeys(one.column for one in measures))
    cells: dict[str, dict[str, str]] = {}
    for one in measures:
        text = "-" if one.value is None else f"{_number(one.value)} {_unit(one.unit)}".rstrip()
        if one.aim is not None:
            text += f" (aim {_aim(one.aim)}, {_verdict(one)})"
        cells.setdefault(one.row, {})[one.column] = text
    rows = [[row, *(found.get(column, "-") for column in columns)] for row, found in cells.items()]
    return _table(["", *columns], rows, "l" + "r" * len(columns))


def _time(timing: Timing) -> str:
    if timing.role == "peer":
        return f"{_seconds(timing.median)}, {_number(timing.ratio)} x"
    return f"{_seconds(timing.median)} ({_seconds(timing.fastest)} to {_seconds(timing.slowest)})"


def _seconds(seconds: float) -> str:
    unit, factor = ("s", 1.0) if seconds >= 1.0 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{_number(seconds * factor)} {unit}"


def _number(value: float | None) -> str:
    """Return three significant digits, whole numbers in full."""
    if value is None:
        return "none"
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.0e}"
    return f"{value:.{2 if abs(value) < 10 else 1}f}" if abs(value) >= 1 else f"{value:.3f}"


def _unit(unit: str) -> str:
    return "" if unit in ("labels", "chance", "share") else unit


def _aim(aim: Aim | None) -> str:
    return "" if aim is None else f"{aim.sense} {_number(aim.bound)}"


def _verdict(record: Comparison | Growth | Measure) -> str:
    met = is_met(record)
    return "" if met is None else "met" if met else "**not met**"


def _where(record: Comparison | Growth | Measure) -> str:
    if isinstance(record, Comparison):
        return record.case if record.size is None else f"{record.case}, {record.size:,}"
    if isinstance(record, Growth):
        return f"growth, {record.case}"
    return f"{record.row}, {record.column}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], alignment: str) -> str:
    rule = ["--:" if side == "r" else "---" for side in alignment]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, rule, *rows))
