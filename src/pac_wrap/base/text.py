"""Text from outside, made harmless wherever it is shown: on one line, nothing hidden in it, not too long.

Names, cells, file names and the messages of other software may hold control characters that move the cursor,
colour the screen or end a line early, and marks that turn the direction of writing. Here they become escapes.
"""

import re
from collections.abc import Iterable
from typing import Final

LONGEST: Final = 200
_LONGEST_LIST: Final = 500
_LONGEST_MESSAGE: Final = 2_000
_CUT: Final = "..."
# characters that Markdown reads as HTML, and as markup
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKUP: Final = re.compile(r"[\\`*_{}\[\]#|~!$]")


def visible(text: object, longest: int = LONGEST) -> str:
    """Return a text with escapes for invisible characters, cut off after `longest` characters."""
    text = str(text)
    seen = _escaped(text[: longest + 1])
    return seen if len(seen) <= longest else f"{seen[:longest]}{_CUT}"


def quoted(value: object, longest: int = LONGEST) -> str:
    """Return a value as Python writes it, a text in quotes, cut off after `longest` characters."""
    if isinstance(value, str):
        return repr(str(value[:longest])) + _CUT * (len(value) > longest)
    return visible(repr(value), longest)


def amount(count: int, noun: str) -> str:
    """Return a count with its noun, which ends in s unless there is one of it."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def sentence(text: str) -> str:
    """Return a text as a sentence: with a capital, and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def listed(names: Iterable[object]) -> str:
    """Return names with commas between them, cut off if they are too long."""
    return visible(", ".join(map(str, names)), _LONGEST_LIST)


def message(text: str) -> str:
    """Return a message on one line; a long one loses its middle, as its end holds the remedy."""
    half = _LONGEST_MESSAGE // 2
    text = text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} {_CUT} {text[-half:]}"
    return _escaped(re.sub(r"[\t\r\n]+", " ", text))


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8; a text read from other bytes cannot."""
    return re.search("[\ud800-\udfff]", text) is None


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no end of a table cell."""
    text = "".join(_ENTITIES.get(sign, sign) for sign in " ".join(text.splitlines()))
    return _MARKUP.sub(r"\\\g<0>", text)


def _escaped(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
