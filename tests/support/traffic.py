"""Traffic with reviews as software writes them, and the certificate that memory gives it."""

from typing import Any

import numpy as np

from pac_wrap import Certificate, Guarantee
from pac_wrap.method.traffic.calibrate import calibrate_traffic

# each reaches another branch: ranks of all points, of those not found right, of both, those that are tested
PROMISES = {
    "alarms": Guarantee(max_alarms=0.02),
    "false alarms": Guarantee(max_false_alarms="40 per 10,000"),
    "both": Guarantee(max_alarms="300/10000", max_false_alarms=0.004),
    "precision": Guarantee(max_false_alarms=0.01, min_precision=0.5),
    "too few": Guarantee(max_false_alarms=1e-6),
}
# true, false, and not reviewed
SPELLED: dict[str, tuple[Any, Any, Any]] = {
    "numbers": (1.0, 0.0, None),
    "booleans": (True, False, None),
    "texts": ("1", "False", ""),
    "words": ("TRUE", "0.0", None),
}


def traffic(rows: int = 4000, kind: Any = np.float64, seed: int = 5) -> tuple[Any, Any]:
    """Return scores with ties, infinities, two zeros and gaps, and reviews from the top and at random."""
    rng = np.random.default_rng(seed)
    anomaly = rng.random(rows) < 0.03
    scores = np.round(rng.normal(3.0 * anomaly), 2)
    scores[:4], scores[4:8], scores[8:20] = np.inf, -np.inf, -0.0
    scores[20:40:2], scores[40:70] = 0.0, np.nan
    looked_at = (scores > 2.4) | (rng.random(rows) < 0.02)
    reviews = np.where(looked_at & ~np.isnan(scores), anomaly, np.nan)
    return scores.astype(kind), reviews


def spelled(reviews: Any, way: str) -> list[Any]:
    """Return reviews as a column of one spelling."""
    right, wrong, none = SPELLED[way]
    return [none if one != one else right if one else wrong for one in reviews.tolist()]


def in_memory(scores: Any, reviews: Any, promise: str) -> str:
    """Return the certificate that every engine must give, byte for byte."""
    made: Certificate = calibrate_traffic(scores, reviews, PROMISES[promise])
    return made.to_json()
