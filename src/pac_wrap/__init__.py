"""Certified false positive and false negative rates around any anomaly detector."""

import dis
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pac_wrap.version import __version__ as __version__

# Type checkers follow these imports, and Python compiles them without running them, so that `import pac_wrap`
# stays as light as `import numpy`: what was compiled says where a name is loaded from when it is first used.
if TYPE_CHECKING:
    from pac_wrap.detectors.classifier import PACClassifier as PACClassifier
    from pac_wrap.detectors.estimator import PACWrap as PACWrap
    from pac_wrap.detectors.reweighting import estimate_weights as estimate_weights
    from pac_wrap.detectors.scores import anomaly_scores as anomaly_scores
    from pac_wrap.errors import CertificateError as CertificateError
    from pac_wrap.errors import DataError as DataError
    from pac_wrap.errors import DependenceWarning as DependenceWarning
    from pac_wrap.errors import DetectorError as DetectorError
    from pac_wrap.errors import InputError as InputError
    from pac_wrap.errors import LabelWarning as LabelWarning
    from pac_wrap.errors import MissingExtraError as MissingExtraError
    from pac_wrap.errors import MissingScoreWarning as MissingScoreWarning
    from pac_wrap.errors import OverlapWarning as OverlapWarning
    from pac_wrap.errors import PACWrapError as PACWrapError
    from pac_wrap.errors import PACWrapWarning as PACWrapWarning
    from pac_wrap.errors import PrecisionWarning as PrecisionWarning
    from pac_wrap.errors import UpsideDownWarning as UpsideDownWarning
    from pac_wrap.errors import VacuousWarning as VacuousWarning
    from pac_wrap.method.calibrate import calibrate as calibrate
    from pac_wrap.method.calibrate import calibrate_chunks as calibrate_chunks
    from pac_wrap.method.calibrate import calibrate_labelled as calibrate_labelled
    from pac_wrap.method.certificate import Certificate as Certificate
    from pac_wrap.method.classes import ClassCertificate as ClassCertificate
    from pac_wrap.method.classes import calibrate_classes as calibrate_classes
    from pac_wrap.method.curves.curve import Curve as Curve
    from pac_wrap.method.curves.curve import certify_curve as certify_curve
    from pac_wrap.method.curves.curve import certify_curve_chunks as certify_curve_chunks
    from pac_wrap.method.curves.curve import certify_curve_labelled as certify_curve_labelled
    from pac_wrap.method.groups.certificate import GroupCertificate as GroupCertificate
    from pac_wrap.method.metrics import evaluate as evaluate
    from pac_wrap.method.monitoring.monitor import Monitor as Monitor
    from pac_wrap.method.monitoring.monitor import recalibrate as recalibrate
    from pac_wrap.method.planning.plan import plan as plan
    from pac_wrap.method.planning.sequential import LabelUntil as LabelUntil
    from pac_wrap.method.promise import Guarantee as Guarantee
    from pac_wrap.method.provenance import Day as Day
    from pac_wrap.method.provenance import Event as Event
    from pac_wrap.method.robust.shift_and_noise import KL as KL
    from pac_wrap.method.robust.shift_and_noise import ChiSquared as ChiSquared
    from pac_wrap.method.robust.shift_and_noise import DensityRatio as DensityRatio
    from pac_wrap.method.robust.shift_and_noise import LabelNoise as LabelNoise
    from pac_wrap.method.robust.shift_and_noise import Reviews as Reviews
    from pac_wrap.method.robust.shift_and_noise import TotalVariation as TotalVariation
    from pac_wrap.method.rule import Regime as Regime
    from pac_wrap.method.rule import Rule as Rule
    from pac_wrap.method.rule import Verdict as Verdict
    from pac_wrap.method.strategies.interface import Abstain as Abstain
    from pac_wrap.method.strategies.interface import Hold as Hold
    from pac_wrap.method.strategies.raising import Algorithm1 as Algorithm1
    from pac_wrap.method.strategies.raising import Raise as Raise
    from pac_wrap.method.traffic.calibrate import calibrate_traffic as calibrate_traffic
    from pac_wrap.method.traffic.review import ReviewQueue as ReviewQueue
    from pac_wrap.streams.verdict_stream import VerdictStream as VerdictStream


def _homes() -> Iterator[tuple[str, str]]:
    """Yield each name that the code above imports from this package, with its module."""
    module = ""
    for step in dis.get_instructions(sys._getframe(1).f_code):
        if step.opname == "IMPORT_NAME":
            module = step.argval
        elif step.opname == "IMPORT_FROM" and module.startswith("pac_wrap."):
            yield step.argval, module


_MODULE_OF = dict(_homes())
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'pac_wrap' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
