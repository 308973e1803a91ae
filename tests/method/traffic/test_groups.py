"""Traffic by group: each group keeps the promise that its own points alone would certify."""

import json
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pac_wrap import CertificateError, GroupCertificate, Guarantee, InputError, Reviews, calibrate_traffic
from pac_wrap.base.codec import checksum

ASKED = [
    Guarantee(max_false_alarms="20 per 100", delta_fpr=0.3),
    Guarantee(max_alarms=0.25, delta_fpr=0.3),
    Guarantee(max_fpr=0.3, delta_fpr=0.3, reviews=Reviews(max_anomalies=0.1, mistaken=0.05)),
]
POINT = st.tuples(
    st.sampled_from([-inf, -0.0, 0.0, 1.0, 2.5, 1e308, inf, nan]),
    st.sampled_from([nan, 0.0, 1.0]),
    st.sampled_from("ab"),
)
quiet = pytest.mark.filterwarnings("ignore::pac_wrap.PACWrapWarning")


def columns(points: list[tuple[float, float, str]]) -> tuple[Any, Any, Any]:
    scores, reviews, groups = (np.array(column) for column in zip(*points, strict=True))
    return scores, np.where(np.isnan(scores), nan, reviews), groups


@quiet
@pytest.mark.parametrize("asked", ASKED, ids=str)
@given(st.lists(POINT, min_size=1, max_size=40))
def test_each_group_is_certified_as_its_own_traffic(
    asked: Guarantee, points: list[tuple[float, float, str]]
) -> None:
    scores, reviews, groups = columns(points)
    made = calibrate_traffic(scores, reviews, asked, by=groups)
    for group, own in made.certificates.items():
        here = groups == group
        alone = calibrate_traffic(scores[here], reviews[here], asked)
        assert own.rule == alone.rule
        assert own.assumptions == alone.assumptions
        for one, other in zip(own.clauses, alone.clauses, strict=True):
            assert (one.of, one.certified, one.n, one.budget) == (
                other.of,
                other.certified,
                other.n,
                other.budget,
            )
            assert one.threshold == other.threshold
        assert own.traffic is not None
        assert alone.traffic is not None
        for name in ("points", "found", "alarms", "right"):
            assert getattr(own.traffic, name) == getattr(alone.traffic, name)
    again = GroupCertificate.from_json(made.to_json())
    assert again == made
    assert made.verify(scores, reviews, groups)


@pytest.fixture
def traffic() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(5)
    anomaly = rng.random(9_000) < 0.02
    scores = rng.normal(3.0 * anomaly)
    return scores, np.where(scores > 2.0, anomaly, nan), rng.choice(["a", "b"], 9_000, p=[0.8, 0.2])


def test_all_groups_hold_together_with_smaller_deltas(traffic: tuple[Any, Any, Any]) -> None:
    scores, reviews, groups = traffic
    asked = Guarantee(max_false_alarms=0.01)
    each, all_of_them = (
        calibrate_traffic(scores, reviews, asked, by=groups, together=one) for one in (False, True)
    )
    assert each.confidence is None
    assert all_of_them.confidence == 0.95
    assert all_of_them.shares is not None
    # two groups share the delta as independent samples do; neither gets more than all of it
    assert 0.025 < all_of_them.shares[0] < 0.05
    for group, own in each.certificates.items():
        assert all_of_them.certificates[group].rule.anomaly_from >= own.rule.anomaly_from
    assert GroupCertificate.from_json(all_of_them.to_json()) == all_of_them


def test_a_file_that_claims_more_false_alarms_is_refused(
    traffic: tuple[Any, Any, Any],
) -> None:
    made = calibrate_traffic(*traffic[:2], Guarantee(max_false_alarms=0.01), by=traffic[2])
    content = json.loads(made.to_json())
    content["budget"][0][0] += 1
    del content["checksum"]
    content["checksum"] = checksum(content)
    with pytest.raises(CertificateError, match="budget of traffic"):
        GroupCertificate.from_json(json.dumps(content))


@pytest.mark.parametrize(
    "asked",
    [
        Guarantee(max_alarms=0.1, max_false_alarms=0.01),
        Guarantee(min_precision=0.9),
        Guarantee(max_false_alarms=0.01, reviews=Reviews(rate=0.5)),
    ],
    ids=str,
)
def test_promises_that_groups_cannot_keep_are_refused(
    asked: Guarantee, traffic: tuple[Any, Any, Any]
) -> None:
    with pytest.raises(InputError, match="traffic by group takes one promise"):
        calibrate_traffic(*traffic[:2], asked, by=traffic[2])


def test_groups_take_no_labelled_anomalies_and_together_needs_groups(
    traffic: tuple[Any, Any, Any],
) -> None:
    asked = Guarantee(max_false_alarms=0.01, max_fnr=0.1)
    with pytest.raises(InputError, match="by cannot be combined with anomalous"):
        calibrate_traffic(*traffic[:2], asked, anomalous=[1.0], **{"by": traffic[2]})
    with pytest.raises(InputError, match="together is for groups"):
        calibrate_traffic(*traffic[:2], Guarantee(max_false_alarms=0.01), **{"together": True})


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_points_without_a_score_come_last_in_their_group(asked: Guarantee) -> None:
    scores, groups = [nan] * 30 + [-1.0] * 70, ["a"] * 100
    made = calibrate_traffic(scores, None, asked, by=groups).certificates["a"]
    assert made.rule == calibrate_traffic(scores, None, asked).rule
    assert -1.0 < made.rule.anomaly_from < -0.999
