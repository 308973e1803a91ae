"""Certificates that were tampered with and sealed again: seeded, so that a test can be repeated.

`certificates()` gives real ones of every strategy and regime, `mutants(seed, count)` changes their leaves by
values that fit their type or do not, one, two or three at a time, and makes the checksum fit again.
`believable.py` says which of them may be believed.
"""

import hashlib
import json
import random
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest

from pac_wrap import Algorithm1, Certificate, CertificateError, PACWrapWarning, calibrate, recalibrate
from pac_wrap.method.promise import LABELS, OF_SERIES
from pac_wrap.method.provenance import Sampling
from support.strategies import RULES

Content = dict[str, Any]
Path = tuple[str | int, ...]

NUMBERS: list[Any] = [
    0,
    1,
    -1,
    2,
    3,
    84,
    2000,
    10**9,
    10**11,
    10**12,
    10**12 + 1,
    10**15,
    2**53,
    2**63 - 1,
    2**64,
]
NUMBERS += [
    10**40,
    -(10**40),
    10**60,
    0.0,
    -0.0,
    5e-324,
    1e-300,
    1e-15,
    1e-4,
    0.05,
    0.5,
    1 - 1e-16,
    1.0,
    1.5,
    1e308,
]
TEXTS: list[Any] = [
    "",
    "inf",
    "-inf",
    "nan",
    "algorithm1",
    "abstain",
    "raise",
    "hold",
    "fnr",
    "separated",
    "overlapping",
    "vacuous",
]
TEXTS += [
    "exact",
    "double",
    "fpr",
    "0" * 16,
    "f" * 16,
    "F" * 16,
    "0" * 17,
    "0.0.0",
    "1\n",
    "9.9.9.9.9",
    "x" * 10_000,
]
TEXTS += [
    "\x1b[2J\x1b[31mall is well",
    "\nverified",
    "\u202egnorw",
    "\u2028",
    "\udcff",
    "[bold]x[/bold]",
    "|<b>`",
]
OTHERS: list[Any] = [None, True, False, [], {}, [1, 2, 3], [4, 5, 2], [1] * 200, [[[[1]]]], {"n": 1}]


# seconds of the processor; the slowest, 10,000 levels, takes a tenth of one on a quiet machine
PATIENCE = 1.0


@lru_cache(maxsize=1)
def certificates() -> tuple[Certificate, ...]:
    """Return a real certificate of every rule, with classes far apart, near, few, infinite, upside down."""
    rng = np.random.default_rng(0)
    normal, far, near = rng.normal(0, 1, 200), rng.normal(6, 1, 150), rng.normal(1, 1, 150)
    edge = np.array([-inf] * 40 + [inf] * 60)
    pairs = [(normal, far), (normal, near), (near, normal), (normal[:20], far), (normal, far[:20])]
    pairs += [(normal, far[:0]), (edge, edge), (np.zeros(100), np.zeros(100))]
    pairs += [(normal.astype(np.float32), near.astype(np.float32))]
    made = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        for options in [*RULES.values(), {"overlap": Algorithm1(step=0.0001)}]:
            made += [calibrate(*pair, **options) for pair in pairs]
    series = Sampling(15, 60, "max", "blocks", 60, 600, effective_normal=80.5, effective_anomalous=None)
    points = np.r_[normal, far], np.repeat([0, 1], [normal.size, far.size])
    following = [recalibrate(made[0], *points, ledger=ledger) for ledger in (True, False)]
    return *made, replace(made[0], sampling=series, assumptions=OF_SERIES), *following


def sealed(content: Content) -> str:
    """Return content with the checksum that belongs to it."""
    body = {name: value for name, value in content.items() if name != "checksum"}
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return json.dumps(body | {"checksum": hashlib.sha256(canonical.encode()).hexdigest()})


