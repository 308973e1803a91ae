"""What the certificates of all groups share, and what each group is asked for."""

from dataclasses import dataclass, field, replace

from pac_wrap.base.arguments import ScoreType
from pac_wrap.base.rounding import shared_together
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
    assumptions: tuple[Assumption, ...] = OF_DRAWS
    version: str = __version__
    provenance: Provenance | None = field(default=None, compare=False, metadata={"optional": True})


def shared(asked: Guarantee, groups: int) -> Guarantee:
    """Return what each of so many groups is asked for so that all keep it together: eq. (53).

    >>> round(shared(Guarantee(), 20).delta_fpr, 6)
    0.002561
    """
    deltas = [shared_together(delta, groups) for delta in (asked.delta_fpr, asked.delta_fnr)]
    return replace(asked, delta_fpr=deltas[0], delta_fnr=deltas[1])
