"""The options of commands: how words are read, what the shared ones mean, and the files they name."""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from glob import glob
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

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
    from pac_wrap.tables.table import FoundFiles, Table

_WELCOME: Final = """\
PAC-Wrap certifies how often an anomaly detector cries wolf and how often it
misses.

See what it does, in seconds:
  pac-wrap demo
Certify thresholds from a table of scores and labels, and decide on new rows:
  pac-wrap calibrate scores.csv --score s --label y -o certificate.json
  pac-wrap decide certificate.json new.csv --score s -o verdicts.csv

pac-wrap --help lists all commands, pac-wrap plan says how many labels you need."""
# what Python calls a value, and what one writes
_WORDS: Final = {"str": "text", "int": "whole number", "float": "number", "path": "file", "file": "file"}
PAGES: Final = (".html", ".md", ".json")
PICTURES: Final = (".svg", ".png", ".pdf")
Engine = Literal["duckdb", "spark", "dask"]
Tables = Annotated[
    list[str], Argument(help="Files or patterns: CSV, Parquet, JSON lines, NumPy; - is standard input.")
]
CertificateFile = Annotated[Path, Argument(help="A certificate made by pac-wrap calibrate.")]
Score = Annotated[str, Option(help="The column of scores, higher for anomalies.")]
Label = Annotated[str, Option(help="The column of labels: 0/1 or true/false.")]
AnomalyLabel = Annotated[str | None, Option(help="The label that marks an anomaly, if it is not 1 or true.")]
LeaveOut = Annotated[
    list[str] | None,
    Option(
        help="A third label, such as unknown, whose rows are left out and counted; '' is that of rows without"
        " a label. Repeat it for several."
    ),
]
Delimiter = Annotated[
    str | None, Option(help="The delimiter of a CSV, a character or tab; by default found from its header.")
]
Group = Annotated[str | None, Option(help="The column of groups, such as tenants: each has its own promise.")]
Kind = Annotated[
    str | None, Option(help="A column that names the kind of each point; ceilings then hold for each kind.")
]
DeltaFpr = Annotated[float | None, Option(help="Chance that the FPR ceiling does not hold; by default 0.05.")]
DeltaFnr = Annotated[float | None, Option(help="Chance that the FNR ceiling does not hold; by default 0.05.")]
ShiftOption = Annotated[
    str | None,
    Option(
        help="Room for shift: tv:0.02, ratio:2, kl:0.01 or chi2:0.1; 'tv:0.02,none' gives it to the normal"
        " points alone."
    ),
]
LabelNoiseOption = Annotated[
    str | None,
    Option(
        help="Room for wrong labels: the share of points under a label that belong to the other class, and"
        " after a colon that of a class under another label: 0.05 or 0.05:0.01; 'none,0.05' gives it to the"
        " anomalous points alone."
    ),
]
Weight = Annotated[
    str | None,
    Option(
        help="A column that says how much more likely each row is in the future than at calibration: rows are"
        " drawn by it, in their order."
    ),
]
Time = Annotated[
    str | None, Option(help="A column of times: rows are ordered by it, and how far they depend is judged.")
]
Series = Annotated[str | None, Option(help="With --time: a column that names the series of each row.")]
HoldOut = Annotated[
    float | None,
    Option(
        help="With --series: the share of whole series that do not calibrate, and show how the rule does."
    ),
]
Seed = Annotated[
    int | None,
    Option(
        min=0,
        help="With --hold-out: fixes which series are drawn. With --weight: fixes which points are, instead"
        " of a seed from the system; it must not have been tried before.",
    ),
]
Confidence = Annotated[
    float | None, Option(help="Confidence that both ceilings hold together, instead of the deltas.")
]
Form = Annotated[
    Literal["text", "json"],
    Option("--format", help="How to show it: for people, or with every digit for programs."),
]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Do not say what was done.")]
_Held = Literal["hold-fnr", "hold-fpr", "hold-fnr-if-needed", "hold-fpr-if-needed"]
OverlapWord = Annotated[
    Literal["abstain", "abstain-always", "raise", _Held, "algorithm1"] | None,
    Option(
        help="What is done where the classes overlap: leave points undecided, only if needed or always;"
        " raise both ceilings as little as can be proved; hold one, always or only if needed, and certify"
        " the other rate; or the paper's Algorithm 1. By default abstain."
    ),
]


class Commands(TyperGroup):
    """The commands; a wrong word on the command line is one sentence, in which that word is harmless."""

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
    """End the process with the sentence of a usage error; others pass."""
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
            say(f"{what[:1].lower()}{what[1:]}{end}{where} --help shows what there is")
        raise typer.Exit(BAD_INPUT) from error


def _in_words(params: Any) -> Any:
    """Return options whose help names what is to be written, not the type that Python makes of it."""
    for param in params:
        param.display_type_rich = partial(_written, param)
    return params


