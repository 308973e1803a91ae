"""The figures in the sentences around the promise, computed: what is left open, what looking again costs."""

from pathlib import Path
from typing import Final

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from pac_wrap import Guarantee, Regime
from pac_wrap.tails import Rate
from pac_wrap.tails.bounds import error_budget
from statistical.claims import assert_power, assert_rate
from support.exceeded import is_exceeded
from support.strategies import calibrate_quietly

ROOT: Final = Path(__file__).parents[2]
LEVEL: Final = 0.05


def broken_at_some_look(every: int, last: int) -> float:
    """Return the chance that a ceiling is broken at one of the looks, for continuous scores.

    At a look of n labels it is broken exactly if at most k*(n) of them are among the top 5 %: Lemma A.
    """
    walk, broken = np.ones(1), 0.0
    for n in range(every, last + 1, every):
        walk = np.convolve(walk, binom.pmf(np.arange(every + 1), every, LEVEL))
        budget = error_budget(n, LEVEL, LEVEL)
        if budget is not None:
            broken += walk[: budget + 1].sum()
            walk[: budget + 1] = 0.0
    return float(broken)


def test_recalibrating_every_20_labels_breaks_the_ceiling_in_24_percent_of_runs() -> None:
    assert broken_at_some_look(20, 2000) == pytest.approx(0.242, abs=5e-4)
    assert broken_at_some_look(2000, 2000) <= LEVEL
    # and so it is by simulation, with the budgets of `calibrate` and scores that are drawn
    rng = np.random.default_rng(6)
    trials = 4000
    top = (rng.random((trials, 2000)) > 1.0 - LEVEL).cumsum(axis=1)[:, 19::20]
    budgets = [error_budget(n, LEVEL, LEVEL) for n in range(20, 2001, 20)]
    least = np.array([-1 if budget is None else budget for budget in budgets])
    hits = int((top <= least).any(axis=1).sum())
    assert_rate(hits, trials, 0.242)
    assert_power(trials, 0.242, 0.3)


def test_a_nightly_evaluation_raises_a_false_alarm_within_a_year() -> None:
    first = next(errors for errors in range(201) if is_exceeded(LEVEL, Rate(errors, 200, 0.0, 1.0)))
    a_night = float(binom.sf(first - 1, 200, 0.042))
    assert a_night == pytest.approx(0.0108, abs=5e-5)
    assert 1 - (1 - a_night) ** 365 == pytest.approx(0.98, abs=2e-3)


def test_given_that_the_classes_came_out_apart_a_promise_may_be_broken_always() -> None:
    n, gap = 59, 3.0
    apart, _ = quad(lambda x: n * norm.pdf(x) * norm.cdf(x) ** (n - 1) * norm.sf(x - gap) ** n, -6, 9)
    assert apart == pytest.approx(0.0012, abs=5e-5)
    # no threshold at all keeps both ceilings
    assert norm.isf(LEVEL) > gap + norm.ppf(LEVEL)
    # `calibrate` calls such samples separated, and its certificate is then one of the broken ones
    rng = np.random.default_rng(7)
    seen = 0
    for _ in range(200):
        drawn = rng.normal(size=(1000, 2, n)) + np.array([[0.0], [gap]])
        for normal, anomalous in drawn[drawn[:, 0].max(axis=1) < drawn[:, 1].min(axis=1)]:
            certificate = calibrate_quietly(normal, anomalous, Guarantee())
            assert certificate.regime is Regime.SEPARATED
            alarm_from, clear_below = certificate.thresholds.alarm_from, certificate.thresholds.clear_below
            assert alarm_from is not None
            assert clear_below is not None
            assert norm.sf(alarm_from) > LEVEL or norm.cdf(clear_below - gap) > LEVEL
            seen += 1
    assert_rate(seen, 200_000, apart)
    assert seen > 100


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            "docs/guarantee.md",
            ["`delta_fpr` \N{MINUS SIGN} `delta_fnr`", "not about every batch", "24 %", "nightly"],
        ),
        ("docs/guide/tables.md", ["a single batch", "24 %", "98 %"]),
        (
            "docs/theory.md",
            [
                r"\delta_0 - \delta_1",
                "a batch varies",
                "unconditional",
                "0.242",
                "0.98 within a year",
                "0.0012",
            ],
        ),
    ],
)
def test_the_documents_say_so(document: str, words: list[str]) -> None:
    text = " ".join((ROOT / document).read_text(encoding="utf-8").split())
    assert [word for word in words if word not in text] == []
