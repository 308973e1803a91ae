"""Lines are decided the same however they arrive, and keep what they hold."""

import csv
import io
import json
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import InputError
from pac_wrap.method.rule import Counted, Thresholds
from pac_wrap.streams.decide import Asked, decide_lines
from pac_wrap.tables.files import csv_files, text_format
from pac_wrap.tables.files.text_format import LONGEST, read_start
from support.pieces import RULE, Pieces, TextFormat, answers, certificate_of, decided, rows_of
from support.strategies import refusal

RULES = [
    Thresholds(0.7, 0.3),
    Thresholds(0.3, 0.7),
    Thresholds(0.5, 0.5),
    Thresholds(0.5, None),
    Thresholds(None, 0.5),
    Thresholds(inf, -inf),
    Thresholds(inf, 0.3),
    Thresholds(0.7, -inf),
]


cell = st.text(st.sampled_from("ab,;\"'\n\r\t \\{}|é\u2028\x85\x0c\x00"), max_size=6)
number = st.sampled_from(["0.1", "0.50", "7e-1", "inf", "-Infinity", " 0.3", "+1", ".5", "-0"])
table = st.lists(st.tuples(cell, number, cell), min_size=1, max_size=12)
cutting = st.lists(st.integers(1, 400), max_size=9)


def as_csv(rows: list[tuple[str, str, str]], ending: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=ending, quoting=csv.QUOTE_ALL).writerows([("a", "s", 'b"%'), *rows])
    return out.getvalue()


def expected(rows: list[tuple[str, str, str]]) -> list[tuple[int, str]]:
    return answers(RULE, [float(row[1]) for row in rows])


class Waiting:
    """A pipe whose next bytes have not come."""

    def read1(self, size: int, /) -> bytes:
        raise AssertionError("it waits for more than it needs")


def test_text_goes_on_before_more_is_waited_for() -> None:
    assert next(text_format._texts(Waiting(), b'{"s": 1}')) == '{"s": 1}'


def assert_the_same_without_c(content: str, cuts: list[int], *, as_csv: bool) -> None:
    def outcome() -> tuple[bytes, str]:
        out = io.BytesIO()
        reader = Pieces(content.encode("utf-8", "surrogateescape"), cuts)
        start = read_start(reader)
        try:
            decide_lines(RULE, reader, start, out, Asked("s", as_csv=as_csv))
        except InputError as error:
            return out.getvalue(), str(error)
        return out.getvalue(), ""

    found = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "functions", lambda: None)
        assert outcome() == found


@given(rows=table, cuts=cutting, ending=st.sampled_from(["\n", "\r\n"]))
def test_any_csv_in_any_pieces_keeps_its_cells(
    rows: list[tuple[str, str, str]], cuts: list[int], ending: str
) -> None:
    content = as_csv(rows, ending)
    written = decided(content, "csv", cuts=cuts)
    assert written == decided(content, "csv")
    header, *found = rows_of(written)
    assert header == ["a", "s", 'b"%', "verdict", "prediction_set"]
    assert [tuple(row[:3]) for row in found] == rows
    assert [(int(row[3]), row[4]) for row in found] == expected(rows)


@given(rows=table, cuts=cutting)
def test_any_csv_in_any_pieces_becomes_json_of_texts_and_a_number(
    rows: list[tuple[str, str, str]], cuts: list[int]
) -> None:
    content = as_csv(rows, "\n")
    written = decided(content, cuts=cuts)
    assert written == decided(content)
    found = [json.loads(line) for line in written.decode().removesuffix("\n").split("\n")]
    assert [list(row) for row in found] == [["a", "s", 'b"%', "verdict", "prediction_set"]] * len(rows)
    assert [(row["a"], row['b"%']) for row in found] == [(row[0], row[2]) for row in rows]
    assert [float(row["s"]) for row in found] == [float(row[1]) for row in rows]
    assert [isinstance(row["s"], str) for row in found] == ["nf" in row[1] for row in rows]
    assert [(row["verdict"], row["prediction_set"]) for row in found] == expected(rows)


@given(rows=table, cuts=cutting, ascii_only=st.booleans())
def test_any_json_lines_in_any_pieces_keep_their_text(
    rows: list[tuple[str, str, str]], cuts: list[int], ascii_only: bool
) -> None:
    lines = [json.dumps({"a": a, "s": s, "b": [b]}, ensure_ascii=ascii_only) for a, s, b in rows]
    content = "\n".join(lines)
    written = decided(content, cuts=cuts)
    assert written == decided(content)
    for line, text, (verdict, labels) in zip(
        lines, written.decode().removesuffix("\n").split("\n"), expected(rows), strict=True
    ):
        assert text == f'{line[:-1]},"verdict":{verdict},"prediction_set":"{labels}"}}'


