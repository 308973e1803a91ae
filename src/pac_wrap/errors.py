"""Every exception and warning PAC-Wrap raises on purpose.

PACWrapError
├── InputError           (ValueError)   scores, labels, rates or rows that break a rule
├── DetectorError        (TypeError)    a detector without usable scores, or with scores of unknown direction
├── UnfittedError        (also scikit-learn's NotFittedError, so it is defined in `scores.py`)
├── CertificateError     (ValueError)   a certificate file that is damaged, edited or unknown
├── OutputError          (OSError)      a file could not be written; nothing was left behind
├── DataError            (OSError)      a data set is unavailable: missing, damaged or out of reach
└── MissingExtraError    (ImportError)  an optional package is not installed; the text says what to install

PACWrapWarning           (UserWarning)
├── UpsideDownWarning    anomalies score lower than normals
├── LabelWarning         labels that had to be interpreted
├── VacuousWarning       too few labels for any useful promise
├── OverlapWarning       calibration rows that the detector was trained on
├── DependenceWarning    calibration points that depend on each other, in time or by subject
├── MissingScoreWarning  points without a score; their verdict is abstain
└── PrecisionWarning     scores of a narrower type than the certificate's, which may change verdicts
"""

from pac_wrap.base.text import message


class PACWrapError(Exception):
    """Any error PAC-Wrap raises on purpose; its text says what is wrong, why, and what to do.

    Examples
    --------
    >>> from pac_wrap import Guarantee
    >>> try:
    ...     Guarantee(max_fpr=5)
    ... except PACWrapError as error:
    ...     print(type(error).__name__, error, sep=": ")
    InputError: max_fpr must lie strictly between 0 and 1, got 5; write five percent as 0.05
    """

    def __str__(self) -> str:
        # the text quotes names, cells and other software, so it is cleaned before it reaches a terminal
        return message(super().__str__())


class InputError(PACWrapError, ValueError):
    """An argument breaks a rule; the text names the argument, the rule, the value and the remedy."""


class DetectorError(PACWrapError, TypeError):
    """The detector offers no scores that can be used, or does not tell which direction is anomalous."""


class CertificateError(PACWrapError, ValueError):
    """A certificate cannot be trusted: it is damaged, edited, inconsistent or of an unknown version."""


class OutputError(PACWrapError, OSError):
    """A file could not be written; no partial file is left, and an older file is unchanged."""


class DataError(PACWrapError, OSError):
    """A data set is missing, damaged or out of reach; the text says how to place it by hand."""


class MissingExtraError(PACWrapError, ImportError):
    """An optional package is not installed; the text says what to install."""


class PACWrapWarning(UserWarning):
    """Any warning of PAC-Wrap: the promise stays formally true, but is probably not what you want.

    Examples
    --------
    >>> import warnings
    >>> from pac_wrap import PACWrapWarning, calibrate
    >>> with warnings.catch_warnings(action="ignore", category=PACWrapWarning):  # all of ours
    ...     calibrate([1, 2], [3]).regime.value
    'vacuous'
    """

    def __str__(self) -> str:
        return message(super().__str__())


class UpsideDownWarning(PACWrapWarning):
    """Anomalies score significantly lower than normals in calibration: the scores look upside down."""


class LabelWarning(PACWrapWarning):
    """The labels may mislead: their meaning was guessed, or the labelled points were chosen by score."""


class VacuousWarning(PACWrapWarning):
    """Nothing useful is promised, since labels are too few or no single threshold could be certified."""


class OverlapWarning(PACWrapWarning):
    """Calibration rows are also in the training data, so the promise may not hold."""


class DependenceWarning(PACWrapWarning):
    """Calibration points depend on each other, in time or by subject, or may do so."""


class MissingScoreWarning(PACWrapWarning):
    """Some points to decide have no score; their verdict is abstain."""


class PrecisionWarning(PACWrapWarning):
    """Scores have a narrower type than those of the certificate, which may change verdicts."""
