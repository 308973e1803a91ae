"""Whether a certificate belongs to given scores: it is made again from them, and compared."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose
from typing import Any, Final

from numpy.typing import ArrayLike

from pac_wrap.base.arguments import Scores, as_array, as_scores, type_of
from pac_wrap.base.codec import flat
from pac_wrap.base.floats import ScoreType, is_narrower, rounded
from pac_wrap.base.text import quoted
from pac_wrap.errors import InputError, PACWrapWarning
from pac_wrap.method.calibrate import calibrate
from pac_wrap.method.certificates.certificate import Certificate, Kinds
from pac_wrap.method.kinds.calibrate import recalibrate_kinds
from pac_wrap.method.request import Request
from pac_wrap.method.robust.weights import Weights

_VERIFIED: Final = """\
verified: these {} order, give this certificate
not shown: that the detector gave these scores, that the labels are right,
           that nobody chose the rows; a digest detects accidents, not forgery"""

_NO_DIGEST: Final = """\
           that these are all the very same scores: the certificate has no digest of them"""

_ORDER: Final = "weights draw points in their order, which must be that of calibration"

# what the scores do not tell
_OTHERWISE_KNOWN: Final = ("assumptions", "sampling", "version", "provenance", "lineage", "weighting.chosen")


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether a certificate is what its scores give; true exactly if there is no difference.

    Parameters
    ----------
    differences : tuple of str
        Where the certificate and its scores differ, a sentence each.
    digested : bool
        Whether the certificate has a digest of its scores; without one only what it says of them is compared.
    ordered : bool
        Whether the order of the points counts, since they were drawn by weights.

    Examples
    --------
    >>> bool(Verification(()))
    True
    """

    differences: tuple[str, ...]
    digested: bool = True
    ordered: bool = False

    def __bool__(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.differences:
            notes = (_ORDER,) * self.ordered
            return "not verified: " + "\n              ".join((*self.differences, *notes))
        verified = _VERIFIED.format(
            "scores, labels and weights, in this" if self.ordered else "scores and labels, in any"
        )
        return verified if self.digested else f"{verified}\n{_NO_DIGEST}"


def verify(
    certificate: Certificate,
    normal: ArrayLike | Kinds,
    anomalous: ArrayLike | Kinds,
    *,
    normal_weights: Weights | None = None,
    anomalous_weights: Weights | None = None,
) -> Verification:
    """Recompute a certificate from the scores it was made of, and say where the two differ.

    This shows that the scores, in any order unless they have weights, give the certificate. It does not show
    that the detector gave these scores, that the labels are right, or that nobody chose the rows.

    Parameters
    ----------
    certificate : Certificate
        What is to be verified.
    normal, anomalous : array-like of float, or mapping of kinds to such
        The calibration scores of each class, by kind for a certificate of kinds. Those of a wider type than
        the certificate's are rounded to it first: a float32 that was written as 0.3 comes back as a double.
    normal_weights, anomalous_weights : array-like of float, or pair of such, optional
        The weights that `calibrate` was given, if any, in the order of the scores.

    Returns
    -------
    Verification
        True if nothing differs; printed, it says what does.

    Raises
    ------
    InputError
        If the first argument is not a certificate, scores are not numbers, or weights are missing.

    Examples
    --------
    >>> certificate = calibrate([0.1, 0.2], [0.8, 0.9])
    >>> bool(verify(certificate, [0.2, 0.1], [0.8, 0.9]))
    True
    >>> print(verify(certificate, [0.1, 0.3], [0.8, 0.9]))
    not verified: normal.digest is '4bf0b9951e6a64ba' in the certificate, '6564847ef7e48ce1' from the scores
    """
    if not isinstance(certificate, Certificate):
        raise InputError(
            f"certificate must be a Certificate, got {quoted(certificate)}; load a file with Certificate.load"
        )
    kind = certificate.score_type
    weights: dict[str, Any] = {"normal_weights": normal_weights, "anomalous_weights": anomalous_weights}
    drawn_by = certificate.weighting
    for (name, weight), label in zip(weights.items(), ("normal", "anomalous"), strict=True):
        offered = None if drawn_by is None else getattr(drawn_by, label)
        if weight is not None and offered is None:
            raise InputError(f"the {label} points of this certificate have no weights; leave {name} out")
        if weight is None and offered is not None:
            raise InputError(f"the {label} points of this certificate were drawn by weights; give {name}")

    def given(scores: ArrayLike | Kinds, name: str) -> Scores | dict[str, Scores]:
        if isinstance(scores, Mapping):
            return {key: as_made(kind, one, name) for key, one in scores.items()}
        return as_made(kind, scores, name)

    low, high = given(normal, "normal"), given(anomalous, "anomalous")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PACWrapWarning)
        if certificate.by_kind:
            again = recalibrate_kinds(certificate, low, high)
        elif isinstance(low, dict) or isinstance(high, dict):
            raise InputError(
                "this certificate was made without kinds; pass the scores of each class as one array"
            )
        elif drawn_by is None:
            again = calibrate(low, high, Request(certificate.guarantee, certificate.overlap))
        else:
            request = Request(certificate.guarantee, certificate.overlap)
            again = calibrate(low, high, request, weight_bound=drawn_by.bound, seed=drawn_by.seed, **weights)
    return verify_against(certificate, replace(again, score_type=kind, rule=again.rule.before_rounding(kind)))


def verify_against(certificate: Certificate, again: Certificate) -> Verification:
    """Compare a certificate with one that was made anew."""
    digested = all(one.digest is not None for one in certificate.clauses)
    ordered = certificate.weighting is not None
    return Verification(tuple(differences_of(certificate, again)), digested, ordered)


def as_made(kind: ScoreType, scores: ArrayLike, name: str) -> Scores:
    """Return scores as calibration saw them, as doubles; rounded, unless they have lost digits since."""
    given = as_array(scores, name)
    values = as_scores(given, name)
    return rounded(values, kind) if is_narrower(kind, type_of(given)) else values


def differences_of(found: Any, expected: Any) -> Iterator[str]:
    """Yield where a certificate differs from the expected one: its clauses, then the rest."""
    theirs, ours = ({one.of: one for one in each.clauses} for each in (found, expected))
    for of in theirs | ours:
        if of not in ours or of not in theirs:
            where = "in the certificate" if of in theirs else "among the scores"
            what = f"kind {quoted(of.kind)} is" if of.kind is not None else "points without kinds are"
            yield f"the {of.label} {what} only {where}"
        else:
            name = of.label if of.kind is None else f"{of.label} {quoted(of.kind)}"
            yield from _differences(flat(theirs[of]), flat(ours[of]), f"{name}.")
    yield from _differences(_rest(found), _rest(expected))


def _rest(certificate: Any) -> dict[str, Any]:
    return {name: value for name, value in flat(certificate).items() if name != "clauses"}


def _differences(theirs: dict[str, Any], ours: dict[str, Any], where: str = "") -> Iterator[str]:
    for name in theirs | ours:
        value, other = theirs.get(name, "absent"), ours.get(name, "absent")
        if value is None and name == "digest":
            continue
        if value == other or name in _OTHERWISE_KNOWN or name.split(".")[0] in _OTHERWISE_KNOWN:
            continue
        # rates and confidences come from SciPy and may differ in the last digit; thresholds may not
        rounded = isinstance(value, float) and isinstance(other, float) and isclose(value, other)
        if not rounded or name.startswith(("rule.", "threshold")):
            yield f"{where}{name} is {value!r} in the certificate, {other!r} from the scores"
