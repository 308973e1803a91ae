"""What a file that a command is given may hold: a certificate, one of kinds, or a curve."""

from pathlib import Path
from typing import TYPE_CHECKING

from pac_wrap.errors import InputError

if TYPE_CHECKING:
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.curves.curve import Curve
    from pac_wrap.method.kinds.certificate import KindCertificate

# the format stands in the first line of a file
_START = 200


def any_of(path: Path) -> "Certificate | KindCertificate | Curve":
    """Return what a file holds; what is none of them is refused as a certificate."""
    from pac_wrap.base.codec import MOST_BYTES
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.curves.curve import FORMAT, Curve
    from pac_wrap.method.kinds.certificate import FORMAT as OF_KINDS
    from pac_wrap.method.kinds.certificate import KindCertificate

    with path.open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    if OF_KINDS.encode() in text[:_START]:
        return KindCertificate.from_json(text)
    return Curve.from_json(text) if FORMAT.encode() in text[:_START] else Certificate.from_json(text)


def columns_of(loaded: object, score: str, kind: str | None) -> list[str]:
    """Return the columns of scores and kinds that a certificate needs."""
    from pac_wrap.method.kinds.certificate import KindCertificate

    if isinstance(loaded, KindCertificate) is (kind is None):
        raise InputError(
            "the certificate promises by kind; name the column of kinds with --kind"
            if kind is None
            else "--kind is for certificates that were made with it; leave it out"
        )
    return [score] if kind is None else [score, kind]


def deciding(path: Path) -> "Certificate":
    """Return the certificate whose rule decides; of a certificate of kinds, that of those that bind."""
    from pac_wrap.method.certificate import Certificate
    from pac_wrap.method.kinds.certificate import KindCertificate

    loaded = any_of(path)
    if isinstance(loaded, KindCertificate):
        return loaded.binding
    return loaded if isinstance(loaded, Certificate) else Certificate.load(path)
