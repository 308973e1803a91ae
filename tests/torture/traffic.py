"""Reviewed traffic: hostile tables from every source, answers by key and by queue, tampered certificates."""

import csv
import warnings
from collections import Counter
from math import nan
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from pac_wrap import Certificate, Guarantee, InputError, PACWrapWarning, ReviewQueue, calibrate_traffic
from support.by_hand import drawn
from support.shell import invoke
from support.traffic_by_hand import by_hand
from torture import labelled
from torture.record import Outcomes

Row = tuple[float, str]

# reviews as people and programs write them, and what is none
_RIGHT, _WRONG, _NONE = ("1", "true", "True", "1.0", "TRUE"), ("0", "false", "False", "0.0"), ("", "", "")
_HOSTILE: Final = ["2", "maybe", "-1", "1e0x", "yes?", "\u0661", "1;0", "right", "\x1b[31m", "0x1", " ,1"]
_PROMISES: Final[list[dict[str, Any]]] = [
    {"alarms": 0.2},
    {"false alarms": 0.15},
    {"alarms": 0.5, "false alarms": 0.1},
    {"precision": 0.3},
    {"precision": 0.2, "false alarms": 0.6},
]
_OPTIONS: Final = {"alarms": "max_alarms", "false alarms": "max_false_alarms", "precision": "min_precision"}


def reviewed_traffic(random: np.random.Generator, folder: Path) -> Outcomes:
    """Certify generated traffic from every source, answer by key and by queue, and tamper with the file."""
    rows, said = _table(random), {**_PROMISES[int(random.integers(len(_PROMISES)))], "delta": 0.3}
    limits = {_OPTIONS[name]: said[name] for name in said if name != "delta"}
    asked = Guarantee(**limits, delta_fpr=said["delta"])
    words = [word for name, most in limits.items() for word in (f"--{name.replace('_', '-')}", most)]
    words += ["--delta-fpr", said["delta"], "--score", "s"]
    scores = np.array([score for score, _ in rows])
    texts = [text for _, text in rows]

    def by_memory() -> str:
        return calibrate_traffic(scores, _read(texts), asked).bare.to_json()

    def by_file(name: str) -> str:
        path, saved = _written(folder / name, scores, review=texts), folder / f"{name}.json"
        done = invoke("calibrate", path, *words, "--review", "review", "-o", saved)
        return labelled._saved(done, saved, Certificate)

    def by_dask() -> str:
        import dask
        import dask.dataframe as dd

        from pac_wrap.engines import dask as engine

        dask.config.set(scheduler="synchronous")
        frame = pd.DataFrame(
            {"s": scores, "review": pd.array([one or None for one in texts], dtype="object")}
        )
        parts = dd.from_pandas(frame, npartitions=int(random.integers(1, 4)))
        return str(engine.calibrate(parts, asked, score="s", review="review").bare.to_json())

    found = labelled._agreed({"memory": by_memory, "t.csv": lambda: by_file("t.csv"), "Dask": by_dask})
    if found is None:
        return {"refused by every source": 1}
    certificate, reviews = Certificate.from_json(found), _read(texts)
    hand = by_hand(scores.tolist(), reviews.tolist(), said)
    made = [one for one in certificate.clauses if one.asked is not None]
    assert {one.asked.name: one.threshold for one in made if one.asked} == hand.thresholds, (hand, rows)
    outcomes = labelled._tampered(random, found, Certificate.from_json, labelled._check_kinds)
    outcomes += _answered(random, folder, scores, reviews, found, words)
    with warnings.catch_warnings(action="ignore", category=PACWrapWarning):
        outcomes += _queued(random, scores, reviews, asked, certificate)
    return outcomes + Counter({"the same certificate from every source": 1})


def _table(random: np.random.Generator) -> list[Row]:
    """Return scores and reviews, now and then with one that is hostile, or of a point without a score."""
    scores = drawn(random, int(random.integers(1, 90)))
    rows = [
        (nan, "")
        if random.random() < 0.03
        else (score, str(random.choice((_RIGHT, _WRONG, _NONE)[random.integers(3)])))
        for score in scores
    ]
    if random.random() < 0.25:
        place = int(random.integers(len(rows)))
        rows[place] = [(rows[place][0], str(random.choice(_HOSTILE))), (nan, "1")][int(random.integers(2))]
    return rows


def _read(texts: list[str]) -> Any:
    """Return reviews as numbers; what is none stays a text."""
    known: dict[str, Any] = dict.fromkeys(_RIGHT, 1.0) | dict.fromkeys(_WRONG, 0.0) | {"": nan}
    found = [known.get(text, text) for text in texts]
    return np.array(found, dtype=object if any(isinstance(one, str) for one in found) else float)


def _written(path: Path, scores: Any, **columns: Any) -> Path:
    with path.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["s", *columns])
        for score, *rest in zip(scores.tolist(), *columns.values(), strict=True):
            writer.writerow(["" if score != score else repr(score), *rest])
    return path


def _answered(
    random: np.random.Generator, folder: Path, scores: Any, reviews: Any, found: str, words: list[Any]
) -> Counter[str]:
    """Give the reviews as answers by key, in any order; contradictory and unknown ones are refused."""
    keys = [f"k{place}" for place in random.permutation(scores.size)]
    answers = [(key, str(int(one))) for key, one in zip(keys, reviews, strict=True) if one == one]
    answers = [answers[place] for place in random.permutation(len(answers))]
    fault = str(random.choice(["none", "none", "contradictory", "unknown"]))
    if fault == "contradictory" and answers:
        answers.append((answers[0][0], "01"[answers[0][1] == "0"]))
    elif fault != "none":
        answers, fault = [*answers, ("nobody", "1")], "unknown"
    path, saved = _written(folder / "keyed.csv", scores, id=keys), folder / "answered.json"
    given = folder / "answers.csv"
    given.write_text("id,review\n" + "".join(f"{key},{one}\n" for key, one in answers), encoding="utf-8")
    done = invoke("calibrate", path, *words, "--answers", given, "--key", "id", "-o", saved)
    if fault != "none":
        assert done.code == 2, done
        assert not saved.exists()
        return Counter({f"{fault} answer: refused": 1})
    assert labelled._saved(done, saved, Certificate) == found
    return Counter({"answers by key: the same certificate": 1})


def _queued(
    random: np.random.Generator, scores: Any, reviews: Any, asked: Guarantee, made: Certificate
) -> Counter[str]:
    """Add the reviews to a queue in random parts, some of them wrong at first, and some impossible."""
    queue = ReviewQueue(scores, asked)
    places = np.flatnonzero(reviews == reviews)
    first = random.permutation(places)
    for part in np.array_split(first, int(random.integers(1, 5))):
        queue.add(part, random.integers(0, 2, part.size))
        for positions, verdict in ((scores.size, 1), (-1, 0), (0.5, 1), (part[:1].repeat(2), [1, 0])):
            try:
                queue.add(positions, verdict)
                assert np.size(positions) == 0
            except InputError as error:
                labelled._sentence(error)
    queue.add(places, reviews[places])  # each answer replaces the earlier one
    assert queue.certificate == made
    left = queue.wrong_left
    assert queue.done == (not queue.next(3).size)
    assert left is None or (left == 0) == queue.done
    return Counter({"answers in a queue: the same certificate": 1})
