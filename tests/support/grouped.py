"""Labelled scores in groups of every type that engines know, with ties, infinities and what is missing."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd

from pac_wrap import GroupCertificate, Guarantee, calibrate_labelled

ASKED = Guarantee(0.1, 0.1)
# a plain one, quotes, a backslash, a wildcard, what looks like a number, a blank, and a small one
NAMES = ["plain", "it's", "a\\b", "%s", "7", " ", "tiny", None]
COLUMNS = ("name", "number", "float", "truth", "day")
OPTIONS: dict[str, dict[str, Any]] = {
    "each by itself": {},
    "together, with a pool": {"together": True, "pool": True},
    "raise": {"overlap": "raise"},
}


def drawn(rows: int = 4000, kind: Any = np.float64) -> pd.DataFrame:
    """Return a frame whose column `tiny` of groups has one with too few labels."""
    rng = np.random.default_rng(1)
    label = (rng.random(rows) < 0.4).astype(int)
    score = np.round(rng.normal(3 * label, 1), 1)
    score[:4] = [np.inf, -np.inf, -0.0, 0.0]
    name = rng.choice(np.array(NAMES, dtype=object), rows, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.09, 0.01, 0.05])
    number = rng.integers(-2, 5, rows)
    halves = np.where(number == 3, np.nan, number / 2)
    halves[number == 0] = np.where(np.arange((number == 0).sum()) % 2, -0.0, 0.0)
    days = [None if one == 4 else date(2026, 1, 30) + timedelta(int(one)) for one in number]
    columns = {"name": name, "number": number, "float": halves, "truth": number > 0, "day": days}
    return pd.DataFrame({"score": score.astype(kind), "label": label, **columns})


def in_memory(frame: pd.DataFrame, column: str, **options: Any) -> GroupCertificate:
    """Return the certificate that every engine must give."""
    return calibrate_labelled(frame["score"].to_numpy(), frame["label"], ASKED, **options, by=frame[column])


# spelled alike and unlike: what a reader that guesses at types would take for one another, or write anew
TOKENS = [
    *('"6F9619FF-8B86-D011-B42D-00C04FC964FF"', '"6f9619ff-8b86-d011-b42d-00c04fc964ff"', '"1.50"', "1.50"),
    *('"2026-01-31T10:00:00Z"', '"2026-01-31 10:00:00"', '"2026-01-31"', '"01:00"', '"01:00:00"', "true"),
    *("7", "7.0", '"7.0"', "12345678901234567890", "1e20", '"\\u00e9"', '""', "null"),
]


def json_of_tokens(rows: int = 1800) -> str:
    """Return JSON lines whose groups are spelled in every way; each spelling has scores of its own."""
    lines = []
    for row in range(rows):
        place, label = row % len(TOKENS), row // len(TOKENS) % 2
        score = 1000 * place + 50 * label + row // len(TOKENS) % 40
        lines.append(f'{{"score": {score}, "label": {label}, "group": {TOKENS[place]}, "x": [1]}}\n')
    return "".join(lines)
