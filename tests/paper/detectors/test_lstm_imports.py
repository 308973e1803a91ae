"""torch is optional: what is loaded when, and what is said where it is missing."""

import subprocess
import sys

import pytest

from pac_wrap import MissingExtraError
from pac_wrap_paper import detectors
from pac_wrap_paper.detectors.lstm import LSTMForecaster, import_torch
from support.patience import LIMIT


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LSTMEncoderDecoder", "LSTMForecaster"])
def test_without_torch_one_sentence_says_how_to_get_it(name: str) -> None:
    code = f"""
import sys

class NoTorch:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, NoTorch)
from pac_wrap import MissingExtraError
from pac_wrap_paper.detectors import DevNet
from pac_wrap_paper.detectors import lstm
try:
    from pac_wrap_paper.detectors import {name}
except MissingExtraError as error:
    print(error)
try:
    lstm.{name}().fit([[1.0], [2.0]])
except MissingExtraError as error:
    print(error)
"""
    sentence = 'torch is not installed; run pip install "pac-wrap-ad[deep]", or make deep'
    assert run(code).splitlines() == [sentence] * 2


def test_torch_is_loaded_only_for_what_needs_it() -> None:
    code = "import sys\nfrom pac_wrap_paper.detectors import DevNet\nprint('torch' in sys.modules)"
    assert run(code) == "False"


def test_the_address_lists_its_names_and_refuses_others() -> None:
    assert {"DevNet", "LSTMEncoderDecoder", "LSTMForecaster"} <= set(dir(detectors))
    with pytest.raises(AttributeError, match=r"'pac_wrap_paper\.detectors' has no attribute 'GRU'"):
        _ = detectors.GRU


def test_a_loaded_name_is_kept() -> None:
    pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")
    assert detectors.LSTMForecaster is vars(detectors)["LSTMForecaster"]
    assert detectors.LSTMForecaster is LSTMForecaster


def test_the_missing_package_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match="torch is not installed; run pip install"):
        import_torch()