@given(rows=table, cuts=cutting)
def test_any_json_lines_in_any_pieces_become_csv(rows: list[tuple[str, str, str]], cuts: list[int]) -> None:
    content = "\n".join(json.dumps({"a": a, "s": s, "b": [b]}) for a, s, b in rows)
    written = decided(content, "csv", cuts=cuts)
    assert written == decided(content, "csv")
    header, *found = rows_of(written)
    assert header == ["a", "s", "b", "verdict", "prediction_set"]
    assert [(row[0], row[1], *json.loads(row[2])) for row in found] == rows
    assert [(int(row[3]), row[4]) for row in found] == expected(rows)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_every_rule_gives_its_verdicts_and_sets(rule: Thresholds) -> None:
    certificate = certificate_of(rule)
    scores = [0.1, 0.3, 0.5, 0.6, 0.7, 0.9, inf, -inf]
    content = "s\n" + "".join(f"{score}\n" for score in scores)
    found = rows_of(decided(content, "csv", rule=certificate))[1:]
    assert [(int(row[1]), row[2]) for row in found] == answers(certificate, scores)


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_the_one_with_which_the_score_is_a_column(delimiter: str) -> None:
    content = f'"i,d"{delimiter}s\n"x;y|z"{delimiter}1\n'
    assert rows_of(decided(content, "csv"))[1:] == [["x;y|z", "1", "1", "{1}"]]


SAME = "a,s,verdict,prediction_set\nx,1,1,{1}\ny,0.1,0,{0}\n"
PLAIN = "a,s\nx,1\ny,0.1\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        "\ufeff" + PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.removesuffix("\n"),
        "\n\n" + PLAIN,
        PLAIN.replace("\n", "\n\n"),
        PLAIN + "\r\n\r\n",
        PLAIN.replace("a,s", '"a","s"'),
        PLAIN.replace("x,1", '"x","1"'),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";"),
    ],
)
def test_marks_endings_blank_lines_and_quotes_make_no_difference(content: str) -> None:
    assert decided(content, "csv").decode() == SAME


def test_other_bytes_survive_where_the_format_stays() -> None:
    content = b'a,s\n\xe9\xff,1\n"\xe9,",0.1\n'
    assert decided(content, "csv") == b'a,s,verdict,prediction_set\n\xe9\xff,1,1,{1}\n"\xe9,",0.1,0,{0}\n'
    assert decided(b'{"a":"\xe9","s":1}') == b'{"a":"\xe9","s":1,"verdict":1,"prediction_set":"{1}"}\n'


def test_json_values_become_cells() -> None:
    first = '{"s": 1.50, "a": null, "b": true, "c": {"x": [1, "é"]}, "d": "t"}\n'
    content = first + '{"d": 12345678901234567890123, "s": "inf"}\n{"s": "1", "b": false}\n'
    assert decided(content, "csv").decode().splitlines() == [
        "s,a,b,c,d,verdict,prediction_set",
        '1.50,,true,"{""x"": [1, ""é""]}",t,1,{1}',
        "inf,,,,12345678901234567890123,1,{1}",
        "1,,false,,,1,{1}",
    ]


def test_the_start_may_come_byte_by_byte() -> None:
    content = '\ufeff\n"a\nb",s\n"x\ny",1\n'.encode()
    assert decided(content, cuts=list(range(len(content)))) == decided(content)
    assert read_start(Pieces(b"PAR1 and more", [1, 2, 3])) == b"PAR1 and more"[:4] + b" and more"


def test_long_cells_are_kept() -> None:
    long = "x" * (LONGEST - 100)
    assert decided(f'a,s\n"{long}",1\n', "csv") == f"a,s,verdict,prediction_set\n{long},1,1,{{1}}\n".encode()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("many", [1, 9_000])
