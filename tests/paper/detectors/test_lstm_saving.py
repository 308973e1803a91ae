"""Saved detectors: the same scores after loading, no code in the file, and one sentence for a bad one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pac_wrap import InputError
from pac_wrap.errors import OutputError

torch = pytest.importorskip("torch", reason="torch is optional; `make deep` installs it")

from pac_wrap_paper.detectors import LSTMEncoderDecoder, LSTMForecaster  # noqa: E402  # they need torch

BOTH: list[Any] = [LSTMEncoderDecoder, LSTMForecaster]
SMALL: dict[str, Any] = {"length": 10, "hidden": 6, "layers": 1, "epochs": 2}
SERIES = np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=0)


@pytest.fixture(scope="module", params=BOTH, ids=lambda kind: kind.__name__)
def fitted(request: pytest.FixtureRequest) -> Any:
    return request.param(**SMALL, random_state=0, progress=lambda *_: None).fit(SERIES)


def test_a_loaded_detector_gives_the_same_scores(fitted: Any, tmp_path: Path) -> None:
    path = tmp_path / "detector"  # no ending is forced on a name
    fitted.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["detector"]
    loaded = type(fitted).load(str(path))
    np.testing.assert_array_equal(loaded.decision_function(SERIES), fitted.decision_function(SERIES))
    assert loaded.get_params() == fitted.get_params() | {"progress": None}
    for name in ("loss_curve_", "validation_curve_", "best_epoch_", "warm_up_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(fitted, name)
    again = tmp_path / "again"
    loaded.save(again)
    np.testing.assert_array_equal(
        type(fitted).load(again).decision_function(SERIES), fitted.decision_function(SERIES)
    )


def test_parameters_of_numpy_are_saved_and_generators_are_not(tmp_path: Path) -> None:
    detector = LSTMForecaster(
        **SMALL, target=range(0, 3, 2), smoothing=np.float64(3), random_state=np.random.RandomState(0)
    ).fit(SERIES)
    detector.save(tmp_path / "detector.npz")
    loaded = LSTMForecaster.load(tmp_path / "detector.npz")
    assert (loaded.target, loaded.smoothing, loaded.random_state) == ([0, 2], 3.0, None)
    np.testing.assert_array_equal(loaded.decision_function(SERIES), detector.decision_function(SERIES))


def test_a_file_of_the_other_class_is_refused(fitted: Any, tmp_path: Path) -> None:
    fitted.save(tmp_path / "detector.npz")
    (other,) = (kind for kind in BOTH if kind is not type(fitted))
    with pytest.raises(
        InputError, match=rf"of the class {other.__name__}, got {type(fitted).__name__}; load"
    ):
        other.load(tmp_path / "detector.npz")


@pytest.mark.parametrize(
    "content",
    [b"", b"not a detector", b"PK\x03\x04 half a zip", b"\x80\x04\x95.", b"\x93NUMPY"],
)
def test_a_foreign_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"foreign\.npz holds no detector that can be loaded: it is damaged"):
        LSTMForecaster.load(path)


def test_arrays_of_other_programs_and_a_pickle_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "foreign.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(InputError, match="it is damaged, or of another kind; save the detector again"):
        LSTMForecaster.load(path)
    np.savez(path, header=np.array([{"format": "code"}], dtype=object))
    with pytest.raises(InputError, match="it is damaged, or of another kind"):
        LSTMForecaster.load(path)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match="it is damaged, or of another kind"):
        LSTMForecaster.load(path)
    for header, text in (
        ({"format": "other", "version": 1}, "it is of another kind"),
        ({"format": "pac-wrap LSTM detector", "version": 2}, "it has version 2, but this program reads 1"),
    ):
        np.savez(path, header=np.array(json.dumps(header)))
        with pytest.raises(InputError, match=text):
            LSTMForecaster.load(path)


def test_paths_that_cannot_be_read_or_written_are_named(fitted: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*missing\.npz: No such file or directory; check the"):
        type(fitted).load(tmp_path / "missing.npz")
    with pytest.raises(InputError, match=r"cannot read .*: Is a directory; check the path"):
        type(fitted).load(tmp_path)
    with pytest.raises(OutputError, match="nothing was written"):
        fitted.save(tmp_path / "no" / "folder.npz")


def test_a_damaged_file_is_refused_or_harmless(fitted: Any, tmp_path: Path) -> None:
    path = tmp_path / "detector.npz"
    fitted.save(path)
    whole = path.read_bytes()
    expected = fitted.decision_function(SERIES)
    random = np.random.default_rng(0)
    for cut in random.integers(len(whole), size=20):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match="holds no detector"):
            type(fitted).load(path)
    refused = 0
    for place in random.integers(len(whole), size=150):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << random.integers(8)
        path.write_bytes(damaged)
        try:
            loaded = type(fitted).load(path)
        except InputError:
            refused += 1
        else:  # a date in the archive, for example
            np.testing.assert_array_equal(loaded.decision_function(SERIES), expected)
    assert refused > 75


@pytest.mark.parametrize("edit", ["parameters", "spread", "weight", "missing", "columns"])
def test_parts_that_do_not_fit_together_are_refused(edit: str, tmp_path: Path) -> None:
    path = tmp_path / "detector.npz"
    LSTMForecaster(**SMALL).fit(SERIES).save(path)
    with np.load(path) as archive:
        arrays: Any = dict(archive)
    header = json.loads(str(arrays["header"]))
    if edit == "parameters":
        header["parameters"]["unheard_of"] = 1
    elif edit == "columns":
        header["parameters"]["target"] = 9
    elif edit == "spread":
        arrays["spread"] = np.ones(2)
    elif edit == "weight":
        arrays["weight.output.weight"] = np.ones((2, 2), dtype=np.float32)
    else:
        del arrays["centre"]
    np.savez(path, **arrays | {"header": np.array(json.dumps(header))})
    with pytest.raises(InputError, match="its parts do not fit together; save the detector again"):
        LSTMForecaster.load(path)
