"""The options that commands share: their help, how they are read, and the files they name."""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import partial, update_wrapper
from glob import glob
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import typer
from typer import Argument, Option
from typer.core import TyperGroup

from pac_wrap.base.text import quoted
from pac_wrap.cli.process import BAD_INPUT, progress_bar, say, state
from pac_wrap.errors import InputError
from pac_wrap.version import __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pac_wrap.method.promise import Guarantee
    from pac_wrap.report.account import Account
    from pac_wrap.series.points import Points, SeriesSplit
    from pac_wrap.tables.columns import TrafficColumns
    from pac_wrap.tables.table import FoundFiles, Table

_WELCOME: Final = """\
PAC-Wrap turns the scores of an anomaly detector into verdicts whose false alarm
and miss rates stay below ceilings that you choose, with a stated confidence.

See it work in a few seconds:
  pac-wrap demo
Certify thresholds from a table of scores and labels:
  pac-wrap calibrate scores.csv --score s --label y -o certificate.json
Decide on new rows:
  pac-wrap decide certificate.json new.csv --score s -o verdicts.csv
See how many labels you need:
  pac-wrap plan

pac-wrap --help lists all commands."""
# what Python calls a value, and what one writes
_WORDS: Final = {"str": "text", "int": "number", "float": "number", "path": "file", "file": "file"}
_COLUMNS: Final = "score label group kind unit weight time series batch key review audit"
# choices longer than this would be broken in the middle of a word; the help of the option names them
_LONGEST: Final = 14
# the panels of a long help; an option that would be alone in its panel stands among the others
_PANELS: Final = {
    "Promise": "max_fpr max_fnr delta delta_fpr delta_fnr confidence shift label_noise overlap",
    "Traffic": "max_alarms max_false_alarms min_precision review answers key review_rate mistaken"
    " max_anomalies audit audits",
    "Kinds, groups and weights": "kind group together pool weight weight_bound",
    "Units": "unit per alarms first more_than",
    "Time series": "time series every hold_out seed",
    "Output": "output report prevalence form quiet",
}
PAGES: Final = (".html", ".md", ".json")
PICTURES: Final = (".svg", ".png", ".pdf")
Engine = Literal["duckdb", "spark", "dask"]
Tables = Annotated[
    list[str], Argument(help="Files or patterns: CSV, Parquet, JSON lines or NumPy; - is standard input.")
]
CertificateFile = Annotated[Path, Argument(help="A certificate made by pac-wrap calibrate.")]
Score = Annotated[str, Option(help="The column of scores; higher scores are more anomalous.")]
Label = Annotated[str, Option(help="The column of labels: 0/1 or true/false.")]
AnomalyLabel = Annotated[str | None, Option(help="The label that marks an anomaly, if it is not 1 or true.")]
LeaveOut = Annotated[
    list[str] | None,
    Option(
        help="A third label, such as unknown, whose rows are skipped and counted; '' skips rows without a"
        " label. May be repeated."
    ),
]
Delimiter = Annotated[
    str | None, Option(help="The delimiter of a CSV, one character or tab; by default read from its header.")
]
Group = Annotated[str | None, Option(help="The column of groups, such as tenants; each has its own promise.")]
Review = Annotated[
    str | None,
    Option(
        help="Of traffic: the column of what reviews found, 1 (right), 0 (wrong) or empty (not reviewed)."
    ),
]
DeltaFpr = Annotated[float | None, Option(help="Chance that the FPR ceiling does not hold; by default 0.05.")]
DeltaFnr = Annotated[float | None, Option(help="Chance that the FNR ceiling does not hold; by default 0.05.")]
Form = Annotated[
    Literal["text", "json"],
    Option("--format", help="Show the result as text for people, or as json with every digit."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Do not report what was done.")]
_Held = Literal["hold-fnr", "hold-fpr", "hold-fnr-if-needed", "hold-fpr-if-needed"]
OverlapWord = Annotated[
    Literal["abstain", "abstain-always", "raise", _Held, "algorithm1"] | None,
    Option(
        help="What to do where the classes overlap. abstain (the default): leave points undecided."
        " abstain-always: use two thresholds in any case. raise: raise both ceilings as little as can be"
        " proved. hold-fnr or hold-fpr: keep that ceiling and certify the other rate; with -if-needed, only"
        " if the classes overlap. algorithm1: the strategy of the paper."
    ),
]


def option(help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Return the default of a parameter or of a field, beside the option that `expanded` makes of it."""
    return field(default=default, metadata={"option": Option(*names, help=help, **more)})


class Commands(TyperGroup):
    """The commands; they answer a wrong word on the command line with one sentence."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Return the context of a command, or refuse a wrong word in one sentence."""
        with _in_one_sentence():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the other words name."""
        with _in_one_sentence(ctx):
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> Any:
        """Return the options before a command."""
        return _in_words(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command."""
        command = super().get_command(ctx, cmd_name)
        for one in [command, *getattr(command, "commands", {}).values()]:
            if one is not None:
                _in_words(one.get_params(ctx))
        return command


@contextmanager
def _in_one_sentence(within: Any = None) -> Iterator[None]:
    """End the process with the sentence of a usage error; other errors pass through."""
    try:
        yield
    except Exception as error:
        # usage errors alone have it; their class moves with the version of typer
        if not hasattr(error, "format_message"):
            raise
        what = error.format_message().replace("Value error, ", "").rstrip(".")
        if what:  # else the help was shown instead
            what = what.replace("Input should be", "it should be")
            end = " " if what.endswith("?") else "; "
            named = f"pac-wrap {getattr(within, 'invoked_subcommand', None) or ''}".strip()
            where = getattr(getattr(error, "ctx", None), "command_path", None) or named
            where = where.replace("root", "pac-wrap", 1)
            say(f"{what[:1].lower()}{what[1:]}{end}see {where} --help")
        raise typer.Exit(BAD_INPUT) from error


def _in_words(params: Any) -> Any:
    """Return options whose help names what to write, not Python's type; many options stand in panels."""
    for param in params:
        param.display_type_rich = partial(_written, param)
        for panel, names in _PANELS.items() if len(params) > 12 else ():
            together = sum(one.name in names.split() for one in params) > 1
            if together and param.name in names.split() and hasattr(param, "is_flag"):
                param.rich_help_panel = panel
    return params


def _written(param: Any, ctx: Any) -> str | None:
    """Return the word in brackets after an option; a switch has none."""
    if getattr(param, "is_flag", False):
        return None
    if param.name in _COLUMNS.split():
        return "<column>"
    words: str = param.display_type(ctx)
    kind = re.sub(r"^list\[(.*)\]$", r"\1", words.strip("<>")).removesuffix(" range")
    return f"<{_WORDS[kind]}>" if kind in _WORDS else words if len(words) <= _LONGEST else "<word>"


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pac-wrap {__version__}")
        raise typer.Exit


def before_command(
    ctx: typer.Context,
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
    with_debug: Annotated[bool, Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Read the options before a command, and print the welcome if no command is named."""
    state["debug"] = with_debug
    if ctx.invoked_subcommand is None:
        typer.echo(_WELCOME)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The tables to read: their files, columns, labels, rows and engine; each field is an option."""

    tables: Tables
    score: Score
    label: str | None = option("The column of labels: 0/1 or true/false; traffic needs none.")
    anomaly_label: AnomalyLabel = None
    leave_out: LeaveOut = None
    kind: str | None = option(
        "The column that names the kind of each point; the ceilings hold for every kind."
    )
    group: Group = None
    review: Review = None
    answers: list[str] | None = option(
        "A file with reviews, such as pac-wrap review writes, filled in; may be repeated."
    )
    key: str | None = option("With --answers: the column that identifies rows, in all tables.")
    audit: str | None = option("With --audits: the column that is 1 for points that this coin drew, else 0.")
    unit: str | None = option(
        "The column of units, such as machines, patients or days. Units are independent, and rows of one"
        " unit may depend on each other. The promise is about a random row of a random future unit."
    )
    per: Literal["event", "day", "both"] | None = option(
        "With --unit: what counts instead of rows. event: whether an anomaly of several rows is noticed."
        " day: whether a unit has too many false alarms. both: one and the other."
    )
    alarms: int | None = option("With --per event: alarms that notice an event; by default 1.", min=1)
    first: int | None = option("With --per event: among how many of its first rows; by default all.", min=1)
    more_than: int | None = option("With --per day: the false alarms allowed a day; by default 0.", min=0)
    weight: str | None = option(
        "The column of weights: how much more likely each row is in the future than at calibration. Rows are"
        " drawn by weight, in their order."
    )
    weight_bound: float | None = option(
        "With --weight: a bound that no weight exceeds, in the table or elsewhere."
    )
    time: str | None = option("The column of times, which orders the rows; their dependence is estimated.")
    series: str | None = option("With --time: the column that names the series of each row.")
    every: int | None = option("With --time: take every n-th step of a series.", min=1)
    hold_out: float | None = option(
        "With --series: share of whole series to set aside for a check of the rule."
    )
    seed: int | None = option(
        "Fixes which series --hold-out draws, or which points --weight draws. For --weight the system draws"
        " the seed by default; one of your own must not have been tried before.",
        min=0,
    )
    delimiter: Delimiter = None
    engine: Engine = option(
        "The engine that reads the tables: duckdb, spark or dask, with the same result.", default="duckdb"
    )
    master: str | None = option(
        "The cluster of --engine: the master of Spark, such as local[2] or spark://host:7077, or the address"
        " of the Dask scheduler; by default this machine."
    )

    def __post_init__(self) -> None:
        event, day = (None if self.per in (None, other) else True for other in ("day", "event"))
        for given, value, needed, other in (
            ("--per", self.per, "--unit", self.unit),
            ("--alarms", self.alarms, "--per event", event),
            ("--first", self.first, "--per event", event),
            ("--more-than", self.more_than, "--per day", day),
            ("--series", self.series, "--time", self.time),
            ("--every", self.every, "--time", self.time),
            ("--hold-out", self.hold_out, "--series", self.series),
            ("--weight-bound", self.weight_bound, "--weight", self.weight),
            ("--seed", self.seed, "--hold-out", self.hold_out or self.weight_bound),
            ("--answers", self.answers or None, "--key", self.key),
            ("--key", self.key, "--answers", self.answers or None),
        ):
            if value is not None and other is None:
                raise InputError(f"{given} works only with {needed}; add {needed}, or remove {given}")
        for given, value in (("--leave-out", self.leave_out), ("--answers", self.answers)):
            if value and self.engine != "duckdb":
                raise InputError(f"{given} works only with DuckDB; remove {given} or --engine {self.engine}")
        if self.master is not None and self.engine == "duckdb":
            raise InputError("--master needs --engine spark or --engine dask; DuckDB runs on this machine")

    @property
    def mark(self) -> object:
        """The label of anomalies."""
        from pac_wrap.base.arguments import label_of

        return label_of(self.anomaly_label)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of scores and labels, and the column of kinds or groups if there is one."""
        return self.score, self.label or "", *(one for one in (self.kind, self.group) if one is not None)

    @property
    def traffic(self) -> "TrafficColumns":
        """The columns of traffic; answers stand in the column `review` unless another is named."""
        from pac_wrap.tables.columns import TrafficColumns

        return TrafficColumns(self.score, self.review or ("review" if self.answers else None), self.audit)

    @contextmanager
    def opened(
        self, doing: str, passes: int | None = None, more: Sequence[str] = (), in_order: bool = False
    ) -> "Iterator[Table]":
        """Open the tables as one, with a progress bar; there are at most `passes` passes."""
        from pac_wrap.tables.table import found_files

        with (
            progress_bar(doing, passes) as progress,
            found_files(self.tables) as found,
            self.opened_found(found, progress, more, in_order) as table,
        ):
            yield table

    def opened_found(
        self,
        found: "FoundFiles",
        progress: Any,
        more: Sequence[str] = (),
        in_order: bool = False,
        output: Path | None = None,
    ) -> "AbstractContextManager[Table]":
        """Open found files as one table, with more columns; reading is faster without an order of rows."""
        from pac_wrap.tables.table import open_found

        named = self.unit, self.weight, self.time, self.series, self.audit
        columns = [self.score, *self.columns[2:], *(one for one in named if one is not None), *more]
        passes = not in_order and self.weight is self.time is self.unit is None
        how: Any = {"passes": passes, "delimiter": self.delimiter, "progress": progress, "output": output}
        if self.answers and self.key is not None:
            from pac_wrap.tables.review import answers_in, open_answered

            review = str(self.traffic.review)
            given = answers_in(self.answers, self.key, review, self.delimiter)
            return open_answered(found, columns, given, self.key, review, **how)
        marks = [] if self.review is None else [self.review]
        return open_found(found, [*columns, *marks], self.label, leave_out=self.leave_out or (), **how)

    def source(self, table: "Table", score_type: Any = None, **how: Any) -> Any:
        """Return the labelled scores of a table: by class, by kind, or by group."""
        from pac_wrap.tables.calibrate import TableGroups, TableSource, TrafficTable

        label, traffic = self.label or "", self.traffic if self.label is None else None
        if self.group is not None:
            columns = self.score, label, self.group
            return TableGroups(table, columns, self.anomaly_label, score_type, traffic)
        if traffic is not None:
            return TrafficTable(table, traffic, score_type)
        how |= {"score_type": score_type, "kind": self.kind, "weight": self.weight}
        return TableSource(table, self.score, label, self.anomaly_label, **how)

    def certify(self, source: Any, request: Any) -> Any:
        """Return the certificate or the curve that answers a request, from the scores of a table."""
        from pac_wrap.method.groups.calibrate import certify_any
        from pac_wrap.method.traffic.calibrate import certify_traffic

        if self.label is None and self.group is None:
            return certify_traffic(source, source.unscored, request, self.audit is not None)
        return certify_any(source, request)

    def in_units(self) -> Any:
        """Return the scores, the marks of anomalies and the units of all rows, in their order."""
        others = {"--kind": self.kind, "--group": self.group, "--weight": self.weight, "--time": self.time}
        others["--engine"] = None if self.engine == "duckdb" else self.engine
        if (given := next((name for name, one in others.items() if one is not None), None)) is not None:
            raise InputError(f"--unit does not work with {given}; remove one of them")
        with self.opened("reading", in_order=True) as table:
            return table.in_units(self.score, self.label or "", self.unit or "", self.anomaly_label)

    def steps(self, every: int) -> "tuple[Points, SeriesSplit | None, list[NDArray[Any]]]":
        """Return the steps of all series, their split if some are held out, and the scores of each class."""
        import numpy as np

        from pac_wrap.series.points import several_series
        from pac_wrap.tables.table import rows_in_time

        with self.opened("reading") as table:
            columns = self.score, self.label or "", self.anomaly_label, self.time or "", self.series
            rows = rows_in_time(table, *columns)
        points = several_series(rows.names, rows.sizes, rows.scores, rows.anomalous, every=every)
        split, among = None, None
        if self.hold_out is not None:
            random = np.random.default_rng(self.seed or 0)
            split = points.divided(random, calibration=1.0 - self.hold_out, by_series=True)
            among = split.calibration
        return points, split, [points.scores[points.of_class(one, among)] for one in (False, True)]


@dataclass(frozen=True, kw_only=True)
class Labelled(Reading):
    """The tables to read, whose rows have labels."""

    label: Label = field()


@dataclass(frozen=True, kw_only=True)
class Promised:
    """What is promised beside the ceilings of both rates; each field is an option."""

    delta_fpr: DeltaFpr = None
    delta_fnr: DeltaFnr = None
    confidence: float | None = option("Confidence that both ceilings hold together, instead of the deltas.")
    max_alarms: str | None = option(
        "Of traffic: ceiling of the alarms, a share of all points, or points such as 20/50000."
    )
    max_false_alarms: str | None = option(
        "Of traffic: ceiling of the false alarms, a share of all points or 20/50000."
    )
    min_precision: float | None = option("Of traffic: the least share of alarms that are right.")
    review_rate: float | None = option(
        "The chance that an alarm is reviewed, by a coin; otherwise what was not counts as normal."
    )
    mistaken: float | None = option("The largest chance that a reviewer calls a normal point an anomaly.")
    max_anomalies: float | None = option(
        "The largest share of anomalies in traffic, for a ceiling of the FPR from traffic."
    )
    audits: float | None = option(
        "The chance that a point is drawn for audit, by a coin, whatever its score; for --max-fnr of traffic."
    )
    shift: str | None = option(
        "Distribution shift to tolerate: tv:0.02, ratio:2, kl:0.01 or chi2:0.1; tv:0.02,none is for the"
        " normal points only."
    )
    label_noise: str | None = option(
        "Label noise to tolerate: 0.05 is the largest share of points under a label that belong to the other"
        " class; in 0.05:0.01, 0.01 is the largest share of a class under another label; none,0.05 is for"
        " the anomalous points only."
    )

    @property
    def of_traffic(self) -> dict[str, Any]:
        """The arguments of a guarantee that the options about traffic give; none if none is given."""
        from pac_wrap.method.robust.shift_and_noise import Reviews

        given = {name: one for name, one in vars(self).items() if one is not None}
        known = {"review_rate": "rate"} | {name: name for name in ("mistaken", "max_anomalies", "audits")}
        reviews = {known[name]: one for name, one in given.items() if name in known}
        promises = ("max_alarms", "max_false_alarms", "min_precision")
        found = {name: one for name, one in given.items() if name in promises}
        return found | ({"reviews": Reviews(**reviews)} if reviews else {})

    def guarantee(self, max_fpr: str | list[str] | None, max_fnr: str | list[str] | None) -> "Guarantee":
        """Return the guarantee that the options request; a list may give each kind its own ceiling."""
        from pac_wrap.method.promise import Guarantee

        of_traffic = self.of_traffic
        usual, deltas = "none" if of_traffic else "0.05", (self.delta_fpr, self.delta_fnr)
        ceilings = _ceilings("--max-fpr", max_fpr, usual), _ceilings("--max-fnr", max_fnr, usual)
        for side, ceiling, delta in zip(("fpr", "fnr"), ceilings, deltas, strict=True):
            unused = side == "fnr" if of_traffic else ceilings != (None, None)
            if delta is not None and ceiling is None and unused:
                raise InputError(
                    f"--delta-{side} needs a ceiling, and --max-{side} is none; remove --delta-{side}"
                )
        others = rooms_of(self.shift, self.label_noise) | of_traffic
        return Guarantee(*ceilings, *deltas, confidence=self.confidence, **others)


def expanded(command: Callable[..., None]) -> Any:
    """Return a command with the fields of each dataclass that it takes as options, all or the named ones."""
    groups: dict[str, tuple[Any, Sequence[str]]] = {}
    found: list[Parameter] = []
    for one in signature(command).parameters.values():
        kind, *named = get_args(one.annotation) or (one.annotation,)
        if not is_dataclass(kind):
            found.append(_parameter(one.name, one.annotation, one.default))
            continue
        own = [part for part in fields(kind) if not named or part.name in named[0].split()]
        groups[one.name] = kind, [part.name for part in own]
        found += [_parameter(part.name, part.type, part) for part in own]

    def with_options(**given: Any) -> None:
        made = {name: kind(**{one: given.pop(one) for one in own}) for name, (kind, own) in groups.items()}
        command(**given, **made)

    made: Any = update_wrapper(with_options, command)
    made.__signature__ = Signature(found)
    made.__annotations__ = {one.name: one.annotation for one in found}
    return made


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    if isinstance(default, Field):
        if "option" in default.metadata:
            annotation = Annotated[annotation, default.metadata["option"]]
        default = Parameter.empty if default.default is MISSING else default.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def check_traffic(of_traffic: bool, reading: Reading, **others: Any) -> None:
    """Refuse options of labelled points for traffic, and options of traffic, or no label, for others."""
    example = "a promise about traffic, such as --max-false-alarms 20/50000"
    marks = {"review": reading.review, "audit": reading.audit, "answers": reading.answers}
    if not of_traffic and (given := [name for name, one in marks.items() if one]):
        raise InputError(f"--{given[0]} needs {example}, or --max-fpr with --max-anomalies; add one")
    if not of_traffic and reading.label is None:
        raise InputError(f"missing --label; name the column of labels, or add {example}")
    names = "label", "anomaly_label", "leave_out", "kind", "weight", "time", "series", "hold_out", "seed"
    labelled = {name: getattr(reading, name) for name in names} | others
    if of_traffic and (given := [name for name, one in labelled.items() if one not in (None, [], False)]):
        option = f"--{given[0].replace('_', '-')}"
        raise InputError(f"{option} is for labelled points, and these promises are about traffic; remove it")
    if reading.group is not None and reading.engine != "duckdb" and of_traffic:
        raise InputError(f"--group of traffic works only with DuckDB; remove --engine {reading.engine}")


def _ceilings(
    option: str, given: str | list[str] | None, usual: str
) -> float | dict[str | None, float | None] | None:
    """Return one ceiling, or the ceiling of each kind; the last = of a text precedes the ceiling."""

    def ceiling(text: str) -> float | None:
        try:
            return None if text.lower() == "none" else float(text)
        except ValueError:
            raise InputError(
                f"{option} must be a number between 0 and 1, or none; got {text!r};"
                " write five percent as 0.05"
            ) from None

    texts = [given] if isinstance(given, str) else given or [usual]
    if len(texts) == 1 and "=" not in texts[0]:
        return ceiling(texts[0])
    found: dict[str | None, float | None] = {}
    for text in texts:
        name, sign, number = text.rpartition("=")
        kind = None if name == "*" else name
        if not sign or kind in found:
            raise InputError(
                f"{option} given several times must be kind=ceiling, once for each kind, got {quoted(text)}"
            )
        found[kind] = ceiling(number)
    return found


def strategy_of(overlap: str | None, asked: "Guarantee") -> str:
    """Return the strategy that --overlap names; it is refused with a ceiling for one class only."""
    if overlap is not None and len({one.of.label for one in asked.promises}) == 1:
        raise InputError("--overlap needs a ceiling for both classes; remove it, or give both ceilings")
    return (overlap or "abstain").replace("-", "_")


def rooms_of(shift: str | None, label_noise: str | None) -> dict[str, Any]:
    """Return the tolerances that options give, as arguments of a guarantee."""
    from pac_wrap.method.robust.shift_and_noise import SHIFTS, LabelNoise

    def distance(text: str) -> object:
        tag, _, size = text.partition(":")
        return {one.tag: one for one in SHIFTS}[tag.strip().lower()](float(size))

    def noise(text: str) -> object:
        return LabelNoise(*map(float, text.split(":", 1)))

    return {
        "shift": _for_classes("--shift", shift, "like tv:0.02, ratio:2, kl:0.01 or chi2:0.1", distance),
        "label_noise": _for_classes("--label-noise", label_noise, "0.05 or 0.05:0.01", noise),
    }


def _for_classes(option: str, text: str | None, known: str, read: Callable[[str], object]) -> Any:
    """Return the tolerance of an option: one for both classes, or a pair (normal, anomalous)."""
    if text is None:
        return None
    found = []
    for part in text.split(","):
        try:
            found.append(None if part.strip().lower() == "none" else read(part))
        except InputError:
            raise
        except (KeyError, ValueError):
            raise InputError(f"{option} must be {known}, got {quoted(part)}") from None
    if len(found) > 2:
        raise InputError(
            f"{option} takes one value, or two for normal and anomalous points, got {quoted(text)}"
        )
    return found[0] if len(found) == 1 else tuple(found)


def shares_in(text: str) -> tuple[float, float]:
    """Return the two ends of a range of shares; a single share is both."""
    from pac_wrap.method.alarms.precision import as_interval

    # a hyphen after a digit divides; that of 1e-3 does not
    low, _, high = re.sub(r"(?<=[\d.])\s*-", ":", text, count=1).partition(":")
    try:
        return as_interval((float(low), float(high or low)))
    except (ValueError, InputError):
        raise InputError(
            "--prevalence must be a share between 0 and 1 such as 0.01, or a range such as 0.01-0.03; got"
            f" {quoted(text)}"
        ) from None


def check_report(report: Path | None, of: str, endings: tuple[str, ...]) -> None:
    """Refuse a report with an ending that reports of this kind do not have, before any work is done."""
    if report is not None and report.suffix.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise InputError(f"the report of {of} must end in {known}, got {report}")


def keep_apart(inputs: Sequence[str | Path], *outputs: Path | None) -> None:
    """Refuse an output file that is also an input or another output, under any name."""
    # texts may be patterns, paths are names
    patterns = [found for name in inputs if isinstance(name, str) for found in glob(name, recursive=True)]
    read = {one for path in (*inputs, *patterns) for one in _identities(path)}
    written: set[object] = set()
    for output in (path for path in outputs if path is not None):
        own = _identities(output)
        if own & read:
            raise InputError(
                f"{output} is also an input, under this name or another; name another output, to keep both"
            )
        if own & written:
            raise InputError(f"{output} is named for two outputs, under this name or another; name two files")
        written |= own


def _identities(path: str | Path) -> set[object]:
    """Return the identity of a file: its real path, and its number if it is there."""
    found: set[object] = {os.path.realpath(path)}
    with suppress(OSError):
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            return set()  # a pipe or a device is not replaced, and /dev/null may be named twice
        found.add((facts.st_dev, facts.st_ino))
    return found


# the "format" at the start of a file, and the class that reads it
_READERS: Final = {
    "pac-wrap certificate of classes": ("classes", "ClassCertificate"),
    "pac-wrap groups": ("groups.certificate", "GroupCertificate"),
    "pac-wrap curve": ("curves.curve", "Curve"),
}
_HEAD: Final = re.compile(rb'\s*\{\s*"format"\s*:\s*"([^"\\]*)"')


def load_any(path: Path, *, but: Sequence[str] = ()) -> Any:
    """Return the certificate or curve in a file, by its header; the formats in `but` are refused."""
    from pac_wrap.base.codec import MOST_BYTES
    from pac_wrap.method.certificate import Certificate

    with path.open("rb") as file:  # which may be a pipe, that is read once
        text = file.read(MOST_BYTES + 1)
        head = _HEAD.match(text)
        form = "" if head is None else head[1].decode("utf-8", "replace")
        reader: Any = Certificate
        if form in _READERS and form.rpartition(" ")[2] not in but:
            module, name = _READERS[form]
            reader = getattr(import_module(f"pac_wrap.method.{module}"), name)
        return reader.from_json(text + file.read(reader._most_bytes + 1 - len(text)))


def division_of(certificate: object) -> str | None:
    """Return "kind" or "group" if a certificate promises something for each of them, else None."""
    from pac_wrap.method.groups.certificate import GroupCertificate

    if getattr(certificate, "by_kind", False):
        return "kind"
    return "group" if isinstance(certificate, GroupCertificate) else None


def check_division(certificate: object, **columns: str | None) -> None:
    """Check that the column of kinds or groups is named exactly if the certificate is by kind or group."""
    for noun, column in columns.items():
        if (division_of(certificate) == noun) is (column is None):
            raise InputError(
                f"the certificate has a promise for each {noun}; name the column of {noun}s with --{noun}"
                if column is None
                else f"--{noun} needs a certificate that was made with --{noun}; remove it"
            )


def is_of_traffic(certificate: Any) -> bool:
    """Return whether a certificate, or each of its groups, promises something about traffic."""
    asked = getattr(certificate, "asked", getattr(certificate, "guarantee", None))
    return bool(getattr(asked, "of_traffic", False))


def check_units(certificate: Any, unit: str | None) -> None:
    """Check that the column of units is named exactly if the certificate was made with units."""
    made = getattr(certificate, "units", None) is not None
    if made is (unit is None):
        raise InputError(
            "the certificate was made with units; name their column with --unit"
            if made
            else "--unit needs a certificate that was made with --unit; remove it"
        )


def units_of(certificate: Any, reading: Reading) -> Any:
    """Return the scores and the units of each class, None for a certificate made without units."""
    check_units(certificate, reading.unit)
    if reading.unit is None:
        return None
    scores, anomalous, units = reading.in_units()
    pairs = list(zip(units, anomalous.tolist(), strict=True))
    named = tuple([unit for unit, mark in pairs if mark is side] for side in (False, True))
    return (scores[~anomalous], scores[anomalous]), named


def tell(account: "Account", form: str, text: str | None = None) -> None:
    """Print an account as text or JSON, and end the command if the exit code is not 0."""
    from pac_wrap.report.render import as_json, terminal

    if form == "json":
        typer.echo(as_json(account), nl=False)
    elif text is not None:
        typer.echo(text)
    else:
        from rich.console import Console

        Console().print(terminal(account))
    if account.status.exit_code:
        raise typer.Exit(account.status.exit_code)
