"""The census by sex and age: one threshold is true for the mixture, and false for a third of the groups."""

import numpy as np
import pytest

from pac_wrap import Guarantee, calibrate, calibrate_labelled
from pac_wrap.method.metrics import evaluate
from pac_wrap_paper.studies.groups import LEARNED, scored_people
from support.datafolder import needs
from support.exceeded import is_exceeded

ASKED = Guarantee(max_fpr=0.05, max_fnr=None)


@pytest.mark.slow
def test_a_pooled_promise_is_broken_where_ours_is_kept() -> None:
    needs("census")
    people = scored_people(LEARNED)
    score, label, group = people.scores, people.labels == 1, people.groups
    ours = np.random.default_rng(0).random(score.size) < 0.5
    pooled = calibrate(score[ours & ~label], score[ours & label], ASKED)
    certificate = calibrate_labelled(score[ours], label[ours], ASKED, together=True, by=group[ours])
    fresh = ~ours
    verdicts = pooled.verdicts(score[fresh])
    # true for all together
    assert not is_exceeded(0.05, evaluate(verdicts, label[fresh]).fpr)
    broken = {
        name
        for name in people.names
        if is_exceeded(0.05, evaluate(verdicts[group[fresh] == name], label[fresh][group[fresh] == name]).fpr)
    }
    # false for men from 30 to 69: a third of the groups, up to five times the ceiling
    assert broken == {f"men, {band}" for band in ("30 to 39", "40 to 49", "50 to 59", "60 to 69")}
    forties = group[fresh] == "men, 40 to 49"
    assert evaluate(verdicts[forties], label[fresh][forties]).fpr.value > 0.2
    measured = certificate.evaluate(score[fresh], label[fresh], group[fresh])
    assert measured.exceeded == ()
    gap = certificate.gaps().fpr
    assert gap is not None
    assert gap.bound is not None
    assert gap.bound < 0.05
