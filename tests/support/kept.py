"""What a certificate promises of the two classes, as one guarantee."""

from pac_wrap import Certificate, Guarantee


def kept(certificate: Certificate) -> Guarantee | None:
    """Return the ceilings and deltas that are certified; None where none is."""
    return certificate.guarantee.with_promises(certificate.fpr.certified, certificate.fnr.certified)
