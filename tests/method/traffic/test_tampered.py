"""A changed value in a certificate of traffic contradicts others, or its points, or is another request."""

import json
from collections import Counter
from collections.abc import Iterator
from math import inf, nan, nextafter
from typing import Any, Final

import numpy as np
import pytest

from pac_wrap import Certificate, CertificateError, Guarantee, Reviews, calibrate_traffic
from support.resealed import sealed

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.PACWrapWarning")
_RNG = np.random.default_rng(3)
ANOMALY: Final = _RNG.random(2000) < 0.2
SCORES: Final = np.round(_RNG.normal(3.0 * ANOMALY), 2)
TOP: Final = np.where((SCORES > 1.0) | (_RNG.random(2000) < 0.05), ANOMALY, nan)
AUDITS: Final = _RNG.random(2000) < 0.3
HALF: Final = np.where(_RNG.random(2000) < 0.5, TOP, nan)
OTHERS: Final = _RNG.normal(3.0, 1.0, 300)
CASES: Final[dict[str, tuple[Guarantee, Any, dict[str, Any]]]] = {
    "alarms": (Guarantee(max_alarms=0.3), TOP, {}),
    "false alarms": (Guarantee(max_false_alarms="30 per 1,000"), TOP, {}),
    "both": (Guarantee(max_alarms=0.3, max_false_alarms=0.03), TOP, {}),
    "FPR": (Guarantee(max_fpr=0.05, reviews=Reviews(max_anomalies=0.3, mistaken=0.05)), TOP, {}),
    "precision": (Guarantee(min_precision=0.7, max_false_alarms=0.2), TOP, {}),
    "coins": (Guarantee(max_false_alarms=0.1, reviews=Reviews(rate=0.5)), HALF, {}),
    "FNR": (Guarantee(max_false_alarms=0.05, max_fnr=0.3), TOP, {"anomalous": OTHERS, "independent": True}),
    "audits": (
        Guarantee(max_alarms=0.3, max_fnr=0.3, reviews=Reviews(audits=0.3)),
        np.where(AUDITS, ANOMALY, TOP),
        {"audits": AUDITS},
    ),
}
# the origin
ELSEWHERE: Final = ("checksum", "version", "provenance", "format", "schema")


def changes(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each place of a file with another value: near it, far from it, and none."""
    if isinstance(node, dict | list):
        for name, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from changes(value, (*above, name)) if name not in ELSEWHERE else ()
        return
    near: list[Any] = [1, 0.5] if node is None else []
    if isinstance(node, bool):
        near = [not node]
    elif isinstance(node, int):
        near = [node + 1, node - 1, 2 * node + 7]
    elif isinstance(node, float):
        near = [1.02 * node + 1e-9, 0.5 * node, nextafter(node, inf), 1.0 - node]
    elif isinstance(node, str):
        near = [f"{node}0", node[::-1], "1" * 16]
    yield from ((above, one) for one in [*near, *[None] * (node is not None)] if one != node)


@pytest.mark.parametrize("case", CASES)
def test_no_value_can_be_changed_without_a_trace(case: str) -> None:
    asked, reviews, beside = CASES[case]
    made = calibrate_traffic(SCORES, reviews, asked, **beside)
    shown = {name: one for name, one in beside.items() if name != "independent"}
    assert made.verify(SCORES, reviews=reviews, **shown)
    text, outcomes, silent = made.to_json(), Counter[str](), set()
    for path, value in changes(json.loads(text)):
        if (path[-1], value) == ("digest", None):  # the scores stayed in a database
            continue
        content = node = json.loads(text)
        for name in path[:-1]:
            node = node[name]
        node[path[-1]] = value
        try:
            found = Certificate.from_json(sealed(content))
        except CertificateError:
            outcomes["refused"] += 1
            continue
        if not found.verify(SCORES, reviews=reviews, **shown):
            outcomes["its points differ"] += 1
            silent.add(path[-1])
            continue
        # another request may lead to the same result
        again = calibrate_traffic(SCORES, reviews, found.guarantee, **beside)
        assert again == found, path
        outcomes["another request"] += 1
    assert outcomes["refused"] > 3 * outcomes["its points differ"]
    # a file alone cannot tell these, as nothing else follows from them
    counts = {"alarms", "right", "wrong", "cleared", "found", "unscored", "audits", "n", "beyond"}
    assert silent <= {*counts, "threshold", "digest"}
