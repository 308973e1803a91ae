"""The numbers that the paper prints, as printed; everything else in a study is computed."""

from typing import Final

from pac_wrap.binomial import interval
from pac_wrap.experiments.study import Interval

SHARES: Final = (0.5, 0.75, 1.0)

# Tables 2 and 3: violation intervals at 50, 75 and 100 % of the calibration set, 4,000 trials
Q1: Final[dict[tuple[str, str, str], tuple[Interval, ...]]] = {
    ("synthetic", "isolation forest", "FPR"): (
        Interval(0.034, 0.046),
        Interval(0.024, 0.034),
        Interval(0.031, 0.043),
    ),
    ("synthetic", "LOF", "FPR"): (Interval(0.033, 0.045), Interval(0.020, 0.030), Interval(0.030, 0.042)),
    ("synthetic", "isolation forest", "FNR"): (
        Interval(0.033, 0.045),
        Interval(0.032, 0.044),
        Interval(0.035, 0.047),
    ),
    ("synthetic", "LOF", "FNR"): (Interval(0.034, 0.047), Interval(0.035, 0.048), Interval(0.032, 0.044)),
    ("thyroid", "isolation forest", "FPR"): (
        Interval(0.024, 0.035),
        Interval(0.007, 0.013),
        Interval(0.025, 0.036),
    ),
    ("thyroid", "LOF", "FPR"): (Interval(0.022, 0.033), Interval(0.006, 0.012), Interval(0.026, 0.037)),
    ("thyroid", "isolation forest", "FNR"): (
        Interval(0.006, 0.012),
        Interval(0.010, 0.018),
        Interval(0.012, 0.020),
    ),
    ("thyroid", "LOF", "FNR"): (Interval(0.006, 0.012), Interval(0.014, 0.022), Interval(0.016, 0.025)),
}
Q1_TRIALS: Final = 4000

# Table 4: FNR_or, FPR_or, FNR_tt, FPR_tt, FNR_th, FPR_th, ERR, eps
Q2_COLUMNS: Final = ("FNR_or", "FPR_or", "FNR_tt", "FPR_tt", "FNR_th", "FPR_th", "ERR", "eps")
Q2: Final = {
    "campaign": (0.000, 0.998, 0.026, 0.043, 0.267, 0.259, 0.266, 0.35),
    "celeba": (0.029, 0.456, 0.026, 0.042, 0.121, 0.097, 0.120, 0.15),
    "census": (0.055, 0.561, 0.048, 0.047, 0.230, 0.202, 0.229, 0.25),
}

# Tables 5 and 6: average FPR, FNR and ambiguity; violation intervals of FPR and FNR, 300 trials
Q3_MEANS: Final = {"CPAD": (0.049, 0.051, 0.222), "PAC-Wrap": (0.038, 0.020, 0.345)}
Q3_VIOLATIONS: Final = {
    "CPAD": (Interval(0.344, 0.458), Interval(0.498, 0.614)),
    "PAC-Wrap": (Interval(0.001, 0.024), Interval(0.000, 0.018)),
}
Q3_TRIALS: Final = 300


def count_behind(printed: Interval, trials: int) -> float:
    """Return the number of violations whose exact interval, rounded to three digits, is the printed one.

    The middle of all such counts, or the count whose interval comes nearest.

    >>> count_behind(Interval(0.034, 0.046), 4000)
    158.5
    """
    start, stop = int(printed.low * trials), int(printed.high * trials) + 2

    def distance(count: int) -> float:
        low, high = interval(count, trials)
        return round(abs(round(low, 3) - printed.low) + abs(round(high, 3) - printed.high), 6)

    nearest = min(distance(count) for count in range(start, stop))
    fitting = [count for count in range(start, stop) if distance(count) == nearest]
    return (fitting[0] + fitting[-1]) / 2
