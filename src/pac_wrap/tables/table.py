"""Tables of scores in files: find the files, open them as one DuckDB view called source, order the rows."""

import re
import stat
import warnings
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from difflib import get_close_matches
from filecmp import cmp
from functools import partial
from glob import glob, has_magic
from hashlib import sha256
from itertools import chain
from pathlib import Path
from struct import error as too_short
from struct import unpack_from
from threading import Event, Thread
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from pac_wrap.base.arguments import OnMissing, Scores, score_type
from pac_wrap.base.files import scratch_folder
from pac_wrap.base.floats import ScoreType
from pac_wrap.base.text import amount, is_unicode, quoted, visible
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.tables import columns as checks
from pac_wrap.tables.files import connection, csv_files, text_format
from pac_wrap.tables.files.numpy_files import numpy_columns
from pac_wrap.tables.sql import label_sql, number_sql, one_of, quote_name, quote_text, score_sql, text_sql

# DuckDB's types of whole numbers, and all that may hold scores
WHOLE: Final = r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER"
_NUMBERS: Final = rf"{WHOLE}|FLOAT|DOUBLE|DECIMAL\(.*\)|BOOLEAN|VARCHAR|JSON"
_TIMES: Final = rf"{WHOLE}|FLOAT|DOUBLE|DECIMAL\(.*\)|TIMESTAMP.*|DATE|TIME.*"
_TEXTS: Final = ("VARCHAR", "JSON")
# the names of folders are not data
_NO_FOLDERS: Final = "hive_partitioning = false"
# the number of durations among the types of Arrow
_DURATION: Final = 18
_READERS: Final = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "read_csv"),
    **dict.fromkeys((".parquet", ".pq"), "read_parquet"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "read_json"),
    **dict.fromkeys((".npy", ".npz"), "numpy"),
}
# s3://, https:// and the like; a drive of Windows has one letter
_REMOTE: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]+://")
_BLOCK: Final = 1 << 16
_SPOOLED: Final = "standard-input"


class FoundFiles(NamedTuple):
    """Files: the names that the user gave, their paths, their reader, and a folder for temporary files."""

    names: list[str]
    files: list[Path]
    reader: str
    scratch: Path

    @property
    def source_names(self) -> list[str]:
        """The name of each file in a column of sources: its path, or - for standard input."""
        return ["-" if file.with_suffix("") == self.scratch / _SPOOLED else str(file) for file in self.files]


@contextmanager
def found_files(paths: Sequence[str], start: bytes = b"") -> Iterator[FoundFiles]:
    """Yield the files of paths, patterns or "-": standard input, whose `start` was already read."""
    if list(paths).count("-") > 1:
        raise InputError("standard input can be read only once; name - once")
    with scratch_folder() as scratch:
        files = [file for path in paths for file in find_files(path, scratch, start)]
        found = FoundFiles(list(paths), files, reader_of(files), scratch)
        by_inode: dict[tuple[int, int], Path] = {}
        for file in files:
            facts = file.stat()
            first = by_inode.setdefault((facts.st_dev, facts.st_ino), file)
            if first is not file:
                twice = f"{file} is named twice" if file == first else f"{first} and {file} are one file"
                raise InputError(f"{twice}, and its rows would count twice; name it once")
        for alike in _same_content(files):
            names = [found.source_names[files.index(one)] for one in alike]
            shown = " and ".join("standard input" if name == "-" else name for name in names)
            twice = f"{shown} have the same content; if that is one table twice, its rows count twice"
            warnings.warn(twice, PACWrapWarning, stacklevel=2)
        yield found