def _written(param: Any, ctx: Any) -> str | None:
    """Return the value after an option; a switch has none."""
    if getattr(param, "is_flag", False):
        return None
    words: str = param.display_type(ctx)
    kind = re.sub(r"^list\[(.*)\]$", r"\1", words.strip("<>")).removesuffix(" range")
    return f"<{_WORDS[kind]}>" if kind in _WORDS else words


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
    """Read the options before a command, and welcome whoever names none."""
    state["debug"] = with_debug
    if ctx.invoked_subcommand is None:
        typer.echo(_WELCOME)


@dataclass(frozen=True)
class Reading:
    """The tables to be read: their columns, the labels that count, the rows taken, and what reads them."""

    tables: list[str]
    score: str
    label: str | None = None
    anomaly_label: str | None = None
    leave_out: list[str] | None = None
    delimiter: str | None = None
    kind: str | None = None
    group: str | None = None
    weight: str | None = None
    engine: Engine = "duckdb"
    master: str | None = None
    # rows in the order of time
    time: str | None = None
    series: str | None = None
    every: int | None = None
    hold_out: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        for option, value, needed, other in (
            ("--series", self.series, "--time", self.time),
            ("--every", self.every, "--time", self.time),
            ("--hold-out", self.hold_out, "--series", self.series),
            ("--seed", self.seed, "--hold-out", self.hold_out),
        ):
            if value is not None and other is None:
                raise InputError(f"{option} goes with {needed}; add that, or leave {option} out")
        if self.leave_out and self.engine != "duckdb":
            raise InputError(
                f"--leave-out is for DuckDB, and not for the engine {self.engine}; leave --engine out"
            )
        if self.master is not None and self.engine == "duckdb":
            raise InputError(f"DuckDB runs in this process; name the engine of {self.master} with --engine")

    @property
    def mark(self) -> object:
        """The label of anomalies."""
        from pac_wrap.base.arguments import label_of

        return label_of(self.anomaly_label)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of scores and labels, and that of kinds or groups if there is one."""
        return self.score, self.label or "", *(one for one in (self.kind, self.group) if one is not None)

    @contextmanager
    def opened(
        self, doing: str, passes: int | None = None, more: Sequence[str] = (), in_order: bool = False
    ) -> "Iterator[Table]":
        """Open the tables as one, with a bar that says what is done, in how many passes at most."""
        from pac_wrap.tables.table import found_files

        with (
            progress_bar(doing, passes) as progress,
            found_files(self.tables) as found,
            self.opened_found(found, progress, more, in_order) as table,
        ):
            yield table

    def opened_found(
        self, found: "FoundFiles", progress: Any, more: Sequence[str] = (), in_order: bool = False
    ) -> "AbstractContextManager[Table]":
        """Open files that were found as one table, with more columns; those in no order are read faster."""
        from pac_wrap.tables.table import open_found

        others = [one for one in (self.weight, self.time, self.series) if one is not None]
        return open_found(
            found,
            [self.score, *self.columns[2:], *others, *more],
            self.label,
            passes=not in_order and self.weight is None and self.time is None,
            delimiter=self.delimiter,
            leave_out=self.leave_out or (),
            progress=progress,
        )

    def source(self, table: "Table", score_type: Any = None, **how: Any) -> Any:
        """Return the labelled scores of a table: of its classes, of their kinds, or of its groups."""
        from pac_wrap.tables.calibrate import TableGroups, TableSource

        label = self.label or ""
        if self.group is not None:
            return TableGroups(table, (self.score, label, self.group), self.anomaly_label, score_type)
        how |= {"score_type": score_type, "kind": self.kind, "weight": self.weight}
        return TableSource(table, self.score, label, self.anomaly_label, **how)

    def certify(self, source: Any, request: Any) -> Any:
        """Return the certificate or the curve that a request gets from the scores of a table."""
        from pac_wrap.method.calibrate import certify
        from pac_wrap.method.groups.calibrate import certify_groups
        from pac_wrap.method.kinds import certify_kinds

        if self.group is not None:
            return certify_groups(source, request)
        return certify(source, request) if self.kind is None else certify_kinds(source, request)

    def steps(self, every: int) -> "tuple[Points, SeriesSplit | None, list[NDArray[Any]]]":
        """Return the steps of all series, which calibrate if some are held out, and those of each class."""
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


def guarantee_of(
    max_fpr: str | list[str] | None,
    max_fnr: str | list[str] | None,
    delta_fpr: float | None,
    delta_fnr: float | None,
    confidence: float | None = None,
    shift: str | None = None,
    label_noise: str | None = None,
) -> "Guarantee":
    """Return the guarantee that the options ask for; a list may give a ceiling to each kind."""
    from pac_wrap.method.promise import Guarantee

    ceilings = _ceilings("--max-fpr", max_fpr), _ceilings("--max-fnr", max_fnr)
    for side, ceiling, delta in (("fpr", ceilings[0], delta_fpr), ("fnr", ceilings[1], delta_fnr)):
        if delta is not None and ceiling is None and ceilings != (None, None):
            raise InputError(f"--delta-{side} is for a ceiling, and --max-{side} is none; leave it out")
    return Guarantee(*ceilings, delta_fpr, delta_fnr, confidence=confidence, **rooms_of(shift, label_noise))


def _ceilings(option: str, given: str | list[str] | None) -> float | dict[str | None, float | None] | None:
    """Return a ceiling, or that of each kind; the last = of a text stands before the ceiling."""

    def ceiling(text: str) -> float | None:
        try:
            return None if text.lower() == "none" else float(text)
        except ValueError:
            raise InputError(
                f"{option} must be a number between 0 and 1, or none; got {text!r};"
                " write five percent as 0.05"
            ) from None

    texts = [given] if isinstance(given, str) else given or ["0.05"]
    if len(texts) == 1 and "=" not in texts[0]:
        return ceiling(texts[0])
    found: dict[str | None, float | None] = {}
    for text in texts:
        name, sign, number = text.rpartition("=")
        kind = None if name == "*" else name
        if not sign or kind in found:
            raise InputError(
                f"{option} is given several times, so each must be another kind=ceiling, got {quoted(text)}"
            )
        found[kind] = ceiling(number)
    return found


def strategy_of(overlap: str | None, asked: "Guarantee") -> str:
    """Return the strategy that a word of the command line names; one ceiling alone has nothing to choose."""
    if overlap is not None and len({one.of.label for one in asked.promises}) == 1:
        raise InputError("with a ceiling for one class only, nothing can overlap; leave --overlap out")
    return (overlap or "abstain").replace("-", "_")


def rooms_of(shift: str | None, label_noise: str | None) -> dict[str, Any]:
    """Return the room that options give, by the names of a guarantee."""
    from pac_wrap.method.robust.shift_and_noise import SHIFTS, LabelNoise

    def distance(text: str) -> object:
        tag, _, size = text.partition(":")
        return {one.tag: one for one in SHIFTS}[tag.strip().lower()](float(size))

    def noise(text: str) -> object:
        return LabelNoise(*map(float, text.split(":", 1)))

    return {
        "shift": _for_classes("--shift", shift, "tv:0.02, ratio:2, kl:0.01 or chi2:0.1", distance),
        "label_noise": _for_classes("--label-noise", label_noise, "0.05 or 0.05:0.01", noise),
    }


def _for_classes(option: str, text: str | None, known: str, read: Callable[[str], object]) -> Any:
    """Return the room of an option: one for both classes, or a pair for normal and anomalous points."""
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
            f"{option} takes one text, or two for normal and anomalous points, got {quoted(text)}"
        )
    return found[0] if len(found) == 1 else tuple(found)


def shares_in(text: str) -> tuple[float, float]:
    """Return the ends of a range of shares, or a number twice."""
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
    """Refuse a report whose name ends as no report of its kind does, before any work is done."""
    if report is not None and report.suffix.lower() not in endings:
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise InputError(f"the report of {of} ends in {known}, got {report}")


def keep_apart(inputs: Sequence[str | Path], *outputs: Path | None) -> None:
    """Refuse an output that is an input, by whatever name, or the same file as another output."""
    # texts may be patterns, paths are names
    patterns = [found for name in inputs if isinstance(name, str) for found in glob(name, recursive=True)]
    read = {one for path in (*inputs, *patterns) for one in _identities(path)}
    written: set[object] = set()
    for output in (path for path in outputs if path is not None):
        own = _identities(output)
        if own & read:
            raise InputError(
                f"{output} is also an input, under this name or another; write to another file, so that"
                " nothing is lost"
            )
        if own & written:
            raise InputError(f"{output} is given twice, under this name or another; each output needs a file")
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


# what stands as "format" at the head of a file, and what reads the rest
_READERS: Final = {
    "pac-wrap certificate of classes": ("classes", "ClassCertificate"),
    "pac-wrap groups": ("groups.certificate", "GroupCertificate"),
    "pac-wrap curve": ("curves.curve", "Curve"),
}
_HEAD: Final = re.compile(rb'\s*\{\s*"format"\s*:\s*"([^"\\]*)"')


def load_any(path: Path, *, but: Sequence[str] = ()) -> Any:
    """Return the certificate in a file, of the kind that its header names; those in `but` are refused."""
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
    """Return the division that a certificate promises by: kind, group or neither."""
    from pac_wrap.method.groups.certificate import GroupCertificate

    if getattr(certificate, "by_kind", False):
        return "kind"
    return "group" if isinstance(certificate, GroupCertificate) else None


def check_division(certificate: object, **columns: str | None) -> None:
    """Refuse a certificate by kind or group without their column, and a column that it has no use for."""
    for noun, column in columns.items():
        if (division_of(certificate) == noun) is (column is None):
            raise InputError(
                f"the certificate promises by {noun}; name the column of {noun}s with --{noun}"
                if column is None
                else f"--{noun} is for certificates that were made with it; leave it out"
            )


def tell(account: "Account", form: str, text: str | None = None) -> None:
    """Show an account, for people or for programs; the command ends if its exit code is not 0."""
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
