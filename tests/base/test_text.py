"""Foreign text: made visible, cut, on one line; and no error or warning is shown without it."""

import inspect
import pickle
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import errors
from pac_wrap.base.text import LONGEST, escape_markdown, is_unicode, listed, message, quoted, visible
from pac_wrap.errors import InputError, OutputError, PACWrapError, PACWrapWarning

# every character there is, those that are not text by themselves included
anything = st.text(st.characters(exclude_categories=()), max_size=50) | st.text(max_size=3).map(
    lambda x: x * 2000
)
KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, (PACWrapError, PACWrapWarning))
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 異 🎲", "plain ünï 異 🎲"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31mred", r"\x9b31mred"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\tb\nc\rd\x00", r"a\tb\nc\rd\x00"),
        ("\u202egnorw\u2066", r"\u202egnorw\u2066"),
        ("\u2028\u2029\x85", r"\u2028\u2029\x85"),
        ("\udcff\ud800", r"\udcff\ud800"),
        ("\u200b\ufeff\U000e0041", r"\u200b\ufeff\U000e0041"),
        ("\x7f\x08", r"\x7f\x08"),
        ("a\\x1b", r"a\x1b"),
        ("", ""),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(visible(text)) == shown
    assert quoted(text) == repr(text)
    assert listed(["id", text]) == f"id, {shown}"


def test_what_is_cut_off_or_put_on_one_line_says_so() -> None:
    assert (quoted("it\x1b"), quoted(0.5), quoted("long", 3)) == ("'it\\x1b'", "0.5", "'lon'...")
    assert message("one\ntwo\x07") == "one two\\x07"
    assert (is_unicode("\u00e9"), is_unicode("\udce9")) == (True, False)
    assert escape_markdown("<b>|a_b`") == "&lt;b&gt;\\|a\\_b\\`"


@given(anything)
def test_nothing_hidden_is_left_and_nothing_is_endless(text: str) -> None:
    for shown, most in (
        (visible(text), LONGEST + 3),
        (quoted(text), 10 * LONGEST + 5),
        (listed([text] * 3), 503),
        (message(text), 10 * 2_010),
    ):
        assert shown.isprintable()
        assert len(shown) <= most
        shown.encode()
    assert visible(visible(text, 20), 23) == visible(text, 20)


@given(anything.filter(lambda text: text.isprintable() and len(text) <= LONGEST))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert visible(text) == message(text) == text
    assert quoted(text) == repr(text)


def test_of_a_long_name_the_start_is_shown_and_of_a_long_message_both_ends() -> None:
    assert visible("x" * 1000) == "x" * LONGEST + "..."
    assert quoted("x" * 1000, 3) == "'xxx'..."
    assert quoted(["x" * 1000], 5) == "['xxx..."
    shown = message(f"column {'x' * 10_000!r} is missing; name another")
    assert shown.startswith("column 'xxx")
    assert shown.endswith("xxx' is missing; name another")
    assert len(shown) < 2_100


def test_a_message_of_several_lines_is_one() -> None:
    assert message("cannot read\r\n\ta.csv:\nbroken") == "cannot read a.csv: broken"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(anything)
def test_no_error_or_warning_shows_what_is_hidden(kind: type[Exception], text: str) -> None:
    error = kind(f"there is no column {text}; name another")
    assert str(error).isprintable()
    assert str(error).startswith("there is no column")
    assert str(error).endswith("; name another")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_was_said_is_kept_beside_what_is_shown() -> None:
    assert InputError("a\x1b").args == ("a\x1b",)
    assert str(OutputError(28, "No space\x1b", "a\nb.csv")) == "[Errno 28] No space\\x1b: 'a\\nb.csv'"


def test_a_warning_is_shown_without_what_is_hidden() -> None:
    with pytest.warns(PACWrapWarning) as caught:
        warnings.warn("column \x1b[2J\nfine", PACWrapWarning, stacklevel=1)
    assert str(caught[0].message) == r"column \x1b[2J fine"