def _same_content(files: list[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield pairs of files with the same content, the earlier file first."""
    sizes = Counter(file.stat().st_size for file in files)
    alike: dict[tuple[int, bytes], list[Path]] = {}
    for file in files:
        size = file.stat().st_size
        if sizes[size] > 1:
            with file.open("rb") as opened:
                start = sha256(opened.read(_BLOCK)).digest()
            earlier = alike.setdefault((size, start), [])
            first = next((one for one in earlier if cmp(one, file, shallow=False)), None)
            if first is not None:
                yield first, file
            else:
                earlier.append(file)


def find_files(path: str, scratch: Path, start: bytes = b"") -> list[Path]:
    """Return the files of a path, a pattern or "-" (standard input)."""
    if path == "-":
        return [_spooled(scratch, start)]
    if _REMOTE.match(path) and not Path(path).exists():
        raise InputError(
            f"{path} is not a local file; copy it to this machine, or pipe it in and name - instead"
        )
    file = Path(path)
    found = [file]
    if file.is_dir():
        endings = Counter(ending for one in file.iterdir() if (ending := _ending(one)) in _READERS)
        example = [f", for example {path.rstrip('/')}/*{ending}" for ending, _ in endings.most_common(1)]
        raise InputError(f"{path} is a folder; name the files in it{''.join(example)}")
    if not file.exists() and has_magic(path):
        found = sorted(Path(name) for name in glob(path, recursive=True) if Path(name).is_file())
        if not found:
            raise InputError(f"no file matches {path}")
    elif not file.exists():
        near = get_close_matches(file.name, [other.name for other in file.parent.glob("*")], 1)
        hint = f"; did you mean {file.parent / near[0]}?" if near else "; check the path"
        raise InputError(f"there is no file {path}{hint}")
    for one in found:
        if not is_unicode(str(one)):
            shown = str(one).encode("utf-8", "backslashreplace").decode()
            raise InputError(
                f"file names must be UTF-8, got {shown}; rename the file, or pipe it in and name - instead"
            )
        facts = one.stat()
        if not stat.S_ISREG(facts.st_mode):
            raise InputError(
                f"{one} must be a regular file, as it is read more than once; pipe it in and name - instead"
            )
        if facts.st_size == 0:
            raise InputError(f"{one} is empty; it needs a header and rows")
    return found


def _spooled(scratch: Path, start: bytes) -> Path:
    """Return a file with the content of standard input, named after its format."""
    target, stream = scratch / _SPOOLED, text_format.standard_input()
    with target.open("wb") as copy:
        copy.write(start)
        while chunk := stream.read(1 << 20):
            copy.write(chunk)
    with target.open("rb") as copy:
        first = copy.read(_BLOCK)
    if not first:
        raise InputError(text_format.EMPTY_INPUT)
    suffix = ".jsonl" if text_format.is_json(first) else ".csv"
    return target.rename(target.with_suffix(".parquet" if first[:4] == text_format.PARQUET else suffix))


def _ending(file: Path) -> str:
    """Return the ending that names the format: the last one, not counting .gz."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] == csv_files.PACKED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def reader_of(files: list[Path]) -> str:
    """Return the DuckDB function that reads files of this format, or "numpy"."""
    readers = set()
    for file in files:
        if _ending(file) not in _READERS:
            endings = f"{', '.join(_READERS)} (and {csv_files.PACKED})"
            raise InputError(f"{file} has no known format; the endings are {endings}")
        readers.add(_READERS[_ending(file)])
    if len(readers) > 1:
        raise InputError("the tables have different formats; use files of one format")
    return readers.pop()


def durations(schema: bytes) -> set[str]:
    """Return the columns of durations by Arrow's own schema in a Parquet file; Parquet has no such type."""
    try:
        data = b64decode(schema)
        start = 8 if data[:4] == b"\xff\xff\xff\xff" else 4

        def number(kind: str, at: int) -> int:
            return int(unpack_from(f"<{kind}", data, at)[0])

        def field(table: int, place: int) -> int:
            offsets = table - number("i", table)
            inside = 4 + 2 * place < number("H", offsets)
            at = number("H", offsets + 4 + 2 * place) if inside else 0
            return table + at if at else 0

        def follow(at: int) -> int:
            return at + number("I", at)

        fields = follow(field(follow(field(follow(start), 2)), 1))
        found = set()
        for place in range(number("I", fields)):
            column = follow(fields + 4 + 4 * place)
            name, kind = follow(field(column, 0)), field(column, 2)
            if kind and data[kind] == _DURATION:
                found.add(data[name + 4 : name + 4 + number("I", name)].decode())
    except (ValueError, too_short, IndexError):
        return set()
    return found


class Table:
    """Several files as one table, made by `open_table`; its view `source` has the wanted columns as read."""

    def __init__(
        self,
        database: duckdb.DuckDBPyConnection,
        found: FoundFiles,
        wanted: Sequence[str],
        *,
        number: str | None = None,
        whole: bool = False,
        delimiter: str | None = None,
        source: str | None = None,
    ) -> None:
        self._connection = database
        # the function that hears the progress of a query, and one that opens the table with its rows in order
        self.progress: connection.Progress = lambda done: None
        self.again: Callable[[], AbstractContextManager[Table]] | None = None
        self.names, self.files, self.reader, self.scratch = found
        self.csv_files: list[csv_files.CsvFile] = []
        # the number of rows in the files, if it is known
        self.counted: int | None = None
        # stands after FROM and has every column, of JSON only the wanted ones; for Parquet it is not a query:
        # each * takes DuckDB a time that grows with the square of the number of columns
        self.everything = "source"
        # returns `everything` in the form that never fails, if that is another one
        self._thorough: Callable[[], str] | None = None
        # whether threads share a file with quotes in `everything`, where DuckDB may fail
        self._shared = False
        self._score_types: dict[str, ScoreType] = {}
        self._passes = 0
        # the condition of the rows that are left out, and their number
        self._gone: tuple[str, int] | None = None
        # a further column, and what follows the columns of each file
        added, named = list[str](), [""] * len(self.files)
        if source is not None:
            added.append(source)
            named = [f", {quote_text(one)} AS {quote_name(source)}" for one in found.source_names]
        if self.reader != "read_csv":
            checks.only_in_csv(delimiter)
        if self.reader == "numpy":
            arrays = numpy_columns(self.files, source, found.source_names)
            self._score_types = {name: score_type(column.dtype) for name, column in arrays.items()}
            # DuckDB has no numbers of two bytes
            halves = {name: one.astype(np.float32) for name, one in arrays.items() if one.dtype == np.half}
            database.register("source", arrays | halves)
            self.columns, self.types = list(arrays), self.types_of("source")
        elif self.reader == "read_csv":
            self.csv_files = [csv_files.survey(file, wanted, delimiter) for file in self.files]
            self._open_csv(wanted, number, whole, added, named)
        elif self.reader == "read_json":
            self._open_json(wanted)
        else:
            self._open_parquet(wanted, added, named)

    def _open_json(self, wanted: Sequence[str]) -> None:
        """Copy the wanted columns, the scores first; DuckDB itself would guess the types."""
        score, *others = wanted
        places = {name: f"c{place}" for place, name in enumerate(wanted)}
        types = dict.fromkeys(places.values(), "VARCHAR") | {"c0": "DOUBLE"}
        table = connection.Growing(self._connection, "loaded", types)
        names: list[list[str]] = []
        with text_format.without_collector():
            for file in self.files:
                with csv_files.opened_json(file) as found:
                    for batch in found:
                        columns: dict[str, Any] = {places[one]: found.column(one, batch) for one in others}
                        scores = found.numbers(score, batch) if table.types["c0"] == "DOUBLE" else None
                        if scores is None and table.types["c0"] == "DOUBLE":
                            table.widen("c0")  # there are texts among the scores
                        columns["c0"] = found.column(score, batch) if scores is None else scores
                        found.refuse_odd(columns.values())
                        table.add(columns, len(batch.rows))
                    names.append(list(found.names))
            table.flush()
        if not table.rows:
            raise checks.no_rows([*map(str, self.files)])
        checks.require_in_all(self.files, names, wanted)
        self.columns, self.counted = list(dict.fromkeys(chain.from_iterable(names))), table.rows
        self.types = {name: table.types[place] for name, place in places.items() if name in self.columns}
        shown = ", ".join(f"{places[name]} AS {quote_name(name)}" for name in self.types)
        self._connection.execute(f"CREATE VIEW source AS SELECT {shown or '*'} FROM loaded")

    def _open_parquet(self, wanted: Sequence[str], added: list[str], named: Sequence[str]) -> None:
        texts = [connection.file_text(file, self.scratch) for file in self.files]
        names = []
        for file, text in zip(self.files, texts, strict=True):
            schema = f"SELECT name, coalesce(num_children, 0) FROM parquet_schema({text})"
            own, inside = list[str](), 0
            # which lists a node before its children, the root first
            for name, children in self._connection.execute(schema).fetchall()[1:]:
                own += [] if inside else [name]
                inside = max(0, inside - 1) + children
            checks.refuse_twins(own, file)
            names.append(own)
        checks.require_in_all(self.files, names, wanted)
        self.columns = list(dict.fromkeys(chain.from_iterable(names)))
        present = [name for name in wanted if name in self.columns] or self.columns[:1]
        shown, listed = ", ".join(map(quote_name, present)), ", ".join(texts)
        each = [f"read_parquet({one}, {_NO_FOLDERS})" for one in texts]
        mixed: list[str] = []
        rows = self.everything = each[0]
        if len(each) > 1:
            rows = self.everything = f"read_parquet([{listed}], {_NO_FOLDERS}, union_by_name = true)"
            kinds, together = [self.types_of(one, shown) for one in each], self.types_of(rows, shown)
            mixed = [one for one in present if together[one] == "FLOAT" and len({k[one] for k in kinds}) > 1]
        if mixed or any(named):
            # where one file has float32 and another whole numbers, DuckDB would make float32 of both
            doubles = ", ".join(f"CAST({quote_name(name)} AS DOUBLE) AS {quote_name(name)}" for name in mixed)
            every = f"* REPLACE ({doubles})" if mixed else "*"
            selects = (f"(SELECT {every}{more} FROM {one})" for one, more in zip(each, named, strict=True))
            self.everything = f"({' UNION ALL BY NAME '.join(selects)})"
        checks.refuse_added(self.columns, added)
        shown_of = self.everything if mixed else rows
        self._connection.execute(f"CREATE VIEW source AS SELECT {shown} FROM {shown_of}")
        counted = f"SELECT sum(num_rows) FROM parquet_file_metadata([{listed}])"
        ((self.counted,),) = self._connection.execute(counted).fetchall()
        self.types = self.types_of("source")
        if "BIGINT" in self.types.values():
            told = f"SELECT DISTINCT value FROM parquet_kv_metadata([{listed}]) WHERE key = 'ARROW:schema'"
            for (schema,) in self._connection.execute(told).fetchall():
                self.types |= dict.fromkeys(durations(schema) & self.types.keys(), "INTERVAL")

    def _open_csv(
        self, wanted: Sequence[str], number: str | None, whole: bool, added: list[str], named: Sequence[str]
    ) -> None:
        """Open columns as texts, NULL for empty cells; `whole` opens all columns, typed for the output."""
        files = self.csv_files
        names = [file.header.names for file in files]
        checks.require_in_all(self.files, names, wanted)
        columns = checks.all_columns(self.files, names)
        checks.refuse_added(columns, added)
        checks.require_columns(wanted, columns)
        shown = columns if whole else [name for name in columns if name in wanted] or columns[:1]
        quoted = csv_files.quoted_names(shown)
        query = partial(csv_files.csv_queries, self._connection, files, quoted, self.scratch, named)
        known = csv_files.kinds_of(files)
        typed: dict[str, csv_files.Kind] = dict.fromkeys(columns, "VARCHAR")
        if not whole and number is not None and known is not None and known[number] != "VARCHAR":
            typed[number] = "DOUBLE"
        texts, self.counted = query(typed)
        picked = ", ".join(quoted[name] for name in shown if name in wanted) or "*"
        self._connection.execute(f"CREATE VIEW source AS SELECT {picked} FROM ({texts})")
        self.columns, self.types = columns, {name: typed[name] for name in wanted}
        if not whole:
            self.everything = f"({texts})"
            return
        kinds = known or csv_files.kinds_in(self._connection, texts, quoted, wanted)
        score = wanted[0]
        numbers: csv_files.Kind = "VARCHAR" if kinds[score] == "VARCHAR" else "DOUBLE"
        kinds = {**kinds, **dict.fromkeys(wanted, "VARCHAR"), score: numbers}
        casts = {name: f"CAST({text} AS {kinds[name]}) AS {text}" for name, text in quoted.items()}
        if numbers == "VARCHAR":
            casts[score] = f"{csv_files.checked_score(quoted[score])} AS {quoted[score]}"
        listed = ", ".join([*casts.values(), *map(quote_name, added)])

        def everything(shared: bool) -> str:
            return f"(SELECT {listed} FROM ({texts if known is None else query(kinds, shared=shared)[0]}))"

        self.everything, self._thorough = everything(True), partial(everything, False)
        self._shared = known is not None and any(file.quoted for file in files)

    def types_of(self, relation: str, columns: str = "*") -> dict[str, str]:
        """Return the types of columns of a relation, given as it stands after FROM."""
        # DESCRIBE would go through all columns twice
        found = self._connection.sql(f"SELECT {columns} FROM {relation}")
        return dict(zip(found.columns, map(str, found.types), strict=True))

    @contextmanager
    def in_order(self) -> Iterator["Table"]:
        """Yield the same table with its rows in order."""
        if self.again is None:
            yield self
            return
        with self.again() as table:
            if self._gone is not None:
                table._without(*self._gone)
            yield table

    def leave_out(self, label: str, texts: Sequence[str]) -> None:
        """Leave out rows with one of these labels, and warn how many; "" stands for a missing label."""
        checks.require_columns([label], self.columns)
        for one in texts:
            if not {*checks.spellings(one)}.isdisjoint(checks.TRUE + checks.FALSE):
                raise InputError(f"--leave-out must name a third label, got {one}, a class; name another one")
        ways = [way for one in texts for way in checks.spellings(one)]
        gone = f"coalesce({one_of(label_sql(label), ways)}, {'true' if '' in texts else 'false'})"
        ((count,),) = self.rows(f"SELECT count(*) FROM source WHERE {gone}")
        self._without(gone, count)
        what = f"{amount(count, 'row')} with the label {' or '.join(map(quoted, texts))}"
        warnings.warn(f"{what} left out", PACWrapWarning, stacklevel=5)

    def _without(self, gone: str, count: int) -> None:
        self.rows("ALTER VIEW source RENAME TO every_row")
        self.rows(f"CREATE VIEW source AS SELECT * FROM every_row WHERE NOT ({gone})")
        self._gone = gone, count
        if self.counted is not None:
            self.counted -= count

    def first_scores(self, score: str, rows: int = 1000) -> Scores:
        """Return the scores of the first rows, NaN where one is missing."""
        self.require_numbers(score)
        return _filled(self.arrays(f"SELECT {self.score_sql(score)} AS score FROM source LIMIT {rows}"))

    def labelled(self, score: str, label: str, anomaly_label: str | None) -> tuple[Scores, NDArray[np.bool_]]:
        """Return the scores, and where the label marks an anomaly."""
        checks.require_two(score, label)
        self.require_numbers(score)
        anomalous = self.anomalous_sql(label, anomaly_label)
        with self.in_order() as table:
            columns = f"{table.score_sql(score)} AS score, {anomalous} AS anomalous"
            arrays = table.arrays(f"SELECT {columns} FROM source")
            scores = _filled(arrays)
            if np.isnan(scores).any() or not scores.size:
                table.check_scores(score)
            table.expect(scores.size)
            return scores, np.asarray(arrays["anomalous"], dtype=bool)

    def in_units(
        self, score: str, label: str, unit: str, anomaly_label: str | None
    ) -> tuple[Scores, NDArray[np.bool_], list[Any]]:
        """Return the scores as they are stored, where the label marks an anomaly, and the units."""
        checks.refuse_as_third(unit, (score, label), "unit")
        with self.in_order() as table:
            scores, anomalous = table.labelled(score, label, anomaly_label)
            units = table.arrays(f"SELECT {quote_name(unit)} AS unit FROM source")["unit"]
            return scores.astype(table.score_type(score)), anomalous, units.tolist()

    def check_scores(
        self, score: str, on_missing: OnMissing = "stop", counted: Sequence[str] = ()
    ) -> tuple[int, ...]:
        """Return the numbers of all rows, of rows without a score, and of rows that meet each condition."""
        self.require_numbers(score)
        number, kind = self.score_sql(score), self.types[score]
        missing, text = f"{number} IS NULL OR isnan({number})", text_sql(score, kind)
        # an empty text is a missing score
        wrong = f"{number} IS NULL AND {text} <> ''" if kind in ("VARCHAR", "JSON") else "false"
        tests = ", ".join(f"count(*) FILTER ({one})" for one in (wrong, missing, *counted))
        with self.in_order() as table:
            ((rows, bad, count, *others),) = table.rows(f"SELECT count(*), {tests} FROM source")
            self.expect(rows)
            if not rows:
                raise checks.no_rows(self.names)
            if bad or (count and on_missing == "stop"):
                csv_files.refuse_scores(self.csv_files, score)
                marked = f"{text} AS text, {wrong} AS bad, {missing} AS gone"
                numbered = f"SELECT row, text FROM (SELECT row_number() OVER () AS row, {marked} FROM source)"
                for row, value in table.rows(f"{numbered} WHERE bad ORDER BY row LIMIT 1"):
                    raise checks.not_a_number(score, value, row)
                ((row, _),) = table.rows(f"{numbered} WHERE gone ORDER BY row LIMIT 1")
                raise checks.missing_scores(score, count, rows, row)
        return rows, count, *others

    def expect(self, rows: int) -> None:
        """Check that the engine has read as many rows as the files hold."""
        checks.expect_rows(self.names, self.counted, rows)

    def score_type(self, score: str) -> ScoreType:
        """Return the type of the scores in these files; texts are read as doubles."""
        usual: ScoreType = "float32" if self.types[score] == "FLOAT" else "float64"
        return self._score_types.get(score, usual)

    def look_at_all_cells(self) -> None:
        """Read CSV files in the way that never fails: types that fit every cell, one thread for quotes."""
        if self._thorough is not None:
            self.everything, self._shared = self._thorough(), False

    def score_sql(self, score: str) -> str:
        """Return the score as an SQL expression, NULL where it is not a number."""
        return score_sql(score, self.types[score])

    def require_numbers(self, score: str) -> None:
        """Refuse a score column that does not exist or holds neither numbers nor texts."""
        checks.require_columns([score], self.columns)
        kind = self.types[score]
        if not re.fullmatch(_NUMBERS, kind):
            raise InputError(
                f"column {score!r} must hold numbers, but its type is {kind}; pick the score column"
            )

    def anomalous_sql(self, label: str, anomaly_label: str | None) -> str:
        """Return the SQL condition that is true for anomalies, after checking all labels."""
        checks.require_columns([label], self.columns)
        text = label_sql(label)
        counts = f"SELECT {text}, count(*) FROM source GROUP BY 1 ORDER BY 1 LIMIT {checks.LOOKED_AT}"
        counted = [(value, count) for value, count in self.rows(counts)]
        return one_of(text, checks.anomaly_marks(counted, label, anomaly_label))

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._watched(query):
            return self._connection.execute(query).fetchall()

    def register(self, name: str, columns: dict[str, NDArray[Any]]) -> None:
        """Make arrays a table of the database with this name."""
        self._connection.register(name, columns)

    def batches(self, query: str, formats: bytes = connection.PAIR) -> Generator[tuple[NDArray[Any], ...]]:
        """Yield the columns of a query in batches, in these formats; see `files.connection`."""
        with self._watched(query):
            yield from connection.batches(self._connection.sql(query), formats)

    def arrays(self, query: str) -> dict[str, Any]:
        """Return the columns of a query as arrays."""
        with self._watched(query):
            return self._connection.execute(query).fetchnumpy()

    @contextmanager
    def _watched(self, query: str = "") -> Iterator[None]:
        """Report the progress of a query, a whole pass unless it has a limit, and its errors."""
        self._passes += " LIMIT " not in query
        over, number = Event(), max(1, self._passes)

        def watch() -> None:
            while not over.wait(0.2):
                share = max(0.0, self._connection.query_progress())
                self.progress(connection.Done(share, number, self.counted))

        thread = Thread(target=watch, daemon=True)
        thread.start()
        try:
            try:
                yield
            finally:
                over.set()
                thread.join()
        except (duckdb.Error, RuntimeError) as error:
            instead = connection.refusal(error, self.names)
            if isinstance(instead, InputError):
                if self._shared and not isinstance(error, duckdb.IOException):
                    raise connection.MisfitError from error
                csv_files.refuse_rows(self.csv_files)
            raise instead from error


@contextmanager
def open_found(
    found: FoundFiles,
    scores: Sequence[str],
    label: str | None = None,
    *,
    whole: bool = False,
    output: Path | None = None,
    source: str | None = None,
    passes: bool = False,
    delimiter: str | None = None,
    leave_out: Sequence[str] = (),
    progress: connection.Progress = lambda done: None,
) -> Iterator[Table]:
    """Open files as one table, and read only the columns of scores and labels."""
    wanted = list(dict.fromkeys([*scores, *([] if label is None else [label])]))
    number = wanted[0] if scores and wanted[0] != label else None
    with connection.connected(found.files, found.scratch, output, passes=passes) as database:
        try:
            table = Table(
                database, found, wanted, number=number, whole=whole, delimiter=delimiter, source=source
            )
        except (duckdb.Error, RuntimeError) as error:
            instead = connection.refusal(error, found.names)
            if isinstance(instead, InputError):
                instead = InputError(f"{instead}; check that the file is complete and that its ending fits")
            raise instead from error
        table.progress = progress
        if passes:
            table.again = partial(open_found, found, scores, label, delimiter=delimiter, progress=progress)
        if leave_out and label is not None:
            table.leave_out(label, leave_out)
        yield table


@contextmanager
def open_table(
    paths: Sequence[str], scores: Sequence[str], label: str | None = None, **options: Any
) -> Iterator[Table]:
    """Open files, patterns or "-" (standard input) as one table, as `open_found` does."""
    with found_files(paths) as found, open_found(found, scores, label, **options) as table:
        yield table


class RowsInTime(NamedTuple):
    """Scores and labels of all rows, ordered by series and time; a missing score is NaN."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    scores: NDArray[np.floating[Any]]
    anomalous: NDArray[np.bool_]


def rows_in_time(
    table: Table, score: str, label: str, anomaly_label: str | None, time: str, series: str | None = None
) -> RowsInTime:
    """Return the rows of a table by series and time; without `series`, all rows are one series."""
    checks.require_two(score, label)
    table.require_numbers(score)
    checks.require_columns([time] if series is None else [time, series], table.columns)
    anomalous = table.anomalous_sql(label, anomaly_label)
    number, kind = table.score_sql(score), table.types[score]
    if kind in _TEXTS:
        text = text_sql(score, kind)
        strange = table.rows(f"SELECT count(*) FROM source WHERE {text} IS NOT NULL AND {number} IS NULL")
        if strange[0][0]:
            table.check_scores(score)
    when = _time_sql(table, time)
    whose = "''" if series is None else f"CAST({text_sql(series, table.types[series])} AS VARCHAR)"
    counted = table.rows(f"SELECT {whose}, count(*) FROM source GROUP BY 1 ORDER BY 1")
    if not counted:
        raise checks.no_rows(table.names)
    if series is not None and counted[-1][0] is None:  # NULL comes last
        empty = amount(counted[-1][1], "row")
        raise InputError(f"column {quoted(series)} is empty in {empty}; fill in the series")
    # two rows of one series at one time have no order
    for at, name, count in table.rows(
        f"SELECT CAST({when} AS VARCHAR), {whose}, count(*) FROM source GROUP BY {when}, {whose}"
        " HAVING count(*) > 1 ORDER BY 2, 1 LIMIT 1"
    ):
        of, remedy = ("", "name the column of series with --series, or keep one of these rows")
        if series is not None:
            of, remedy = f" of series {quoted(name)}", "keep one of these rows"
        raise InputError(
            f"column {quoted(time)} has {count:,} rows{of} at {at}, whose order is unknown; {remedy}"
        )
    found = table.arrays(
        f"SELECT {number} AS score, {anomalous} AS anomalous FROM source"
        f" ORDER BY {'' if series is None else f'{whose}, '}{when}"
    )
    scores = _filled(found).astype(table.score_type(score))
    table.expect(scores.size)
    names, sizes = zip(*counted, strict=True)
    return RowsInTime(names, sizes, scores, np.asarray(found["anomalous"], bool))


def _filled(arrays: dict[str, Any]) -> Scores:
    return np.ma.filled(np.ma.asarray(arrays["score"], dtype=np.float64), np.nan)


def _time_sql(table: Table, time: str) -> str:
    """Return the SQL expression that orders the rows, after checking all times."""
    kind, column = table.types[time], quote_name(time)
    if kind not in _TEXTS:
        if not re.fullmatch(_TIMES, kind):
            raise InputError(
                f"column {quoted(time)} must hold numbers, dates or time stamps, but its type is {kind}; name"
                " the column of times"
            )
        ways = [column]
    else:
        column = text_sql(time, kind)
        ways = [number_sql(column), f"TRY_CAST({column} AS TIMESTAMP)"]
    nan = "false" if kind not in ("FLOAT", "DOUBLE") else f"isnan({column})"
    missing, *unread = table.rows(
        f"SELECT count(*) FILTER ({column} IS NULL OR {nan}),"
        f" {', '.join(f'count(*) FILTER ({way} IS NULL)' for way in ways)} FROM source"
    )[0]
    if missing:
        raise InputError(
            f"column {quoted(time)} is empty or NaN in {amount(missing, 'row')}; drop them or add their time"
        )
    for way, count in zip(ways, unread, strict=True):
        if not count:
            return way
    unknown = f"{ways[0]} IS NULL AND {ways[1]} IS NULL"
    found = table.rows(f"SELECT {column} FROM source WHERE {unknown} LIMIT 1")
    example = f", got {quoted(found[0][0])}" if found else ", got both"
    raise InputError(
        f"column {quoted(time)} must hold numbers or times such as 2027-01-31 12:00:00{example};"
        " fix those rows"
    )


# the name of a table, the row of each key, its columns of scores, and its labels if it has any
_Part = tuple[str, dict[str, int], dict[str, Scores], NDArray[np.bool_] | None]


def joined(
    paths: Sequence[str],
    scores: Sequence[str],
    label: str,
    key: str,
    *,
    anomaly_label: str | None = None,
    delimiter: str | None = None,
    progress: connection.Progress = lambda share: None,
) -> dict[str, tuple[Scores, NDArray[np.bool_]]]:
    """Return each column of scores with its labels, joined by a key, in the row order of the first table."""
    if key in (*scores, label):
        raise InputError(f"column {quoted(key)} cannot be the key and a score or label; name two columns")
    for one in scores:
        checks.require_two(one, label)
    parts: list[_Part] = []
    columns: dict[str, None] = {}
    for path in paths:
        with found_files([path]) as found:
            with open_found(found, [key], delimiter=delimiter) as table:
                known = list(table.columns)
            checks.require_columns([key], known)
            columns |= dict.fromkeys(known)
            mine = [one for one in dict.fromkeys(scores) if one in known]
            its_label = label if label in known else None
            # the first of them may be read as scores are, and the key never
            wanted = [*(mine or [label] * (label in known)), key]
            with open_found(found, wanted, its_label, delimiter=delimiter, progress=progress) as table:
                parts.append(_part(table, mine, key, its_label, anomaly_label))
    checks.require_columns([*scores, label], columns)
    for one in scores:
        holders = [name for name, _, own, _ in parts if one in own]
        if len(holders) > 1:
            raise InputError(f"column {quoted(one)} is in {' and in '.join(holders)}; rename one of them")
    values: dict[str, Scores] = {}
    labelled: list[tuple[str, NDArray[np.bool_]]] = []
    first, keys, *_ = parts[0]
    for name, rows, own, marks in parts:
        lacking = [one for one in keys if one not in rows]
        more = [one for one in rows if one not in keys]
        if lacking or more:
            which = quoted((lacking or more)[0])
            raise InputError(
                f"{len(lacking):,} keys of {first} are not in {name}, and {len(more):,} keys of {name} not in"
                f" {first}, such as {which} in column {quoted(key)}; keep the rows that both have"
            )
        order = np.fromiter((rows[one] for one in keys), np.intp, len(keys))
        values |= {one: column[order] for one, column in own.items()}
        labelled += [] if marks is None else [(name, marks[order])]
    name, anomalous = labelled[0]
    for other, marks in labelled[1:]:
        if differ := int(np.count_nonzero(marks != anomalous)):
            raise InputError(
                f"column {quoted(label)} differs between {name} and {other} in {differ:,} of"
                f" {anomalous.size:,} rows; fix the labels, or drop that column from one of them"
            )
    return {one: (values[one], anomalous) for one in scores}


def _part(table: Table, scores: list[str], key: str, label: str | None, anomaly_label: str | None) -> _Part:
    for one in scores:
        table.check_scores(one)
    read = [f"CAST({quote_name(key)} AS VARCHAR) AS k"]
    read += [f"{table.score_sql(one)} AS s{place}" for place, one in enumerate(scores)]
    read += [] if label is None else [f"{table.anomalous_sql(label, anomaly_label)} AS anomalous"]
    arrays = table.arrays(f"SELECT {', '.join(read)} FROM source")
    name, keys = visible(table.names[0]), np.ma.asarray(arrays["k"]).tolist()
    if missing := sum(one is None or one == "" for one in keys):
        keyless = amount(missing, "row")
        raise InputError(f"{name} has {keyless} without a key in column {quoted(key)}; fill them in")
    rows = {one: place for place, one in enumerate(keys)}
    if len(rows) < len(keys):
        twice = next(one for place, one in enumerate(keys) if rows[one] != place)
        raise InputError(
            f"{name} has {amount(len(keys) - len(rows), 'row')} with the key of another row, such as"
            f" {quoted(twice)}; use a column other than {quoted(key)}, or keep one row for each key"
        )
    values = {one: np.asarray(arrays[f"s{place}"], dtype=np.float64) for place, one in enumerate(scores)}
    return name, rows, values, None if label is None else np.asarray(arrays["anomalous"], dtype=bool)
