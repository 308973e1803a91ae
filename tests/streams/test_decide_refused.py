"""What cannot be decided is named with its row, and every row before it is written."""

import io

import pytest

from pac_wrap.streams.decide import Asked, decide_lines, is_streamed
from pac_wrap.tables.files import text_format
from pac_wrap.tables.files.text_format import LONGEST, read_start
from support.pieces import RULE, Pieces, TextFormat, rows_of, stopped
from support.strategies import refusal


@pytest.mark.parametrize(
    ("content", "form", "words"),
    [
        (b"a,s\nx,1\n\xe9,1\n", "jsonl", "row 2 is not UTF-8; --format csv keeps it as it is"),
        (b"\xe9,s\nx,1\n", "jsonl", "the header is not UTF-8; --format csv keeps it as it is"),
        (b'{"a":"x","s":1}\n{"a":"\xe9","s":1}\n', "csv", "row 2 is not UTF-8; --format jsonl keeps it"),
        (b'{"a":"x","s":1}\n{"a":"\\udc80","s":1}\n', "csv", "row 2 is not UTF-8; --format jsonl keeps it"),
        (b'{"\\ud800":"x","s":1}\n', "csv", "row 1 is not UTF-8; --format jsonl keeps it"),
    ],
)
def test_other_bytes_are_refused_where_the_format_changes(
    content: bytes, form: TextFormat, words: str
) -> None:
    written, sentence = stopped(content, form)
    assert words in sentence
    assert written.count(b"{1}") == (1 if "row 2" in words else 0)


MANY = 9_000
anywhere = pytest.mark.parametrize("before", [0, 1, pytest.param(MANY, marks=pytest.mark.slow)])


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_rows_before_a_bad_one_are_written_and_counted_however_many(form: TextFormat) -> None:
    for good, bad in (("y,1\n", "x,nan\n"), ('{"s": 1}\n', '{"s": null}\n')):
        content = "a,s\n" * (bad[0] == "x") + good * MANY + bad
        written, sentence = stopped(content, form, on_missing="stop")
        assert "the first is in row 9,001;" in sentence
        assert sentence.endswith("; rows decided before it: 9,000")
        assert written.count(b"{1}") == MANY


@anywhere
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("x,", "column 's' must not be empty or NaN, the first is in {row};"),
        ("x,nan", "column 's' must not be empty or NaN, the first is in {row};"),
        ("x,NULL", "column 's' must hold numbers, got 'NULL' in {row}; leave the cell empty"),
        ("x,1_000", "column 's' must hold numbers, got '1_000' in {row}; fix that row"),
        ("x,\u0661", "column 's' must hold numbers, got '\u0661' in {row}; fix that row"),
        ("x,0x1A", "column 's' must hold numbers, got '0x1A' in {row}; fix that row"),
        ("x,true", "column 's' must hold numbers, got 'true' in {row}; fix that row"),
        ("x", "{row} has 1 cell, but the header has 2; fix that row"),
        ("x,1,2", "{row} has 3 cells, but the header has 2; fix that row"),
        ('"x,1', "{row} is not CSV: a quote is opened and never closed; fix that row"),
        ('"x"y,1', "{row} is not CSV: ',' expected after '\"'; fix that row"),
        ("x\ry,1", "{row} is not CSV: a carriage return stands in a cell without quotes; fix that row"),
    ],
)
def test_a_bad_row_of_csv_ends_the_stream_after_all_rows_before_it(
    line: str, words: str, before: int
) -> None:
    content = "a,s\n" + 'y,1\n\n"z\n",0.1\n' * before + f"{line}\nx,1\nx,1\n"
    if '"' in line:
        content = content.removesuffix("x,1\nx,1\n")
    for form in ("csv", "jsonl"):
        written, sentence = stopped(content, form, on_missing="stop")
        assert sentence.startswith(words.replace("{row}", f"row {2 * before + 1:,}"))
        assert sentence.endswith(f"; rows decided before it: {2 * before:,}") is (before > 0)
        if before == 0:
            assert written == b""
        elif form == "csv":
            rows = rows_of(written)[1:]
            assert rows == [["y", "1", "1", "{1}"], ["z\n", "0.1", "0", "{0}"]] * before
        else:
            assert written.count(b"\n") == 2 * before


@anywhere
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"s": null}', "column 's' must not be empty or NaN, the first is in {row};"),
        ('{"s": NaN}', "column 's' must not be empty or NaN, the first is in {row};"),
        ('{"s": ""}', "column 's' must not be empty or NaN, the first is in {row};"),
        ('{"s": "x"}', "column 's' must hold numbers, got 'x' in {row}; fix that row"),
        ('{"s": [1]}', "column 's' must hold numbers, got '[1]' in {row}; fix that row"),
        ('{"s": {"s": 1}}', "column 's' must hold numbers, got '{\"s\": 1}' in {row}; fix that row"),
        ('{"s": 1, "a": 1, "a": {"s": 2}}', "{row} has two columns named 'a'; rename one of them"),
        ('{"s": 1, "s": 2}', "{row} has two columns named 's'; rename one of them"),
        ('{"s": 1, "\\u0073": 2}', "{row} has two columns named 's'; rename one of them"),
        ('{"s": 1}, {"s": 2}', "{row} is not a JSON object on one line; fix that row"),
        ('{"s": 1', "{row} is not a JSON object on one line; fix that row"),
        ('[{"s": 1}]', "{row} is not a JSON object on one line; fix that row"),
        ("0.5", "{row} is not a JSON object on one line; fix that row"),
        ("[" * 200_000, "{row} is not a JSON object on one line; fix that row"),
        ('{"s": 1, "Verdict": 1}', "column 'Verdict' already; rename it or drop it"),
        ('{"s": 1, "pr\\u0065diction_set": 1}', "column 'prediction_set' already; rename it or drop it"),
    ],
)
def test_a_bad_row_of_json_lines_ends_the_stream_after_all_rows_before_it(
    line: str, words: str, before: int
) -> None:
    good = '{"s": 0.1}\n\n'
    content = good * before + line + "\n" + good
    start = read_start(Pieces(content.encode()))
    if before == 0 and (not line.startswith("{") or not is_streamed(start)):
        return  # then it is another kind of table
    for form in ("csv", "jsonl"):
        written, sentence = stopped(content, form, on_missing="stop")
        assert words.replace("{row}", f"row {before + 1:,}") in sentence
        assert sentence.endswith(f"; rows decided before it: {before:,}") is (before > 0)
        assert written.count(b"{0}") == before


