"""What a certificate promises, as one guarantee, and certificates that say something else."""

from dataclasses import replace
from typing import Any, Literal

from pac_wrap import Certificate, Guarantee


def kept(certificate: Certificate) -> Guarantee | None:
    """Return the ceilings and deltas that are certified; None where none is."""
    fpr, fnr, asked = certificate.fpr.certified, certificate.fnr.certified, certificate.guarantee
    if fpr is None and fnr is None:
        return None
    return Guarantee(
        None if fpr is None else fpr.ceiling,
        None if fnr is None else fnr.ceiling,
        asked.delta_fpr if fpr is None else fpr.delta,
        asked.delta_fnr if fnr is None else fnr.delta,
        shift=tuple(None if one is None else one.shift for one in (fpr, fnr)),
        label_noise=tuple(None if one is None else one.label_noise for one in (fpr, fnr)),
    )


def with_clause(certificate: Certificate, side: Literal["fpr", "fnr"], **changes: Any) -> Certificate:
    """Return a certificate of two classes with another clause about one of them."""
    clauses = list(certificate.clauses)
    place = int(side == "fnr")
    clauses[place] = replace(clauses[place], **changes)
    return replace(certificate, clauses=tuple(clauses))


def with_ceiling(certificate: Certificate, side: Literal["fpr", "fnr"], ceiling: float) -> Certificate:
    """Return a certificate that promises another ceiling on one side."""
    promise = getattr(certificate, side).certified
    return with_clause(certificate, side, certified=replace(promise, ceiling=ceiling))
