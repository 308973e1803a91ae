"""Scorers for scikit-learn's `scoring=`; lives in `detectors/`."""

from pac_wrap.detectors.scoring import certified_ceiling_scorer, decided_share_scorer, ranking_scorer

__all__ = ["certified_ceiling_scorer", "decided_share_scorer", "ranking_scorer"]
