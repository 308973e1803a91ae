"""Reviews of traffic in files: answers go in by key, and the next rows to review come out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pac_wrap.base.arguments import Scores
from pac_wrap.base.text import quoted, visible
from pac_wrap.errors import InputError
from pac_wrap.method.certificate import Certificate
from pac_wrap.method.promise import Error
from pac_wrap.method.traffic.review import ReviewQueue
from pac_wrap.tables.calibrate import TrafficTable
from pac_wrap.tables.columns import REVIEWS, refuse_as_third, require_columns
from pac_wrap.tables.sql import quote_name
from pac_wrap.tables.table import FoundFiles, Table, found_files, open_found

# the key and the answer of a row, while both stand beside the columns of a table; no table has such
_KEY, _ANSWER = '"pac-wrap key"', '"pac-wrap answer"'


def answers_in(files: Sequence[str], key: str, review: str, delimiter: str | None = None) -> dict[str, str]:
    """Return the answers in files by the key of their row; an empty one is no answer."""
    refuse_as_third(key, [review], "key")
    with found_files(files) as found, open_found(found, [review, key], review, delimiter=delimiter) as table:
        require_columns([key, review], table.columns)
        both = ", ".join(f"CAST({quote_name(one)} AS VARCHAR)" for one in (key, review))
        answers: dict[str, str] = {}
        for name, answer in table.rows(f"SELECT {both} FROM source"):
            if answer in (None, "", "nan"):
                continue
            if name in (None, "") or name in answers:
                what = "no key" if name in (None, "") else f"the key {quoted(name)}, as an earlier one"
                raise InputError(
                    f"an answer in {visible(', '.join(files))} has {what}; give each reviewed row one answer"
                    f" and its key in column {quoted(key)}"
                )
            answers[name] = answer
    return answers


@contextmanager
def open_answered(
    found: FoundFiles, columns: Sequence[str], answers: dict[str, str], key: str, review: str, **options: Any
) -> Iterator[Table]:
    """Open traffic with answers in a column of reviews, over what stands there."""
    wanted = [one for one in dict.fromkeys([*columns, key]) if one != review]
    with open_found(found, wanted, **options) as table:
        if review not in table.columns:
            yield _answered(table, answers, key, review)
            return
    with open_found(found, [*wanted, review], **options) as table:
        yield _answered(table, answers, key, review)


def _answered(table: Table, answers: dict[str, str], key: str, review: str) -> Table:
    require_columns([key], table.columns)
    text, shown = f"CAST({quote_name(key)} AS VARCHAR)", quote_name(review)
    arrays = {"key": list(answers) or [""], "answer": list(answers.values()) or [""]}
    table.register("given", {name: np.array(column, dtype=object) for name, column in arrays.items()})
    table.rows(f"CREATE TABLE answers AS SELECT key AS {_KEY}, answer AS {_ANSWER} FROM given")
    wanted = f"{text} IN (SELECT {_KEY} FROM answers)"
    known = dict(table.rows(f"SELECT {text}, count(*) FROM source WHERE {wanted} GROUP BY 1"))
    for name in answers:
        if known.get(name) != 1:
            rows = f"{known[name]:,} rows" if name in known else "no row"
            raise InputError(
                f"{rows} of {visible(', '.join(table.names))} have the key {quoted(name)} of an answer in"
                f" column {quoted(key)}; each reviewed row needs a key of its own"
            )
    there = review in table.columns
    own = f"coalesce({_ANSWER}, CAST({shown} AS VARCHAR))" if there else _ANSWER
    every = f"* EXCLUDE ({', '.join([_KEY, _ANSWER, *[shown] * there])}), {own} AS {shown}"
    joined = f"LEFT JOIN answers ON {text} = {_KEY}"
    table.rows("ALTER VIEW source RENAME TO unanswered")
    table.rows(f"CREATE VIEW source AS SELECT {every} FROM unanswered {joined}")
    if table.everything != "source":
        table.everything = f"(SELECT {every} FROM {table.everything} {joined})"
    table.columns = list(dict.fromkeys([*table.columns, review]))
    table.types[review] = "VARCHAR"
    return table


def queue_of(rows: TrafficTable, made: Certificate, count: int) -> tuple[ReviewQueue, Scores]:
    """Return the queue that names up to `count` rows to review next, and the scores of its rows."""
    errors = [one.errors for one in made.of("normal") if one.of.error is Error.FALSE_ALARM]
    few = [0 if one is None else one + 1 for one in errors]
    scored, number = f"NOT ({rows.number} IS NULL OR isnan({rows.number}))", f"CAST({rows.number} AS DOUBLE)"

    def highest(state: object, limit: int) -> list[float]:
        found = rows.table.rows(
            f"SELECT {number} AS score FROM {rows.relation}"
            f" WHERE {scored} AND {rows.mark} = {state} ORDER BY score DESC LIMIT {limit}"
        )
        return [score for (score,) in found]

    wrong, unseen = highest("0", max([0, *few])), highest(REVIEWS[""], count)
    scores = np.array(wrong + unseen, dtype=np.float64)
    reviews = np.repeat([0.0, np.nan], [len(wrong), len(unseen)])
    return ReviewQueue.of_highest(made, scores, reviews), scores
