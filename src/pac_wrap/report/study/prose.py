"""Paragraphs of a study, in which *words between stars* are emphasised."""

import re
from collections.abc import Iterator
from typing import Final

_EMPHASIS: Final = re.compile(r"(?<!\w)\*(\w(?:[^*\n]*\w)?)\*(?!\w)")


def pieces(paragraph: str) -> Iterator[tuple[str, bool]]:
    """Return a paragraph in pieces, each with whether it is emphasised.

    >>> list(pieces("With *th* it is 2 * 3."))
    [('With ', False), ('th', True), (' it is 2 * 3.', False)]
    """
    for place, piece in enumerate(_EMPHASIS.split(paragraph)):
        if piece:
            yield piece, place % 2 == 1