def test_a_missing_score_is_abstained_on_and_counted(form: TextFormat, many: int) -> None:
    as_json = '{"s": null, "a": "x"}\n{"s": NaN}\n{"s": ""}\n{"a": "y"}\n'
    for content, missing in (("a,s\nx,\ny,nan\ny,NaN\nz,\n", 4), ('{"s": 0.5, "a": "b"}\n' + as_json, 4)):
        whole = content + content[content.index("\n") + 1 :] * (many - 1)
        reader, target = Pieces(whole.encode(), [100, 5_000]), io.BytesIO()
        told: list[Counted] = []
        start = read_start(reader)
        counted = decide_lines(RULE, reader, start, target, Asked("s", form == "csv"), said=told.append)
        assert (counted.missing, counted.points - counted.alarms - counted.clears) == (
            missing * many,
            missing * many + ("{" in content),
        )
        assert counted.unseen == 0
        assert told[-1] == counted
        answers = (
            target.getvalue().decode().count('-1,"{0,1}"' if form == "csv" else '-1,"prediction_set":"{0,1}"')
        )
        assert answers == counted.points


def test_missing_scores_are_null_or_text_in_json() -> None:
    assert [json.loads(line)["s"] for line in decided("s,a\n,x\nnan,x\n-NaN,x\n1,x\n").splitlines()] == [
        None,
        "NaN",
        "NaN",
        1,
    ]


@pytest.mark.parametrize("content", ["a,s\nx,1\n", '{"a":"x","s":1}\n', 'a;s\n"x";1\n'])
def test_the_source_of_a_row_is_a_column_before_the_verdict(content: str) -> None:
    assert rows_of(decided(content, "csv", source="from")) == [
        ["a", "s", "from", "verdict", "prediction_set"],
        ["x", "1", "-", "1", "{1}"],
    ]
    expected = {"a": "x", "s": 1, "from": "-", "verdict": 1, "prediction_set": "{1}"}
    assert json.loads(decided(content, source="from")) == expected
    assert "there is a column 'a' already" in refusal(lambda: decided(content, source="A"))


plain_cell = st.sampled_from(["", "x", "é", "\udce9", " ", "\x00", "\t", ";"])
plain_number = st.sampled_from(
    ["0.1", "0.50", "7e-1", "inf", " 0.3", "nan", "", "0.30000000000000004", "1e-40"]
)


@given(
    rows=st.lists(st.tuples(plain_cell, st.one_of(plain_number, st.just("x"))), min_size=1, max_size=12),
    blanks=st.integers(0, 2),
    ended=st.booleans(),
    cuts=cutting,
)
def test_rows_read_at_once_are_decided_as_one_by_one(
    rows: list[tuple[str, str]], blanks: int, ended: bool, cuts: list[int]
) -> None:
    """A text without quotes is read in C, where that was compiled; what is wrong is said alike."""
    lines = ["a,s", *(f"{cell},{score}" for cell, score in rows)]
    content = ("\n" * (1 + blanks)).join(lines) + "\n" * ended
    assert_the_same_without_c(content, cuts, as_csv=True)


json_value = st.sampled_from(
    ["1", "-0.5e2", '"x"', '"é"', "true", "null", '"a\\n"', "[1]", "01", "NaN", '"\udce9"']
)
json_score = st.sampled_from(
    [
        "0.1",
        "0.30000000000000004",
        "null",
        "-0",
        "7E-1",
        "1e-40",
        "NaN",
        '"inf"',
        "Infinity",
        "1.",
        "+1",
        "[]",
    ]
)
json_row = st.builds(
    str.format,
    st.sampled_from(
        ['{{"a":{0},"s":{1}}}'] * 6 + ['{{ "a" : {0},\t"s" : {1} }}', '{{"s":{1},"a":{0}}}', "{{}}"]
    ),
    json_value,
    json_score,
)


@given(rows=st.lists(json_row, min_size=1, max_size=12), ended=st.booleans(), cuts=cutting)
def test_json_lines_read_at_once_are_decided_as_one_by_one(
    rows: list[str], ended: bool, cuts: list[int]
) -> None:
    first = ['{"a":1,"s":0.5}'] * 2
    content = "\n".join([*first, *rows, "", *first]) + "\n" * ended
    assert_the_same_without_c(content, [16, *cuts], as_csv=False)


def test_json_lines_are_read_at_once_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    if not csv_files.library().exists():
        pytest.skip("cells.c was not compiled")
    found: list[object] = []
    usual = csv_files.read_score_objects

    def seen(text: bytes, names: list[bytes], place: int) -> csv_files.Lines | None:
        found.append(lines := usual(text, names, place))
        return lines

    monkeypatch.setattr(csv_files, "read_score_objects", seen)
    content = '{"a": "x", "s": 0.1}\n' * 9
    assert len(decided(content, cuts=[21, 84]).splitlines()) == 9
    assert len(found) == 2
    assert None not in found