def tampered(certificate: Certificate, changes: dict[str, Any]) -> str:
    """Return the certificate's text with values changed by their dotted names, sealed again.

    A name that begins with normal or anomalous leads into that clause. Where what is certified changes, the
    budget stays that which it was.
    """
    content = json.loads(certificate.to_json())
    for path, value in changes.items():
        *outer, last = path.split(".")
        node = content
        for name in outer:
            if name in LABELS and node is content:
                place = LABELS.index(name)
                node = content["clauses"][place]
                budget, ceiling = certificate.clauses[place].budget, certificate.clauses[place].ceiling
                if "found_at" in path or "certified" in path:
                    if budget is not None:
                        node.setdefault("found_at", {"rate": budget.rate, "delta": budget.delta})
                    if "certified." in path:
                        node.setdefault("certified", {"ceiling": ceiling})
            else:
                node = node[name]
        node[last] = value
    return sealed(content)


def said(text: str | bytes) -> str:
    """Return the one sentence with which a text is refused, in bounded time."""
    started = time.process_time()
    with pytest.raises(CertificateError) as caught:
        Certificate.from_json(text)
    assert time.process_time() - started < PATIENCE
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert len(sentence) <= 2_100
    return sentence


def mutants(seed: int, count: int, made: Sequence[Certificate] = ()) -> Iterator[tuple[str, str]]:
    """Yield a description and the text of so many certificates, by default all, that were tampered with."""
    rng, originals = random.Random(seed), [one.to_json() for one in made or certificates()]
    for _ in range(count):
        number = rng.randrange(len(originals))
        content = json.loads(originals[number])
        changes = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            path = rng.choice(list(_places(content)))
            if path[0] == "checksum":
                continue
            value = _other(rng, _at(content, path), content)
            for twin in _twins(path, content) if rng.random() < 0.7 else [path]:
                _put(content, twin, value)
            changes.append(f"{'.'.join(map(str, path))} = {json.dumps(value):.60}")
        yield f"certificate {number}: {'; '.join(changes)}", sealed(content)


def _twins(path: Path, content: Content) -> list[Path]:
    """Return the places that have to hold the same number, so that a change may pass for true."""
    match path:
        case ("rule", _) | ("clauses", _, "threshold"):
            places = [("rule", "normal_below"), ("rule", "anomaly_from")]
            edges = [*places, ("clauses", 0, "threshold"), ("clauses", 1, "threshold")]
            return [path, *(edge for edge in edges if _at(content, edge) == _at(content, path))]
        case ("clauses", place, "certified", "ceiling") | ("clauses", place, "found_at", "rate"):
            return [("clauses", place, "certified", "ceiling"), ("clauses", place, "found_at", "rate")]
    return [path]


def _places(node: Any, above: Path = ()) -> Iterator[Path]:
    for name, value in node.items() if isinstance(node, dict) else enumerate(node):
        yield (*above, name)
        if isinstance(value, dict) or (name == "clauses" and isinstance(value, list)):
            yield from _places(value, (*above, name))


def _at(node: Any, path: Path) -> Any:
    for name in path:
        held: dict[Any, Any] = dict(enumerate(node)) if isinstance(node, list) else node
        node = held.get(name) if isinstance(held, dict) else None
    return node


def _put(node: Any, path: Path, value: Any) -> None:
    above, last = _at(node, path[:-1]), path[-1]
    if isinstance(above, dict) or (isinstance(above, list) and isinstance(last, int)):
        above[last] = value  # type: ignore[index]  # a list has places, and an object names


def _other(rng: random.Random, value: Any, content: Content) -> Any:
    """Return another value: near the old one, of its type, from elsewhere in the file, or of any type."""
    near: list[Any] = []
    if type(value) is int:
        near = [value + 1, value - 1, value * 2, float(value), value + rng.randrange(100)]
    elif type(value) is float:
        near = [
            nextafter(value, inf),
            nextafter(value, -inf),
            value * (1 + 1e-10),
            value / 2,
            -value,
            value + 1,
        ]
    elif type(value) is str:
        near = [value + "0", value.upper(), value[:-1], value[::-1]]
    elsewhere = _at(content, rng.choice(list(_places(content))))
    kinds = [NUMBERS, TEXTS, OTHERS, [elsewhere]] + ([near] * 3 if near else [])
    return json.loads(json.dumps(rng.choice(rng.choice(kinds))))
