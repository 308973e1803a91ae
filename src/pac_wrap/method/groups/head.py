"""What the certificates of all groups share, and what each group is asked for."""

from dataclasses import dataclass, field, replace

from pac_wrap.base.arguments import ScoreType
from pac_wrap.method.certificates.certificate import Certificate, Overlap
from pac_wrap.method.certificates.provenance import Provenance, Traced
from pac_wrap.method.promise import Guarantee
from pac_wrap.method.sampling import OF_DRAWS, Assumption
from pac_wrap.version import __version__


@dataclass(frozen=True, slots=True)
class Head(Traced):
    """What the certificates of all groups share."""

    asked: Guarantee
    overlap: Overlap
    together: bool
    score_type: ScoreType = "float64"
    pool: Certificate | None = None
    # the deltas of each group where all hold together, those of the FPR and of the FNR
    shares: tuple[float, float] | None = None
    assumptions: tuple[Assumption, ...] = OF_DRAWS
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False, metadata={"optional": True})


def with_shares(asked: Guarantee, shares: tuple[float, float] | None) -> Guarantee:
    """Return what each group is asked for, with its share of delta where all are to keep it together.

    >>> with_shares(Guarantee(), (0.001, 0.002)).delta_fnr
    0.002
    """
    return asked if shares is None else replace(asked, delta_fpr=shares[0], delta_fnr=shares[1])
