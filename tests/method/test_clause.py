"""A clause by itself: what it says in words, and what was measured of its points."""

import pytest

from pac_wrap import InputError, calibrate
from pac_wrap.method.metrics import Measured
from pac_wrap.method.promise import Clause, Population

CERTIFICATE = calibrate(range(100), {"a": range(200, 300)})


def test_a_clause_says_what_its_points_contributed() -> None:
    assert CERTIFICATE.clause("anomalous", "a").words == "100 labels, 1 error allowed"
    assert Clause(Population("normal"), None, None, 7, "0" * 16).words == "7 labels, no ceiling requested"


def test_a_clause_that_promises_nothing_is_sure_of_nothing() -> None:
    assert Clause(Population("normal"), None, None, 7, "0" * 16).confidence == 0


def test_a_clause_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"no clause about anomalous points of kind 'b'; certificate\.clauses lists"
    ):
        CERTIFICATE.clause("anomalous", "b")


@pytest.mark.parametrize(
    ("ceiling", "counts", "finding"),
    [
        (None, (1, 0, 2), "nothing promised"),
        (0.1, (0, 0, 0), "no points"),
        (0.1, (1, 0, 100), "within"),
        (0.1, (11, 0, 100), "above, not significantly"),
        (0.1, (30, 0, 100), "exceeded"),
    ],
)
def test_a_finding_is_a_word_or_two(
    ceiling: float | None, counts: tuple[int, int, int], finding: str
) -> None:
    (measured,) = Measured.together([("a", ceiling, counts)])
    assert measured.finding == finding
    assert str(measured).endswith(finding)
