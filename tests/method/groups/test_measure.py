"""How the rules of groups do on new points, printed."""

import numpy as np
import pytest

from pac_wrap import Guarantee, InputError, LabelNoise, calibrate_labelled


def test_rates_are_printed_the_worst_group_first_with_what_is_exceeded() -> None:
    scores, labels = [*range(100), *range(200, 300)] * 2, ([0] * 100 + [1] * 100) * 2
    certificate = calibrate_labelled(scores, labels, by=["a"] * 200 + ["b"] * 200)
    new = np.r_[np.full(50, 10.0), np.full(50, 250.0), np.full(50, 10.0), np.full(50, 250.0)]
    measured = certificate.evaluate(new, [0] * 150 + [1] * 50, ["a"] * 50 + ["b"] * 50 + ["a"] * 100)
    assert str(measured).splitlines() == [
        "'b'           FPR 1.0000 [0.9289, 1.0000]  FNR no points",
        "'a'           FPR 0.0000 [0.0000, 0.0362]  FNR 0.0000 [0.0000, 0.0711]",
        "all together  FPR 0.3333 [0.2586, 0.4148]  FNR 0.0000 [0.0000, 0.0711]",
        "significantly above its ceiling: FPR of 'b'",
    ]


def test_of_many_groups_the_worst_are_printed_and_the_others_counted() -> None:
    groups = np.repeat(np.arange(25), 200)
    scores, labels = np.tile([*range(100), *range(200, 300)], 25), np.tile([0] * 100 + [1] * 100, 25)
    certificate = calibrate_labelled(scores, labels, by=groups)
    kept = str(certificate.evaluate(scores, labels, groups)).splitlines()
    assert len(kept) == 20 + 3
    assert kept[-3] == "and 5 more"
    assert kept[-1] == "significantly above its ceiling: none"
    broken = str(certificate.evaluate(300.0 + scores, np.zeros(labels.size), groups)).splitlines()
    assert broken[-1].endswith(" and 5 more")


@pytest.mark.filterwarnings("ignore::pac_wrap.VacuousWarning")
def test_a_group_is_looked_up_by_its_text_as_everywhere() -> None:
    measured = calibrate_labelled([0.0, 1.0, 5.0], [0, 1, 0], by=[1, 1, 2]).evaluate([0.0], [0], [1])
    assert measured.of("1") == measured.of(1) == measured.of(1.0)
    for other in (True, 3, None):
        with pytest.raises(InputError, match="there is no group"):
            measured.of(other)


def test_labels_wrong_in_one_class_are_counted_in_that_class_only() -> None:
    scores, labels, groups = np.arange(400.0), np.repeat([0, 1], 200), np.tile(["a", "b"], 200)
    noisy = Guarantee(0.1, 0.1, label_noise=(LabelNoise(0.05), None))
    found = calibrate_labelled(scores, labels, noisy, by=groups)
    measured = found.evaluate(scores, labels, groups)
    assert not measured.exceeded


def test_groups_are_sure_together_only_where_that_was_asked() -> None:
    scores, labels, groups = [*range(400)] * 2, [*[0] * 200, *[1] * 200] * 2, ["a"] * 400 + ["b"] * 400
    apart = calibrate_labelled(scores, labels, by=groups)
    assert apart.confidence is None
    together = calibrate_labelled(scores, labels, by=groups, together=True, overlap="raise")
    assert together.confidence == 0.9  # a level is chosen on both classes, so that only the sum is proved


def test_sets_of_groups_with_one_ceiling_rule_out_one_label() -> None:
    scores, labels, groups = [*range(400)], [*[0] * 200, *[1] * 200], ["a"] * 400
    found = calibrate_labelled(scores, labels, Guarantee(max_fpr=0.05, max_fnr=None), by=groups)
    assert found.prediction_sets([0.0, 500.0], ["a", "a"]).tolist() == [[True, True], [False, True]]