def test_a_line_without_the_score_is_a_missing_score() -> None:
    # the first line names it twice: both together hold as many as there are lines
    assert "row 1 has two columns" in stopped('{"s": 1, "s": 2}\n{"x": 1}\n')[1]
    assert "the first is in row 2" in stopped('{"s": 1}\n{"x": 1}\n', on_missing="stop")[1]
    assert "did you mean 'S'? the columns are S, x" in stopped('{"S": 1, "x": 2}\n')[1]


def test_huge_numbers_and_texts_are_shown_shortened() -> None:
    for content in ('{"s": [1' + "0" * 4000 + "]}", "s\n" + "x" * 4000):
        sentence = stopped(content)[1]
        assert "must hold numbers" in sentence
        assert len(sentence) < 150


def test_a_name_that_comes_later_has_no_place_in_csv() -> None:
    written, sentence = stopped('{"s": 1}\n{"s": 1, "new": 2}\n', "csv")
    assert "row 2 has a column 'new', but the first row does not; --format jsonl keeps it" in sentence
    assert written == b"s,verdict,prediction_set\n1,1,{1}\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\nx,1\n", "there is no column 's'; the columns are a, b"),
        ("S;b\nx;1\n", "there is no column 's'; did you mean 'S'? the columns are S, b"),
        ("s,b,S\n1,2,3\n", "standard input has two columns named 's'; rename one of them"),
        ("s,b,b\n1,2,3\n", "standard input has two columns named 'b'; rename one of them"),
        ("s,Verdict\n1,2\n", "there is a column 'Verdict' already; rename it or drop it first"),
        ('{"s":1,"verdict":2}\n', "there is a column 'verdict' already; rename it or drop it first"),
        ('a,"s\n1,2\n', "the header is not CSV: a quote is opened and never closed; fix it"),
        ('"a"b,s\n1,2\n', "the header is not CSV: ',' expected after '\"'; fix it"),
        ("a,s\n", "the table - has no rows; pass one with scores"),
        ("a,s", "the table - has no rows; pass one with scores"),
        ("\n\na,s", "the table - has no rows; pass one with scores"),
        ("a,s\n\n\r\n\n", "the table - has no rows; pass one with scores"),
        ("", "standard input is empty; it needs a header and rows"),
        ("\ufeff\n \n", "standard input is empty; it needs a header and rows"),
        (b"\x1f\x8b\x08", "standard input is packed by gzip; unpack it first"),
        ("a,s\n1,2\n".encode("utf-16"), "standard input is UTF-16; convert it first"),
    ],
)
def test_what_cannot_be_a_table_is_refused(content: str | bytes, words: str) -> None:
    assert stopped(content, on_missing="stop")[1].startswith(words)


@pytest.mark.parametrize(
    "content", [b"PAR1\x00", b'[{"s": 1}]\n', b'{\n"s": 1}\n', b'{"s": 1', b"[" * 99_999]
)
def test_what_has_to_be_read_whole_is_not_streamed(content: bytes) -> None:
    assert not is_streamed(read_start(Pieces(content)))


@pytest.mark.parametrize(
    "content",
    ["a,s\nx,1\n", '"a,s\n', '{"s":1}\n', 'a,s\nx,1\n"y,1\n'],
)
def test_a_row_without_an_end_is_refused_before_it_fills_the_memory(
    content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what begins with a quote is read again with every piece
    longest = 1 << 20 if '"' in content and "{" not in content else LONGEST
    monkeypatch.setattr(text_format, "LONGEST", longest)

    class Endless(Pieces):
        read = 0

        def read1(self, size: int, /) -> bytes:
            self.read += size
            assert self.read < 20 * longest
            return super().read1(size) or (b"\n" if content.count('"') == 1 else b"x") * size

    source = Endless(content.encode())
    start = read_start(source)
    sentence = refusal(lambda: decide_lines(RULE, source, start, io.BytesIO(), Asked("s", True)))
    assert sentence.startswith(f"a row is longer than {longest:,} bytes")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"s\r\n1\r\r\n2\r\n", "row 1 is not CSV: a carriage return stands in a cell without quotes"),
        (b"s\r\n1\r\n2\r\r\n", "row 2 is not CSV: a carriage return stands in a cell without quotes"),
        (b'"s"\r\r\n1\r\n', "the header is not CSV: a carriage return stands in a cell without quotes"),
    ],
)
def test_a_carriage_return_too_many_is_refused(content: bytes, words: str) -> None:
    # the csv module itself passes over it here, and ends another row with it where lines are split at it
    _, sentence = stopped(content, "csv")
    assert words in sentence


def test_a_carriage_return_within_quotes_is_kept() -> None:
    content = b'a,s\r\n"a\rb\r",1\r\n"c\r\nd",2\r\n'
    out = io.BytesIO()
    decide_lines(RULE, io.BytesIO(), content, out, Asked("s", True))
    assert b'"a\rb\r"' in out.getvalue()
