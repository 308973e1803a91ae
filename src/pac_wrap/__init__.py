"""Certified false positive and false negative rates around any anomaly detector."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pac_wrap.version import __version__ as __version__

if TYPE_CHECKING:
    from pac_wrap.binomial import achievable_rate as achievable_rate
    from pac_wrap.binomial import confidence as confidence
    from pac_wrap.binomial import error_budget as error_budget
    from pac_wrap.binomial import interval as interval
    from pac_wrap.binomial import lower_bound as lower_bound
    from pac_wrap.binomial import min_samples as min_samples
    from pac_wrap.binomial import upper_bound as upper_bound
    from pac_wrap.calibration import Verification as Verification
    from pac_wrap.calibration import calibrate as calibrate
    from pac_wrap.calibration import calibrate_labelled as calibrate_labelled
    from pac_wrap.calibration import verify as verify
    from pac_wrap.certificate import Certificate as Certificate
    from pac_wrap.certificate import Evidence as Evidence
    from pac_wrap.chunks import calibrate_chunks as calibrate_chunks
    from pac_wrap.errors import CertificateError as CertificateError
    from pac_wrap.errors import DataError as DataError
    from pac_wrap.errors import DependenceWarning as DependenceWarning
    from pac_wrap.errors import DetectorError as DetectorError
    from pac_wrap.errors import InputError as InputError
    from pac_wrap.errors import LabelWarning as LabelWarning
    from pac_wrap.errors import MissingExtraError as MissingExtraError
    from pac_wrap.errors import OutputError as OutputError
    from pac_wrap.errors import OverlapWarning as OverlapWarning
    from pac_wrap.errors import PACWrapError as PACWrapError
    from pac_wrap.errors import PACWrapWarning as PACWrapWarning
    from pac_wrap.errors import PrecisionWarning as PrecisionWarning
    from pac_wrap.errors import UpsideDownWarning as UpsideDownWarning
    from pac_wrap.errors import VacuousWarning as VacuousWarning
    from pac_wrap.estimator import PACWrap as PACWrap
    from pac_wrap.guarantee import Budget as Budget
    from pac_wrap.guarantee import Guarantee as Guarantee
    from pac_wrap.metrics import Metrics as Metrics
    from pac_wrap.metrics import Rate as Rate
    from pac_wrap.metrics import evaluate as evaluate
    from pac_wrap.relaxation import Strategy as Strategy
    from pac_wrap.scores import UnfittedError as UnfittedError
    from pac_wrap.scores import anomaly_scores as anomaly_scores
    from pac_wrap.stream import VerdictStream as VerdictStream
    from pac_wrap.thresholds import Regime as Regime
    from pac_wrap.thresholds import Thresholds as Thresholds
    from pac_wrap.thresholds import Verdict as Verdict

# Each name loads its module on first use, so that `import pac_wrap` stays as light as `import numpy`.
_HOME = {
    "binomial": "achievable_rate confidence error_budget interval lower_bound min_samples upper_bound",
    "calibration": "Verification calibrate calibrate_labelled verify",
    "chunks": "calibrate_chunks",
    "certificate": "Certificate Evidence",
    "errors": "CertificateError DataError DependenceWarning DetectorError InputError LabelWarning"
    " MissingExtraError OutputError OverlapWarning PACWrapError PACWrapWarning PrecisionWarning"
    " UpsideDownWarning VacuousWarning",
    "estimator": "PACWrap",
    "guarantee": "Budget Guarantee",
    "metrics": "Metrics Rate evaluate",
    "relaxation": "Strategy",
    "scores": "UnfittedError anomaly_scores",
    "stream": "VerdictStream",
    "thresholds": "Regime Thresholds Verdict",
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = ["__version__", *sorted(_MODULE_OF)]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'pac_wrap' has no attribute {name!r}")
    value = getattr(import_module(f"pac_wrap.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
