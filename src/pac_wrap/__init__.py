"""Certified false positive and false negative rates around any anomaly detector."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pac_wrap.version import __version__ as __version__

if TYPE_CHECKING:
    from pac_wrap.detectors.classifier import PACClassifier as PACClassifier
    from pac_wrap.detectors.estimator import PACWrap as PACWrap
    from pac_wrap.detectors.reweighting import EstimatedWeights as EstimatedWeights
    from pac_wrap.detectors.reweighting import estimate_weights as estimate_weights
    from pac_wrap.detectors.scores import UnfittedError as UnfittedError
    from pac_wrap.detectors.scores import anomaly_scores as anomaly_scores
    from pac_wrap.errors import CertificateError as CertificateError
    from pac_wrap.errors import DataError as DataError
    from pac_wrap.errors import DependenceWarning as DependenceWarning
    from pac_wrap.errors import DetectorError as DetectorError
    from pac_wrap.errors import InputError as InputError
    from pac_wrap.errors import LabelWarning as LabelWarning
    from pac_wrap.errors import MissingExtraError as MissingExtraError
    from pac_wrap.errors import MissingScoreWarning as MissingScoreWarning
    from pac_wrap.errors import OutputError as OutputError
    from pac_wrap.errors import OverlapWarning as OverlapWarning
    from pac_wrap.errors import PACWrapError as PACWrapError
    from pac_wrap.errors import PACWrapWarning as PACWrapWarning
    from pac_wrap.errors import PrecisionWarning as PrecisionWarning
    from pac_wrap.errors import UpsideDownWarning as UpsideDownWarning
    from pac_wrap.errors import VacuousWarning as VacuousWarning
    from pac_wrap.method.alarms.precision import Bounds as Bounds
    from pac_wrap.method.alarms.precision import Workload as Workload
    from pac_wrap.method.calibrate import calibrate as calibrate
    from pac_wrap.method.calibrate import calibrate_labelled as calibrate_labelled
    from pac_wrap.method.certificates.certificate import Certificate as Certificate
    from pac_wrap.method.certificates.lineage import Lineage as Lineage
    from pac_wrap.method.certificates.provenance import Provenance as Provenance
    from pac_wrap.method.certificates.verify import Verification as Verification
    from pac_wrap.method.certificates.verify import verify as verify
    from pac_wrap.method.certify import calibrate_chunks as calibrate_chunks
    from pac_wrap.method.curves.certify import certify_curve as certify_curve
    from pac_wrap.method.curves.certify import certify_curve_chunks as certify_curve_chunks
    from pac_wrap.method.curves.certify import verify_curve as verify_curve
    from pac_wrap.method.curves.curve import Curve as Curve
    from pac_wrap.method.groups.calibrate import calibrate_groups as calibrate_groups
    from pac_wrap.method.groups.certificate import GroupCertificate as GroupCertificate
    from pac_wrap.method.groups.curves import certify_curve_groups as certify_curve_groups
    from pac_wrap.method.groups.gaps import Gap as Gap
    from pac_wrap.method.groups.gaps import Gaps as Gaps
    from pac_wrap.method.groups.verify import verify_groups as verify_groups
    from pac_wrap.method.kinds.certificate import KindCertificate as KindCertificate
    from pac_wrap.method.kinds.classes import ClassCertificate as ClassCertificate
    from pac_wrap.method.kinds.classes import calibrate_classes as calibrate_classes
    from pac_wrap.method.kinds.classes import verify_classes as verify_classes
    from pac_wrap.method.kinds.part import Measured as Measured
    from pac_wrap.method.kinds.part import Part as Part
    from pac_wrap.method.metrics import Metrics as Metrics
    from pac_wrap.method.metrics import Rate as Rate
    from pac_wrap.method.metrics import evaluate as evaluate
    from pac_wrap.method.monitoring.alarm import Alarm as Alarm
    from pac_wrap.method.monitoring.bets import confidence_sequence as confidence_sequence
    from pac_wrap.method.monitoring.monitor import Monitor as Monitor
    from pac_wrap.method.monitoring.recalibrate import recalibrate as recalibrate
    from pac_wrap.method.planning.plan import Plan as Plan
    from pac_wrap.method.planning.plan import plan as plan
    from pac_wrap.method.planning.sequential import LabelUntil as LabelUntil
    from pac_wrap.method.promise import Error as Error
    from pac_wrap.method.promise import Guarantee as Guarantee
    from pac_wrap.method.promise import Population as Population
    from pac_wrap.method.promise import Promise as Promise
    from pac_wrap.method.request import Request as Request
    from pac_wrap.method.robust.radius import Radius as Radius
    from pac_wrap.method.robust.shift_and_noise import KL as KL
    from pac_wrap.method.robust.shift_and_noise import ChiSquared as ChiSquared
    from pac_wrap.method.robust.shift_and_noise import DensityRatio as DensityRatio
    from pac_wrap.method.robust.shift_and_noise import LabelNoise as LabelNoise
    from pac_wrap.method.robust.shift_and_noise import TotalVariation as TotalVariation
    from pac_wrap.method.robust.weights import Weighting as Weighting
    from pac_wrap.method.rule import Rule as Rule
    from pac_wrap.method.rule import Verdict as Verdict
    from pac_wrap.method.strategies.abstain import Abstain as Abstain
    from pac_wrap.method.strategies.algorithm1 import Algorithm1 as Algorithm1
    from pac_wrap.method.strategies.given import Given as Given
    from pac_wrap.method.strategies.hold import Hold as Hold
    from pac_wrap.method.strategies.interface import Strategy as Strategy
    from pac_wrap.method.strategies.looks import Looks as Looks
    from pac_wrap.method.strategies.raising import Raise as Raise
    from pac_wrap.method.thresholds import Evidence as Evidence
    from pac_wrap.method.thresholds import Regime as Regime
    from pac_wrap.method.thresholds import Thresholds as Thresholds
    from pac_wrap.streams.verdict_stream import VerdictStream as VerdictStream
    from pac_wrap.tails.bounds import Budget as Budget
    from pac_wrap.tails.bounds import achievable_rate as achievable_rate
    from pac_wrap.tails.bounds import error_budget as error_budget
    from pac_wrap.tails.bounds import exact_confidence as exact_confidence
    from pac_wrap.tails.bounds import interval as interval
    from pac_wrap.tails.bounds import lower_bound as lower_bound
    from pac_wrap.tails.bounds import min_samples as min_samples
    from pac_wrap.tails.bounds import upper_bound as upper_bound

# Each name loads its module on first use, so that `import pac_wrap` stays as light as `import numpy`.
_HOME = {
    "errors": "CertificateError DataError DependenceWarning DetectorError InputError LabelWarning"
    " MissingExtraError MissingScoreWarning OutputError OverlapWarning PACWrapError PACWrapWarning"
    " PrecisionWarning UpsideDownWarning VacuousWarning",
    "method.strategies.abstain": "Abstain",
    "method.strategies.algorithm1": "Algorithm1",
    "tails.bounds": "Budget achievable_rate error_budget exact_confidence interval lower_bound min_samples"
    " upper_bound",
    "method.calibrate": "calibrate calibrate_labelled",
    "method.request": "Request",
    "method.certificates.certificate": "Certificate",
    "method.curves.certify": "certify_curve certify_curve_chunks verify_curve",
    "method.curves.curve": "Curve",
    "method.certify": "calibrate_chunks",
    "method.groups.calibrate": "calibrate_groups",
    "method.groups.certificate": "GroupCertificate",
    "method.groups.curves": "certify_curve_groups",
    "method.groups.gaps": "Gap Gaps",
    "method.groups.verify": "verify_groups",
    "method.metrics": "Metrics Rate evaluate",
    "method.promise": "Error Population Promise Guarantee",
    "method.certificates.provenance": "Provenance",
    "method.robust.radius": "Radius",
    "method.robust.shift_and_noise": "ChiSquared DensityRatio KL LabelNoise TotalVariation",
    "method.robust.weights": "Weighting",
    "method.strategies.given": "Given",
    "method.strategies.hold": "Hold",
    "method.strategies.interface": "Strategy",
    "method.strategies.looks": "Looks",
    "method.strategies.raising": "Raise",
    "method.planning.plan": "Plan plan",
    "method.kinds.classes": "calibrate_classes verify_classes ClassCertificate",
    "method.kinds.certificate": "KindCertificate",
    "method.kinds.part": "Measured Part",
    "method.planning.sequential": "LabelUntil",
    "method.rule": "Rule Verdict",
    "method.thresholds": "Evidence Regime Thresholds",
    "method.certificates.verify": "Verification verify",
    "method.monitoring.alarm": "Alarm",
    "method.monitoring.bets": "confidence_sequence",
    "method.monitoring.monitor": "Monitor",
    "method.monitoring.recalibrate": "recalibrate",
    "method.certificates.lineage": "Lineage",
    "method.alarms.precision": "Bounds Workload",
    "detectors.classifier": "PACClassifier",
    "detectors.estimator": "PACWrap",
    "detectors.reweighting": "EstimatedWeights estimate_weights",
    "detectors.scores": "UnfittedError anomaly_scores",
    "streams.verdict_stream": "VerdictStream",
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
