"""Kinds as a column of a table: the same certificate as from a mapping, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from pac_wrap import Guarantee, InputError, calibrate, calibrate_labelled
from pac_wrap.method.calibrate import Request

pytestmark = pytest.mark.filterwarnings("ignore::pac_wrap.errors.VacuousWarning")
RNG = np.random.default_rng(3)
NORMAL, STOLEN, TAKEOVER = RNG.normal(0, 1, 300), RNG.normal(5, 1, 200), RNG.normal(3, 1, 100)
SCORES = np.concatenate([NORMAL, STOLEN, TAKEOVER])
LABELS = np.repeat([0, 1], 300)
KINDS: list[Any] = [None] * 300 + ["stolen"] * 200 + ["takeover"] * 100
ASKED = Guarantee(max_fpr=0.05, max_fnr={"stolen": 0.05, "takeover": 0.1})


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize(
    "make", [list, np.array, pd.Series, pd.Categorical, lambda kinds: [k or "" for k in kinds]]
)
def test_a_column_gives_what_a_mapping_gives(make: Any, kind: str) -> None:
    expected = calibrate(
        NORMAL.astype(kind), {"stolen": STOLEN.astype(kind), "takeover": TAKEOVER.astype(kind)}, ASKED
    )
    order = RNG.permutation(SCORES.size)
    kinds = make([KINDS[place] for place in order])
    found = calibrate_labelled(SCORES[order].astype(kind), LABELS[order], ASKED, kinds=kinds)
    assert found == expected
    assert found.score_type == kind


def test_both_classes_may_have_kinds_and_whole_numbers_name_them() -> None:
    hours = np.tile([8, 9], 300)
    found = calibrate_labelled(SCORES, LABELS, kinds=hours, overlap="hold_fnr")
    sides = [{str(hour): SCORES[(label == LABELS) & (hours == hour)] for hour in (8, 9)} for label in (0, 1)]
    assert found == calibrate(sides[0], sides[1], overlap="hold_fnr")


def test_a_column_without_a_kind_changes_nothing() -> None:
    assert calibrate_labelled(SCORES, LABELS, kinds=[None] * 600) == calibrate_labelled(SCORES, LABELS)


def test_a_request_says_which_label_marks_an_anomaly() -> None:
    request = Request(Guarantee(0.05, 0.1), anomaly_label=-1)
    found = calibrate_labelled(SCORES, 1 - 2 * LABELS, request, kinds=KINDS)
    assert found == calibrate_labelled(SCORES, LABELS, Guarantee(0.05, 0.1), kinds=KINDS)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kinds": [None] * 301 + KINDS[301:]}, "column 'kinds' is empty in 1 row of anomalous points"),
        ({"kinds": [*KINDS[:300], *map(str, range(300))]}, "names 300 kinds of anomalous points; at most 40"),
        ({"kinds": np.linspace(0, 1, 600)}, "column 'kinds' must hold kinds: texts, .* its type is float64"),
        ({"kinds": KINDS[1:]}, "scores and kinds must have the same length, got 600 and 599"),
        ({"kinds": pd.Series(KINDS, index=range(1, 601)), "scores": pd.Series(SCORES)}, "the same index"),
        ({"by": KINDS}, "by cannot be combined with kinds or weights; remove by"),
        ({"weights": SCORES, "weight_bound": 2.0}, "scores by kind take no weights"),
        ({"pool": True}, "together and pool are for groups; give by too"),
        ({"guarantee": Guarantee(0.05, {"stolen": 0.1})}, "no ceiling for the anomalous kind 'takeover'"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"scores": SCORES, "labels": LABELS, "kinds": KINDS}
    with pytest.raises(InputError, match=words):
        calibrate_labelled(**(usual | arguments))


@pytest.mark.parametrize("more", [{"weights": SCORES, "weight_bound": 9.0}, {"seed": 1}])
def test_groups_take_no_weights(more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="by cannot be combined with kinds or weights"):
        calibrate_labelled(SCORES, LABELS, by=KINDS, **more)
