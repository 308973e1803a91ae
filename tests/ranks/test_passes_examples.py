import numpy as np

from pac_wrap.ranks.memory import Rank
from pac_wrap.ranks.passes import (
    PartitionTask,
    RankSearch,
    ScoreAtRank,
    first_pass,
    split_classes,
    survey,
    within,
)


def test_survey() -> None:
    both = survey(np.array([1.0, 2.0]), np.zeros(0)) + survey(np.array([4.0]), np.array([2.0, 8.0]))
    assert (both.sizes, both.largest_auc()) == (((3, 2), 0.8333333333333334))


def test_survey_of_one_class() -> None:
    assert (survey(np.array([1.0, 2.0]), np.zeros(0)).sizes) == ((2, 0))


def test_within() -> None:
    assert (within(np.array([1.0, 2.0, 3.0]), ((0.0, 1.0), (2.5, 3.0))).tolist()) == ([True, False, True])


def test_ranksearch() -> None:
    normal, anomalous = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0])
    search = RankSearch.begin(survey(normal, anomalous), [Rank(0, 3), Rank(1, 1)])
    search = search.advance(search(normal, anomalous))
    assert not search.wanted
    assert search.found[Rank(1, 1)] == ScoreAtRank(score=2.0, below=(1, 0), equal=(1, 1))


def test_split_classes() -> None:
    assert (split_classes("chunk 0", [0.1, 0.9], ["ok", "fault"], "fault")[0][0].tolist()) == ([0.1])


def test_firstfound_at() -> None:
    first = first_pass(((2.0, 3.0),), np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0]))
    assert (first.at([Rank(0, 1), Rank(0, 2)])) == (
        {Rank(label=0, k=2): ScoreAtRank(score=2.0, below=(1, 0), equal=(1, 1))}
    )


def test_partitiontask() -> None:
    assert PartitionTask(survey, 1)(0, [0.1, 0.9, 0.2], [0, 1, 0]).value.sizes == (2, 1)
    assert PartitionTask(survey, 1)(7, [0.1, float("nan")], [0, 1]).missing == ((7, 1, 2),)
    assert PartitionTask(survey, 1, parts=3)(0, [0.1, 0.9, 0.2], [0, 2, 2]).value.sizes == (1, 0, 2)
