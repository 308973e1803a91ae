"""JSON is read as what it is, by every command alike: compared with a reader apart, made of Python's json."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pac_wrap import GroupCertificate, Guarantee, calibrate_labelled
from pac_wrap.report.groups import account_of_measured_groups
from pac_wrap.report.render import as_json
from pac_wrap.streams.decide import types_holding
from pac_wrap.tables.files.text_format import Token
from support.shell import invoke, one_sentence, refused, succeeded, write

# groups with too few labels are what many of these are about
pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")

COLUMNS = ("--score", "s", "--label", "y", "--group", "g")
# few labels suffice, so that each group has a rule of its own
EASY = ("--max-fpr", "0.4", "--max-fnr", "0.4")
DECIDED = ("--score", "s", "--group", "g")

# groups as tokens, spelled alike and unlike
UUIDS = [
    f'"{text}"' for text in ("6F9619FF-8B86-D011-B42D-00C04FC964FF", "6f9619ff-8b86-d011-b42d-00c04fc964ff")
]
TIMES = ['"2026-01-31T10:00:00Z"', '"2026-01-31T10:00:00+00:00"', '"2026-01-31 10:00:00"']
DATES = ['"2026-01-31"', '"2026-1-31"', '"20260131"']
CLOCKS = ['"01:00"', '"01:00:00"', '"1:00"']
TEXTS = [
    '"1.50"',
    '"1.5"',
    '"007"',
    '"7"',
    '"true"',
    '"NaN"',
    '"null"',
    '""',
    '" "',
    '"\\u00e9"',
    '"a\\"b"',
    '"{[:"',
]
NUMBERS = ["7", "7.0", "0.7e1", "1.50", "-0", "12345678901234567890", "1e20", "1e400", "true", "null"]
# what stands in a column that nobody asks for
OTHERS = [
    *("9007199254740993", "1.5", "1.50", "1E5", "-0.0", "12345678901234567890123", "1e400", "null", "true"),
    *('"9007199254740993"', '"2026-1-31"', UUIDS[0], '"a,b"', '"\\ud83c\\udfb2"', '"x : y"', '"{"', '""'),
    *('[1.50, {"b": 1E2}]', '{"c": [9007199254740993.0]}', "[]", "{}"),
]
SCORES = ["1", "-2.50", "3E0", '"Infinity"', '"-inf"', "0.1", '"4"', "-0", "1e400"]


def known_as(token: str) -> str | None:
    """Return the text by which a group is known, found apart from the library."""
    value = json.loads(token, parse_float=Decimal)
    if isinstance(value, Decimal):
        number = float(value)
        if number in (np.inf, -np.inf):
            return token
        return str(int(number)) if number == int(number) and abs(number) < 1e18 else repr(number)
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


class Lines:
    """Generated JSON lines: their tokens, and the text of each row."""

    def __init__(self, groups: list[str], seed: int, rows: int = 400) -> None:
        rng = np.random.default_rng(seed)
        self.label = (rng.random(rows) < 0.5).astype(int)
        own = rng.integers(0, len(groups), rows)
        values = np.round(rng.normal(3 * self.label + 20 * own, 1), 3).tolist()
        scores = [repr(one) for one in values]
        for place in rng.choice(rows, len(SCORES), replace=False):
            scores[place] = SCORES[place % len(SCORES)]
        self.group = [groups[one] for one in own]
        other = [OTHERS[one] for one in rng.integers(0, len(OTHERS), rows)]
        ids = [str(10**19 + one) for one in range(rows)]
        self.scores = [float(one.strip('"')) for one in scores]
        self.cells: list[dict[str, str]] = []
        self.texts: list[str] = []
        for cells in zip(scores, map(str, self.label), self.group, other, ids, strict=True):
            row = dict(zip(("s", "y", "g", "other", "id"), cells, strict=True))
            names = [name for name in row if name != "other" or rng.random() < 0.9]
            names = [names[place] for place in rng.permutation(len(names))]
            self.cells.append({name: row[name] for name in names})
            comma, colon = [(",", ":"), (", ", ": "), (" ,", " : "), (",\t", "\t:")][rng.integers(0, 4)]
            self.texts.append("{" + comma.join(f'"{name}"{colon}{row[name]}' for name in names) + "}")

    @property
    def known(self) -> list[str | None]:
        return list(map(known_as, self.group))


def cell(token: str | None) -> str:
    """Return the text of a cell of CSV."""
    if token is None or token == "null":
        return ""
    return json.loads(token) if token.startswith('"') else token


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("groups", [UUIDS, TIMES, DATES, CLOCKS, TEXTS + NUMBERS], ids=str)
def test_every_command_reads_what_an_independent_reader_reads(
    groups: list[str], seed: int, tmp_path: Path
) -> None:
    lines = Lines(groups, seed)
    source = write(tmp_path / "in.jsonl", "\n".join(lines.texts) + "\n")
    expected = calibrate_labelled(lines.scores, lines.label, Guarantee(0.4, 0.4), by=lines.known)

    succeeded("calibrate", source, *COLUMNS, *EASY, "-o", tmp_path / "c.json", "-q")
    found = GroupCertificate.load(tmp_path / "c.json")
    assert found == expected
    assert found.groups == expected.groups
    verdicts = expected.verdicts(lines.scores, lines.known).tolist()
    assert {0, 1} <= set(verdicts)
    assert invoke("verify", tmp_path / "c.json", source, *COLUMNS).code == 0

    measured = expected.evaluate(lines.scores, lines.label, lines.known)
    said = json.loads(invoke("evaluate", tmp_path / "c.json", source, *COLUMNS, "--format", "json").out)
    assert said["groups"] == json.loads(as_json(account_of_measured_groups(expected, measured)))["groups"]

    decide = ("decide", tmp_path / "c.json", source, *DECIDED, "-q", "-o")
    succeeded(*decide, tmp_path / "out.jsonl")
    written = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [text.rpartition(',"verdict":')[0] for text in written] == [text[:-1] for text in lines.texts]
    assert [json.loads(text)["verdict"] for text in written] == verdicts
    piped = invoke("decide", tmp_path / "c.json", "-", *DECIDED, "-q", stdin=source.read_bytes())
    assert piped.out.splitlines() == written

    succeeded(*decide, tmp_path / "out.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    for name in ("s", "y", "g", "other", "id"):
        assert [row[name] for row in rows] == [cell(row.get(name)) for row in lines.cells], name
    assert [int(row["verdict"]) for row in rows] == verdicts

    succeeded(*decide, tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet")
    assert table["verdict"].to_pylist() == verdicts
    assert table["y"].to_pylist() == lines.label.tolist()
    for name in ("other", "id"):
        texts = [None if row.get(name, "null") == "null" else cell(row[name]) for row in lines.cells]
        assert table[name].to_pylist() == texts, name


def test_spellings_of_one_thing_are_two_groups_with_their_own_rules(tmp_path: Path) -> None:
    # group A clears what group B calls an anomaly; taken for one another, every normal point is an alarm
    rows = [
        (one + shift, one >= 100, name)
        for name, shift in zip(UUIDS, (0, 1000), strict=True)
        for one in range(200)
    ]
    text = "".join(f'{{"s": {score}, "y": {int(label)}, "g": {name}}}\n' for score, label, name in rows)
    source = write(tmp_path / "in.jsonl", text)
    succeeded("calibrate", source, *COLUMNS, "-o", tmp_path / "c.json", "-q")
    succeeded("decide", tmp_path / "c.json", source, *DECIDED, "-q", "-o", tmp_path / "out.jsonl")
    verdicts = [json.loads(line)["verdict"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert verdicts == [int(label) for _, label, _ in rows]


def test_scores_that_are_all_infinity_are_decided(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", '{"score": "Infinity"}\n{"score": "Infinity"}\n')
    certificate = Path(__file__).parents[1] / "golden" / "certificate.json"
    succeeded("decide", certificate, source, "--score", "score", "-q", "-o", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text().count('"verdict":1') == 2


@pytest.mark.parametrize("layout", ["[{}]", "[\n{}\n]\n", "{}"], ids=repr)
def test_arrays_and_objects_that_span_lines_are_read_the_same(layout: str, tmp_path: Path) -> None:
    lines = Lines(TEXTS + NUMBERS, 3)
    plain = write(tmp_path / "plain.jsonl", "\n".join(lines.texts))
    # spread over lines where JSON allows it
    spread = [text.replace("{", "{\n ", 1) for text in lines.texts]
    between = ",\n" if layout.startswith("[") else "\n"
    source = write(tmp_path / "in.json", layout.replace("{}", between.join(spread)))
    for one, name in ((plain, "plain"), (source, "spread")):
        succeeded("calibrate", one, *COLUMNS, *EASY, "-o", tmp_path / f"{name}.json", "-q")
        succeeded(
            "decide", tmp_path / f"{name}.json", one, *DECIDED, "-q", "-o", tmp_path / f"{name}.out.csv"
        )
    assert GroupCertificate.load(tmp_path / "plain.json") == GroupCertificate.load(tmp_path / "spread.json")
    plain_rows, spread_rows = ((tmp_path / f"{name}.out.csv").read_text() for name in ("plain", "spread"))
    assert plain_rows == spread_rows


@pytest.mark.parametrize(
    "text", ['[{"s": 1} {"s": 2}]', '[{"s": 1}, 2]', '[{"s": 1}', '{\n"s": 1}\n{"s"', "[[1]]", '[{"s": 1}]]']
)
def test_an_array_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in.json", text)
    assert "is not a JSON object" in refused(tmp_path, "decide", CERTIFIED, source, "--score", "s")


CERTIFIED = Path(__file__).parents[1] / "golden" / "certificate.json"
GOOD = '{"s": 1, "y": 0, "g": "a"}\n'
TWINS = [
    '{"s": 1, "y": 0, "s": 2, "g": "a"}',
    '{"s": 1, "y": 0, "g": "a", "g": "b"}',
    '{"s": 1, "y": 0, "x": {"a": 1, "a": 2}, "g": "a"}',
    '{"s":1,"y":0,"g":"a","\\u0067":"b"}',
    '{"s" :1,"y":0,"g":"a","z":1,"z" :1}',
]


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_an_object_with_a_name_twice_is_refused_by_every_reader(
    twin: str, ending: str, tmp_path: Path
) -> None:
    body = GOOD + twin + "\n" + GOOD
    if ending == "json":
        body = f"[{body.strip().replace(chr(10), ',')}]"
    source = write(tmp_path / f"in.{ending}", body)
    commands: list[tuple[Any, ...]] = [
        ("calibrate", source, "--score", "s", "--label", "y"),
        ("evaluate", CERTIFIED, source, "--score", "s", "--label", "y"),
        ("verify", CERTIFIED, source, "--score", "s", "--label", "y"),
        ("decide", CERTIFIED, source, "--score", "s", "-o", tmp_path / "o.jsonl"),
        ("decide", CERTIFIED, source, "--score", "s", "-o", tmp_path / "o.csv"),
        ("decide", CERTIFIED, source, "--score", "s", "-o", tmp_path / "o.parquet"),
        ("monitor", CERTIFIED, source, "--score", "s", "--label", "y", "--state", tmp_path / "m.json"),
    ]
    for words in commands:
        sentence = refused(tmp_path, *words)
        assert "row 2 has two columns named" in sentence, words
        assert sentence.endswith("rename one of them"), words
    piped = invoke("decide", CERTIFIED, "-", "--score", "s", stdin=body.encode())
    assert piped.code == 2
    assert "row 2 has two columns named" in one_sentence(piped.err)


def test_an_empty_object_has_no_score_and_stays_json(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", '{"score": 1}\n{}\n')
    succeeded("decide", CERTIFIED, source, "--score", "score", "-q", "-o", tmp_path / "out.jsonl")
    last = (tmp_path / "out.jsonl").read_text().splitlines()[1]
    assert json.loads(last) == {"verdict": -1, "prediction_set": "{0,1}"}


def test_an_array_without_rows_is_refused_as_such(tmp_path: Path) -> None:
    source = write(tmp_path / "in.json", "[]")
    for words in (("calibrate", source, *COLUMNS), ("decide", CERTIFIED, source, "--score", "s")):
        assert "has no rows; pass one with scores" in refused(tmp_path, *words)


def test_a_list_is_no_group(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", GOOD + '{"s": 1, "y": 0, "g": [1]}\n')
    words = "row 2 has a list or an object in column 'g'; name a column of single values"
    assert words in refused(tmp_path, "calibrate", source, *COLUMNS)


@pytest.mark.parametrize(
    ("tokens", "kind"),
    [
        (["1", "-9223372036854775808", "9223372036854775807"], "BIGINT"),
        (["1", "9223372036854775808"], "VARCHAR"),
        (["1", "1.5", "1.50", "1E5"], "DOUBLE"),
        (["9007199254740993", "1.5"], "VARCHAR"),
        (["0.1", "0.10000000000000001"], "VARCHAR"),
        (["-0"], "DOUBLE"),
        (["1e400"], "VARCHAR"),
        (["1e-400", "1"], "VARCHAR"),
        (["1e99999999999999999999"], "VARCHAR"),
    ],
)
def test_a_column_has_a_type_only_if_no_number_changes(tokens: list[str], kind: str) -> None:
    assert types_holding([None]) == set()
    for batches in ([tokens], [[token] for token in tokens]):
        held = [types_holding([*map(Token, batch), None]) for batch in batches]
        assert min(set.intersection(*held), default="VARCHAR") == kind
