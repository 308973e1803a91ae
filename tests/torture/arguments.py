"""Wrong arguments for everything public: each call answers, or refuses in one sentence, within seconds."""

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

import pac_wrap
from pac_wrap import Certificate, Guarantee, PACWrapError, PACWrapWarning, Rule, tails, validation
from pac_wrap import series as timeseries
from pac_wrap.method.calibrate import Request
from pac_wrap.method.rule import Thresholds
from pac_wrap_paper import baselines
from support.shell import CERTIFICATE

_SECONDS: Final = 5.0
_LONGEST: Final = 2100
_RULE = Certificate.load(CERTIFICATE)

Call = tuple[Callable[..., Any], dict[str, Any]]


def _values(random: np.random.Generator) -> list[Any]:
    """Return values of every kind that somebody might pass, most of them wrong at most places."""
    floats = random.normal(size=int(random.integers(0, 40)))
    odd = floats.copy()
    odd[: odd.size // 3] = random.choice([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308], odd.size // 3)
    import pandas as pd

    return [
        None, True, False, 0, 1, -1, 2, 59, 10**6, 2**53, 2**63 - 1, 2**63, -(2**63), 10**400,
        0.0, -0.0, 0.05, 0.5, 1.0, 1.5, -0.1, float("nan"), float("inf"), -float("inf"),
        5e-324, 1e-300, 1e-16, 1 - 1e-16, np.nextafter(1.0, 0.0), 1e308,
        Decimal("0.05"), Decimal("NaN"), Decimal("1e-999"), Fraction(1, 20), 1j,
        np.float32(0.05), np.float16(0.05), np.int8(1), np.uint64(2**64 - 1), np.bool_(True),
        "", "0.05", "algorithm1", "a\nb", "\x1b[31m", "\ud800", b"bytes", "1" * 5000,
        [], [[]], [1, "a"], [None], [[1.0], [2.0, 3.0]], (), (1, 2), {}, {"a": 1}, {1, 2}, object(), int,
        range(20), (value for value in (0.1, 0.2)), floats, odd, floats.astype(np.float32),
        floats.astype(np.float16), floats.astype(object), floats.astype(str), floats.astype(complex),
        np.ma.masked_array(floats, floats > 0), np.zeros((2, 2)), np.zeros((0, 3)), np.zeros(()),
        np.array(["2024-01-01"], dtype="datetime64[D]"), np.array([b"x"]), np.zeros(3, dtype="f8,i4"),
        (floats > 0).astype(int), floats > 0, np.ones(40), np.zeros(40, dtype=int), floats[::-2],
        np.asfortranarray(np.ones((3, 3))), floats.astype(">f8"), np.longdouble(floats),
        pd.Series(floats), pd.Series(floats, index=range(floats.size, 0, -1)), pd.Series([None, 1.0]),
        pd.Series(pd.array([1, None], dtype="Int64")), pd.DataFrame({"a": floats}),
        pd.Series(["a", "b"], dtype="category"), Guarantee(), _RULE, Thresholds(0.7, 0.3), _RULE.rule,
        pac_wrap.Hold("fnr"), Request(),
        np.random.default_rng(0), lambda *_: None, Exception("x"), NotImplemented, ...,
    ]  # fmt: skip  # a row is one line


def _calls(random: np.random.Generator) -> dict[str, Call]:
    """Return calls that work, by name: one or two of their arguments are then replaced."""
    normal, anomalous = random.normal(size=80), random.normal(4.0, size=70)
    scores, labels = np.concatenate([normal, anomalous]), np.repeat([0, 1], [80, 70])
    asked = Guarantee(0.1, 0.1)
    options: dict[str, Any] = {
        **{"step": 0.1, "growth": "linear", "raised": "both", "relax_delta": False},
        **{"correction": "exact", "position": 0.5},
    }
    single = {"overlap": "algorithm1"}
    rule = Rule(normal_below=0.3, anomaly_from=0.7)
    points = timeseries.window_points(scores, labels)
    pairs: dict[str, Call] = {
        "error_budget": (tails.error_budget, {"n": 100, "rate": 0.1, "delta": 0.1}),
        "exact_confidence": (tails.exact_confidence, {"n": 100, "rate": 0.1, "errors": 3}),
        "min_samples": (tails.min_samples, {"rate": 0.1, "delta": 0.1, "errors": 1}),
        "upper_bound": (tails.upper_bound, {"errors": 1, "n": 100, "delta": 0.1}),
        "lower_bound": (tails.lower_bound, {"errors": 1, "n": 100, "delta": 0.1}),
        "interval": (tails.interval, {"errors": 1, "n": 100, "confidence": 0.9}),
        "Guarantee": (Guarantee, {"max_fpr": 0.1, "max_fnr": 0.1, "delta_fpr": 0.1, "delta_fnr": 0.1}),
        "Budget.of": (tails.Budget.of, {"n": 100, "rate": 0.1, "delta": 0.1}),
        "Algorithm1": (pac_wrap.Algorithm1, options),
        "Hold": (pac_wrap.Hold, {"rate": "fnr"}),
        "Rule": (Rule, {"normal_below": 0.3, "anomaly_from": 0.7}),
        "Request": (Request.of, {"asked": asked, "overlap": "hold_fnr", "anomaly_label": 1}),
        "confidence": (Guarantee, {"max_fpr": 0.1, "max_fnr": 0.1, "confidence": 0.9}),
        "calibrate": (
            pac_wrap.calibrate,
            {"normal": normal, "anomalous": anomalous, "guarantee": asked, **single},
        ),
        "calibrate_labelled": (
            pac_wrap.calibrate_labelled,
            {"scores": scores, "labels": labels, "guarantee": asked, "anomaly_label": 1},
        ),
        "calibrate_chunks": (
            pac_wrap.calibrate_chunks,
            {"chunks": lambda: [(scores, labels)], "guarantee": asked, "anomaly_label": 1, **single},
        ),
        "verify": (_RULE.verify, {"normal": normal, "anomalous": anomalous}),
        "evaluate": (
            pac_wrap.evaluate,
            {"verdicts": labels, "labels": labels, "anomaly_label": 1, "confidence": 0.9},
        ),
        "verdicts": (_RULE.verdicts, {"scores": scores}),
        "prediction_sets": (_RULE.prediction_sets, {"scores": scores}),
        "Rule.verdicts": (rule.verdicts, {"scores": scores}),
        "VerdictStream": (
            lambda rule, batches: list(pac_wrap.VerdictStream(rule, batches)),
            {"rule": rule, "batches": [scores]},
        ),
        "anomaly_scores": (
            pac_wrap.anomaly_scores,
            {"detector": "precomputed", "X": scores, "polarity": "auto", "anomaly_label": 1},
        ),
        "from_json": (Certificate.from_json, {"text": CERTIFICATE.read_text(encoding="utf-8")}),
        "PACWrap": (
            lambda X, y, **given: pac_wrap.PACWrap("precomputed", **given).fit(X, y).predict(X),
            {
                "X": scores,
                "y": labels,
                "max_fpr": 0.1,
                "max_fnr": 0.1,
                "delta_fpr": 0.1,
                "delta_fnr": 0.1,
                "confidence": None,
                **single,
                "train_on": "auto",
                "calibration_size": 0.5,
                "polarity": "auto",
                "random_state": 0,
            },
        ),
        "window_points": (
            timeseries.window_points,
            {"scores": scores, "labels": labels, "length": 1, "every": 2, "reduce": "max"},
        ),
        "calibrate_points": (timeseries.calibrate_points, {"points": points, "guarantee": asked}),
        "dependence": (timeseries.dependence, {"indicator": labels, "positions": None, "max_lag": 9}),
        "Points.divided": (
            points.divided,
            {"random": np.random.default_rng(0), "calibration": 0.2, "block": 5, "gap": 1},
        ),
        "exact_violation": (
            validation.exact_violation,
            {"normal": normal, "anomalous": anomalous, "sizes": (80, 70), "guarantee": asked},
        ),
        "violation_rate": (
            validation.violation_rate,
            {
                "normal": normal,
                "anomalous": anomalous,
                "sizes": (80, 70),
                "guarantee": asked,
                "trials": 10,
                "random": np.random.default_rng(0),
                "confidence": 0.9,
            },
        ),
        "cpad": (baselines.cpad, {"normal": normal, "anomalous": anomalous, "guarantee": asked}),
        "f1_max": (baselines.f1_max, {"normal": normal, "anomalous": anomalous}),
        "percentile": (baselines.percentile, {"normal": normal, "contamination": 0.1}),
    }
    return pairs


def wrong_argument(random: np.random.Generator, folder: Path) -> str:
    """Call something public with one or two of its arguments replaced."""
    calls = _calls(random)
    name = str(random.choice(sorted(calls)))
    function, arguments = calls[name]
    values = _values(random)
    changed = random.choice(sorted(arguments), size=min(len(arguments), int(random.integers(1, 3))))
    given = arguments | {str(one): values[int(random.integers(len(values)))] for one in changed}
    shown = {str(one): f"{type(given[str(one)]).__name__} {given[str(one)]!r:.80}" for one in changed}
    try:
        with _within(_SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PACWrapWarning)
            function(**given)
    except PACWrapError as error:
        text = str(error)
        assert text, f"{name}({shown}) is refused without a word"
        assert len(text) <= _LONGEST, f"{name}({shown}) is refused in {len(text):,} characters"
        assert text.isprintable(), f"{name}({shown}) is refused with control characters: {text!r}"
        return "refused in one sentence"
    except Exception as error:
        raise AssertionError(f"{name}({shown}) raises {type(error).__name__}: {error}") from error
    return "answered"


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError if the block takes longer."""

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
