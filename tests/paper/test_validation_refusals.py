"""What the validation, the baselines and the studies refuse, each in one sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap.errors import DataError
from pac_wrap.validation import exact_violation, violation_rate
from pac_wrap_paper.baselines import cpad
from pac_wrap_paper.data.store import VARIABLE, locate
from pac_wrap_paper.studies import check_numbers
from support.datafolder import empty_cache, small_file
from support.shell import refused
from support.strategies import refusal

SCORES = np.arange(50.0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"guarantee": 0.05}, "guarantee must be a Guarantee, got 0.05; write Guarantee(max_fpr=0.05)"),
        ({"sizes": (9,)}, "sizes must be the numbers of normal and of anomalous points, got (9,)"),
        ({"sizes": 9}, "sizes must be the numbers of normal and of anomalous points, got 9"),
        (
            {"future": (SCORES,)},
            "future must be a pair of arrays: the scores of normal and of anomalous points",
        ),
        ({"budget": lambda n, rate, delta: n}, "budget must allow fewer errors than there are points"),
        ({"budget": lambda n, rate, delta: -1}, "budget must be a whole number, 0 or more, got -1"),
        ({"budget": lambda n, rate, delta: 2.5}, "budget must be a whole number, 0 or more, got 2.5"),
    ],
)
def test_a_validation_that_cannot_be_is_refused(options: dict[str, Any], sentence: str) -> None:
    asked = {"sizes": (20, 20)} | options
    assert sentence in refusal(lambda: exact_violation(SCORES, SCORES, **asked))
    random = np.random.default_rng(0)
    assert sentence in refusal(lambda: violation_rate(SCORES, SCORES, random=random, **asked))


def test_a_seed_is_no_generator() -> None:
    sentence = refusal(violation_rate, SCORES, SCORES, (20, 20), random=0)
    assert sentence == "random must be a NumPy generator, got 0; pass np.random.default_rng(0)"


def test_cpad_wants_a_guarantee() -> None:
    sentence = refusal(cpad, SCORES, SCORES, 0.05)
    assert sentence.startswith("guarantee must be a Guarantee, got 0.05")


@pytest.mark.parametrize(
    ("seed", "trials", "sentence"),
    [
        (2**31, None, "seed must be less than 2^31"),
        (0, 10_000_001, "trials must be at most 10,000,000, got 10,000,001"),
        (0, -1, "trials must be at least 1, got -1"),
    ],
)
def test_numbers_of_a_study_that_cannot_be_are_refused(seed: int, trials: int | None, sentence: str) -> None:
    assert refusal(lambda: check_numbers(seed, trials)).startswith(sentence)


def test_all_channels_are_those_of_nasa(tmp_path: Path) -> None:
    sentence = refused(tmp_path, "reproduce", "q4", "--all")
    assert sentence == "--all works only with nasa; use pac-wrap reproduce nasa --all"


@pytest.mark.parametrize("kind", ["folder", "broken link"])
def test_what_is_no_file_in_the_place_of_one_is_named(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_cache(tmp_path / "cache", monkeypatch)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    file = small_file("http://127.0.0.1:9/small.csv")
    path = tmp_path / file.name
    path.mkdir() if kind == "folder" else path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError) as caught:
        locate(file)
    assert str(caught.value) == f"{path} must be a file, but it is something else or a broken link; remove it"
